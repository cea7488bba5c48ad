// What the commands take that are about rsptrace itself.
import { type ArgumentsOf, type Behind, declared, flag, optional, required, usage } from './option.js';

const shells = ['bash', 'zsh', 'fish'] as const;

export const completion = declared({
  about:
    'a script with which a shell completes commands, options and the names in probes: source it where the shell starts',
  usage: 'rsptrace completion bash|zsh|fish\n       rsptrace completion probes <word> -- <command line>',
  positionals: {
    shell: required('bash, zsh or fish; probes: what these scripts ask for, the probes that a word may become'),
    word: optional('Of probes: the word'),
  },
  options: {},
});
export type CompletionArguments = ArgumentsOf<typeof completion> & { readonly command: readonly string[] };

export function checkCompletion({ shell, word, '--': line }: ArgumentsOf<typeof completion> & Behind): void {
  const isAsked = shell === 'probes' && line !== undefined;
  if (isAsked || (word === undefined && shells.some((one) => one === shell))) return;
  throw usage(`there is no completion for ${word ?? shell}`, `for ${shells.join(', ')}`);
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
