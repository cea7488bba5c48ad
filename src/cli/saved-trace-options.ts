import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { compileGlob } from '../probes/index.js';
import { groupings, type Moment, type SortKey, sortKeys } from '../trace/index.js';
import { count, last } from './options.js';

/** What every command takes that asks a saved trace. */
export interface SavedTraceArguments {
  readonly trace: string;
  readonly json: boolean;
}

export interface WindowArguments {
  readonly from: Moment | undefined;
  readonly to: Moment | undefined;
}

export interface ReportArguments extends SavedTraceArguments, WindowArguments {
  readonly by: (typeof groupings)[number] | undefined;
  readonly callers: string | undefined;
  readonly callees: string | undefined;
  readonly sort: SortKey;
  readonly top: number | undefined;
  readonly filter: string | undefined;
}

const text = { type: 'string', requiresArg: true, coerce: last<string> } as const;

export function savedTraceOptions<T>(args: Argv<T>) {
  return args
    .positional('trace', { type: 'string', demandOption: true, describe: 'A .pftrace or .pftrace.gz' })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' });
}

export function windowOptions<T>(args: Argv<T>) {
  return args
    .option('from', {
      type: 'string',
      requiresArg: true,
      coerce: moment('--from'),
      describe: 'Only what begins from here on: 1.2s, 500us, fn:GLOB (its first call or poll)',
    })
    .option('to', {
      type: 'string',
      requiresArg: true,
      coerce: moment('--to'),
      describe: 'Only what begins before: as --from',
    });
}

export function reportOptions<T>(args: Argv<T>) {
  return windowOptions(savedTraceOptions(args))
    .option('by', { choices: groupings, coerce: last<(typeof groupings)[number]>, describe: 'A row each of these' })
    .option('callers', { ...text, describe: 'Who calls this function: counts and times of every arc' })
    .option('callees', { ...text, describe: 'What this function calls' })
    .option('sort', { choices: sortKeys, default: 'total' as const, coerce: last<SortKey>, describe: 'The most first' })
    .option('top', { ...text, coerce: count('--top'), describe: 'Only so many rows' })
    .option('filter', { ...text, describe: "Only rows whose name matches: level3, 'net::**'" })
    .check(({ by, callers, callees }) => {
      if ([by, callers, callees].filter((one) => one !== undefined).length > 1) {
        throw new RsptraceError('USAGE', '--by, --callers and --callees do not go together', {
          hint: "try 'rsptrace report --help'",
        });
      }
      return true;
    });
}

const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9 } as const;

/** A time of the trace, or the first entry of a function. */
export function moment(option: string) {
  return (given: string | readonly string[] | undefined): Moment | undefined => {
    const words = last(given);
    if (words === undefined) return undefined;
    if (words.startsWith('fn:') && words.length > 3) return compileGlob(words.slice(3));
    const [, number, unit] = /^(\d+(?:\.\d+)?)(ns|us|ms|s|m)$/.exec(words.trim()) ?? [];
    if (number === undefined) {
      throw new Error(`${option} takes a time of the trace or a function: 1.2s, 350us, fn:init_done, not '${words}'`);
    }
    return Math.round(Number(number) * units[unit as keyof typeof units]);
  };
}
