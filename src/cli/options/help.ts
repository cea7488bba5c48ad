import { type ArgumentsOf, declared, optional } from './option.js';

export const help = declared({
  about: 'the man page of a command, or of rsptrace',
  positionals: { about: optional('A command: run, tasks ...') },
  options: {},
});
export type HelpArguments = ArgumentsOf<typeof help>;
