import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { compileGlob } from '../probes/index.js';
import { groupings, type Moment, type SortKey, sortKeys } from '../trace/index.js';
import type { OptionTexts } from './option-texts.js';
import { count, last, logOption, pluginOption } from './options.js';

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

export interface ReplayArguments extends SavedTraceArguments, WindowArguments {
  readonly filter: string | undefined;
}

export interface GraphArguments extends SavedTraceArguments, WindowArguments {
  readonly fn: string | undefined;
  readonly depth: number | undefined;
}

/** `+5% fn:boot`: the total of what matches may grow by so much. */
export interface FailOn {
  readonly text: string;
  readonly percent: number;
  readonly kind: 'fn' | 'poll';
  readonly glob: string;
}

export interface DiffArguments extends SavedTraceArguments, WindowArguments {
  readonly other: string;
  readonly top: number | undefined;
  readonly filter: string | undefined;
  readonly 'fail-on': readonly FailOn[];
}

export interface RecoverArguments extends SavedTraceArguments {
  readonly output: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
  readonly log: string;
}

export interface ConvertArguments extends ReplayArguments {
  readonly output: string;
  readonly format: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
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

const inside = "Only these with all that happens inside them: level3, 'net::**'";

export function replayOptions<T>(args: Argv<T>) {
  return windowOptions(savedTraceOptions(args)).option('filter', { ...text, describe: inside });
}

export function graphOptions<T>(args: Argv<T>) {
  return windowOptions(savedTraceOptions(args))
    .positional('fn', { type: 'string', describe: "Begin at these functions: level3, 'net::**'" })
    .option('depth', { ...text, alias: 'D', coerce: count('--depth'), describe: 'Only so many levels' });
}

export function diffOptions<T>(args: Argv<T>) {
  return windowOptions(savedTraceOptions(args))
    .positional('other', { type: 'string', demandOption: true, describe: 'The trace to compare with it' })
    .option('top', { ...text, coerce: count('--top'), describe: 'Only so many rows' })
    .option('filter', { ...text, describe: "Only rows whose name matches: level3, 'net::**'" })
    .option('fail-on', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as readonly FailOn[],
      coerce: (given: readonly string[]) => given.map(failOn),
      describe: "Exit status 4 if the total grew by more: '+5% fn:boot', '+10% poll:net::**'; repeatable",
    });
}

function failOn(words: string): FailOn {
  const [, number, kind, glob] = /^\+?(\d+(?:\.\d+)?) ?% ?(fn|poll):(.+)$/.exec(words.trim()) ?? [];
  if (number === undefined || glob === undefined) {
    throw new Error(`--fail-on takes a growth and a name: '+5% fn:boot', '+10% poll:net::**', not '${words}'`);
  }
  return { text: words, percent: Number(number), kind: kind === 'poll' ? 'poll' : 'fn', glob };
}

export function recoverOptions<T>(args: Argv<T>) {
  return pluginOption(args)
    .positional('trace', { type: 'string', demandOption: true, describe: 'The trace that was being recorded' })
    .option('output', { ...text, alias: 'o', describe: 'Another file than this trace, of the format of its extension' })
    .option('force', { type: 'boolean', default: false, describe: 'Overwrite a file that is no trace, too' })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' })
    .option('log', logOption);
}

export function convertOptions<T>(args: Argv<T>, { extensions }: OptionTexts) {
  return pluginOption(windowOptions(savedTraceOptions(args)))
    .option('output', {
      ...text,
      alias: 'o',
      demandOption: true,
      describe: `The file or folder to write. Its extension chooses the format: ${extensions}`,
    })
    .option('format', { ...text, describe: 'The format, whatever the extension: folded, pftrace' })
    .option('filter', { ...text, describe: inside })
    .option('force', { type: 'boolean', default: false, describe: 'Overwrite a file that is no trace, too' });
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
