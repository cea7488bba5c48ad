// What the commands take that are about rsptrace itself.
import { type ArgumentsOf, declared, flag, optional, required, usage } from './option.js';

const shells = ['bash', 'zsh', 'fish'] as const;

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

export const help = declared({
  about: 'the man page of a command, or of rsptrace',
  positionals: { about: optional('A command: run, tasks ...') },
  options: {},
});
export type HelpArguments = ArgumentsOf<typeof help>;

export const mcp = declared({
  about: 'serve tasks, bt, profile, report and info to an assistant, by the Model Context Protocol on stdin and stdout',
  positionals: {},
  options: {
    'allow-changes': flag('Also run, attach, record and detach, which start programs, write files and patch targets'),
  },
});
export type McpArguments = ArgumentsOf<typeof mcp>;
