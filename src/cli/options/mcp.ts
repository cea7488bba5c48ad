import { type ArgumentsOf, declared, flag } from './option.js';

export const mcp = declared({
  about: 'serve tasks, bt, profile, report and info to an assistant, by the Model Context Protocol on stdin and stdout',
  positionals: {},
  options: {
    'allow-changes': flag('Also run, attach, record and detach, which start programs, write files and patch targets'),
  },
});
export type McpArguments = ArgumentsOf<typeof mcp>;
