import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { type DebugFileArguments, debugFileOptions, last } from './options.js';

/** What `rsptrace futures` takes. */
export interface FuturesArguments extends DebugFileArguments {
  readonly elf: string;
  readonly glob: string | undefined;
  readonly tree: boolean;
  readonly json: boolean;
  readonly dot: boolean;
  /** A file, or '' for stdout. */
  readonly svg: string | undefined;
  readonly force: boolean;
  readonly size: boolean;
}

const views = ['tree', 'json', 'dot', 'svg', 'size'] as const;

export function futuresOptions<T>(args: Argv<T>) {
  return debugFileOptions(args)
    .positional('elf', { type: 'string', demandOption: true, describe: 'An ELF with debug info' })
    .positional('glob', { type: 'string', describe: "Only Futures whose name matches: level3, 'net::**'" })
    .option('tree', { type: 'boolean', default: false, describe: 'What awaits and holds what' })
    .option('size', {
      type: 'boolean',
      default: false,
      describe: 'The largest first, with the state and member to blame',
    })
    .option('json', { type: 'boolean', default: false, describe: 'All that is known, as one JSON object' })
    .option('dot', { type: 'boolean', default: false, describe: 'The awaits as a graph in Graphviz text' })
    .option('svg', {
      type: 'string',
      coerce: last<string>,
      describe: 'The graph as a picture: --svg=FILE, or on stdout',
    })
    .option('force', { type: 'boolean', default: false, describe: 'Overwrite the FILE of --svg' })
    .check((given: Record<string, unknown>) => {
      const asked = views.filter((view) => given[view] !== undefined && given[view] !== false);
      if (asked.length > 1) {
        const named = asked.map((view) => `--${view}`).join(' and ');
        throw new RsptraceError('USAGE', `${named} do not go together`, { hint: "try 'rsptrace futures --help'" });
      }
      return true;
    });
}
