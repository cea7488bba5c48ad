import { type ArgumentsOf, declared, required, usage } from './option.js';

const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

export const completion = declared({
  about: 'a script with which a shell completes commands and options: source it where the shell starts',
  positionals: { shell: required('bash, zsh or fish') },
  options: {},
});
export type CompletionArguments = ArgumentsOf<typeof completion>;

export function checkCompletion({ shell }: CompletionArguments): void {
  if (!shells.some((one) => one === shell))
    throw usage(`there is no completion for ${shell}`, `for ${shells.join(', ')}`);
}
