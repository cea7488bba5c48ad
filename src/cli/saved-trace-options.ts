import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { type EngineName, engineNames } from '../engines/index.js';
import { compileGlob } from '../probes/index.js';
import { type Grouping, groupings, type Moment, type SortKey, sortKeys } from '../trace/index.js';
import type { OptionTexts } from './option-texts.js';
import { asHart, count, last, logOption, pluginOption, seconds } from './options.js';
import { parseFilter, type TraceFilter } from './trace-filter.js';

/** What every command takes that asks a saved trace. */
export interface SavedTraceArguments {
  readonly trace: string;
  readonly json: boolean;
}

export interface WindowArguments {
  /** What is read is printed meanwhile. */
  readonly isPrinted?: boolean;
  readonly from: Moment | undefined;
  readonly to: Moment | undefined;
}

/** Which part of a trace is asked. */
export interface SelectionArguments extends WindowArguments {
  readonly filter: TraceFilter | undefined;
}

export interface ReportArguments extends SavedTraceArguments, SelectionArguments {
  readonly by: (typeof groupings)[number] | undefined;
  readonly callers: string | undefined;
  readonly callees: string | undefined;
  readonly sort: SortKey;
  readonly top: number | undefined;
}

export interface InfoArguments extends SavedTraceArguments, SelectionArguments {}

export interface DumpArguments extends SavedTraceArguments {
  readonly explain: number | undefined;
  readonly plugin: readonly string[];
  readonly log: string | undefined;
}

export interface ReplayArguments extends SavedTraceArguments, SelectionArguments {}

export const graphSortKeys = ['total', 'self', 'calls', 'name'] as const;
export type GraphSortKey = (typeof graphSortKeys)[number];

export interface GraphArguments extends Omit<SavedTraceArguments, 'trace'>, SelectionArguments {
  /** Undefined only with a `pid`. */
  readonly trace: string | undefined;
  /** Of a saved trace: where trees begin. */
  readonly function: string | undefined;
  /** The same as it happens: then `trace` is the program. */
  readonly fn: string | undefined;
  readonly remote: string | undefined;
  readonly pid: string | undefined;
  /** Milliseconds. */
  readonly duration: number | undefined;
  readonly 'max-events': number | undefined;
  readonly engine: EngineName | undefined;
  readonly scratch: string | undefined;
  readonly depth: number | undefined;
  readonly sort: GraphSortKey;
  readonly top: number | undefined;
}

/** `+5% fn:boot`: the total of what matches may grow by so much. `new fn:GLOB`, `gone fn:GLOB`: there may be none. */
export interface FailOn {
  readonly text: string;
  readonly limit: number | 'new' | 'gone';
  readonly kind: 'fn' | 'poll';
  readonly glob: string;
}

export const diffSortKeys = ['delta', 'percent', 'before', 'after', 'name'] as const;
export type DiffSortKey = (typeof diffSortKeys)[number];

export interface DiffArguments extends SavedTraceArguments, SelectionArguments {
  readonly other: string;
  readonly sort: DiffSortKey;
  readonly top: number | undefined;
  readonly 'fail-on': readonly FailOn[];
}

export interface RecoverArguments extends SavedTraceArguments {
  readonly output: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
  readonly log: string | undefined;
}

export interface ConvertArguments extends ReplayArguments {
  readonly output: string;
  readonly format: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
}

export interface MergeArguments extends SavedTraceArguments {
  readonly others: readonly string[];
  readonly output: string;
  readonly format: string | undefined;
  readonly force: boolean;
  readonly plugin: readonly string[];
  readonly offset: readonly number[];
  readonly align: readonly Moment[];
}

export interface OpenArguments {
  readonly trace: string;
  readonly browser: boolean;
  readonly port: number;
}

const text = { type: 'string', requiresArg: true, coerce: last<string> } as const;

export function savedTraceOptions<T>(args: Argv<T>) {
  return args
    .positional('trace', {
      type: 'string',
      demandOption: true,
      describe: 'A .pftrace or .pftrace.gz; of others the slices',
    })
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

/** `--filter`. */
export function filter(given: string | readonly string[] | undefined): TraceFilter | undefined {
  return given === undefined ? undefined : parseFilter(last(given));
}

/** Which part: the same for every command. */
export function selectionOptions<T>(args: Argv<T>) {
  return windowOptions(args).option('filter', {
    type: 'string',
    requiresArg: true,
    coerce: filter,
    describe: "Only these calls and polls: 'net::**', 'fn:net::* if duration > 1ms'",
  });
}

export function reportOptions<T>(args: Argv<T>) {
  return selectionOptions(savedTraceOptions(args))
    .option('by', {
      choices: [...groupings, 'thread'] as const,
      coerce: (given: Parameters<typeof asHart>[0]) => asHart(given) as Grouping | undefined,
      describe: 'A row each of these; of a process hart is thread',
    })
    .option('callers', { ...text, describe: 'Who calls this function: counts and times of every arc' })
    .option('callees', { ...text, describe: 'What this function calls' })
    .option('sort', { choices: sortKeys, default: 'total' as const, coerce: last<SortKey>, describe: 'The most first' })
    .option('top', { ...text, coerce: count('--top'), describe: 'Only so many rows' })
    .check(({ by, callers, callees, filter }) => {
      if ([by, callers, callees].filter((one) => one !== undefined).length > 1) {
        throw notTogether('--by, --callers and --callees do not go together');
      }
      if (by === 'await' && filter?.condition) throw notTogether('--by await takes a --filter without a condition');
      return true;
    });
}

function notTogether(message: string): RsptraceError {
  return new RsptraceError('USAGE', message, { hint: 'try --help' });
}

export function infoOptions<T>(args: Argv<T>) {
  return selectionOptions(savedTraceOptions(args));
}

export function replayOptions<T>(args: Argv<T>) {
  return selectionOptions(savedTraceOptions(args));
}

export function graphOptions<T>(args: Argv<T>) {
  return selectionOptions(savedTraceOptions(args))
    .usage(
      'rsptrace graph [options] <trace> [function]\n       rsptrace graph [options] --fn GLOB <program> [-- its arguments]\n       rsptrace graph [options] --fn GLOB --pid PID [elf]\n       rsptrace graph [options] --fn GLOB --remote ADDR <elf>',
    )
    .positional('trace', { type: 'string', describe: 'A .pftrace or .pftrace.gz; with --fn the program' })
    .positional('function', { type: 'string', describe: "Begin at these functions: level3, 'net::**'" })
    .option('remote', { ...text, alias: 'r', describe: 'With --fn: a stub, instead of a program of this machine' })
    .option('pid', { ...text, alias: 'p', describe: 'With --fn: a process of this machine, by its number' })
    .option('fn', { ...text, describe: 'Instead of a trace: these functions and what they call, as it happens' })
    .option('duration', { ...text, alias: 'd', coerce: seconds, describe: 'With --fn: stop after so long: 10s' })
    .option('max-events', { ...text, alias: 'n', coerce: count('--max-events'), describe: 'The same by events' })
    .option('engine', { choices: engineNames, coerce: last<EngineName>, describe: 'With --fn: as in a recording' })
    .option('scratch', {
      ...text,
      describe: 'With --fn: memory for trampolines, as in a recording: ADDR,SIZE or hidden',
    })
    .option('depth', { ...text, alias: 'D', coerce: count('--depth'), describe: 'Only so many levels' })
    .option('sort', {
      choices: graphSortKeys,
      default: 'total' as const,
      coerce: last<GraphSortKey>,
      describe: 'The most first',
    })
    .option('top', { ...text, coerce: count('--top'), describe: 'Only so many callees of each' })
    .check(checkGraph);
}

function checkGraph(given: Readonly<Record<string, unknown>>): true {
  const { fn, trace, remote, pid } = given;
  const isLive = fn !== undefined;
  const where = [...(remote === undefined ? [] : ['--remote']), ...(pid === undefined ? [] : ['--pid'])];
  if (where.length > 1) {
    throw new RsptraceError('USAGE', '--pid and --remote do not go together', { hint: 'leave one of them out' });
  }
  if (!isLive && where.length > 0) {
    throw new RsptraceError('USAGE', `${where[0]} needs --fn: where the graph begins`, { hint: "try --fn 'net::rx'" });
  }
  if (trace === undefined && pid === undefined) {
    throw new RsptraceError('USAGE', `no ${isLive ? 'program' : 'trace'} is given`, {
      hint: isLive ? "rsptrace graph --fn 'GLOB' ./program" : 'rsptrace graph boot.pftrace',
    });
  }
  if (given['--'] !== undefined && (!isLive || where.length > 0)) {
    throw new RsptraceError('USAGE', 'only a program that is started takes arguments behind --', {
      hint: "rsptrace graph --fn 'GLOB' ./program -- its arguments",
    });
  }
  const wrong = (
    isLive ? ['function', 'json', 'from', 'to', 'filter', 'top'] : ['duration', 'max-events', 'engine', 'scratch']
  ).find((name) => given[name] !== undefined && given[name] !== false);
  if (wrong !== undefined) {
    const what = isLive ? 'is for saved traces' : 'needs --fn';
    throw new RsptraceError('USAGE', `--${wrong} ${what}`, {
      hint: isLive ? 'record a .pftrace and ask that' : 'a saved trace takes the function behind its name',
    });
  }
  return true;
}

export function diffOptions<T>(args: Argv<T>) {
  return selectionOptions(savedTraceOptions(args))
    .positional('other', { type: 'string', demandOption: true, describe: 'The trace to compare with it' })
    .option('sort', {
      choices: diffSortKeys,
      default: 'delta' as const,
      coerce: last<DiffSortKey>,
      describe: 'The most first',
    })
    .option('top', { ...text, coerce: count('--top'), describe: 'Only so many rows' })
    .option('fail-on', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as readonly FailOn[],
      coerce: (given: readonly string[]) => given.map(failOn),
      describe:
        "Exit status 4 if the total grew by more, or is new: '+5% fn:boot'; 'new fn:GLOB', 'gone fn:GLOB' if there are such; repeatable",
    });
}

function failOn(words: string): FailOn {
  const pattern = /^(?:\+?(\d+(?:\.\d+)?) ?% ?|(new|gone) +)(fn|poll):(.+)$/;
  const [, number, change, kind, glob] = pattern.exec(words.trim()) ?? [];
  if (glob === undefined) {
    throw new Error(
      `--fail-on takes a growth and a name: '+5% fn:boot', 'new fn:net::**', 'gone fn:boot', not '${words}'`,
    );
  }
  const limit = change === 'new' || change === 'gone' ? change : Number(number);
  return { text: words, limit, kind: kind === 'poll' ? 'poll' : 'fn', glob };
}

export function recoverOptions<T>(args: Argv<T>) {
  return pluginOption(args)
    .positional('trace', { type: 'string', demandOption: true, describe: 'The trace that was being recorded' })
    .option('output', { ...text, alias: 'o', describe: 'Another file than this trace, of the format of its extension' })
    .option('force', { type: 'boolean', default: false, describe: 'Overwrite what -o names' })
    .option('json', { type: 'boolean', default: false, describe: 'One JSON object on stdout' })
    .option('log', logOption);
}

export function dumpOptions<T>(args: Argv<T>) {
  return pluginOption(args)
    .positional('trace', { type: 'string', demandOption: true, describe: 'The trace, or its .records' })
    .option('explain', {
      type: 'string',
      requiresArg: true,
      coerce: count('--explain'),
      describe: 'Only this event, by its number: its records, their clock, and how its duration follows from them',
    })
    .option('json', { type: 'boolean', default: false, describe: 'JSON lines on stdout' })
    .option('log', logOption);
}

export function convertOptions<T>(args: Argv<T>, texts: OptionTexts) {
  return outputOptions(selectionOptions(savedTraceOptions(args)), texts);
}

/** Where a trace is written to. */
function outputOptions<T>(args: Argv<T>, { extensions }: OptionTexts) {
  return pluginOption(args)
    .option('output', {
      ...text,
      alias: 'o',
      demandOption: true,
      describe: `The file or folder to write. Its extension chooses the format: ${extensions}`,
    })
    .option('format', { ...text, describe: 'The format, whatever the extension: folded, pftrace' })
    .option('force', { type: 'boolean', default: false, describe: 'Overwrite what is there' });
}

export function mergeOptions<T>(args: Argv<T>, texts: OptionTexts) {
  return outputOptions(savedTraceOptions(args), texts)
    .positional('others', {
      type: 'string',
      array: true,
      demandOption: true,
      describe: 'The traces to put beside it: of rsptrace, of Perfetto, of Chrome (.json), of uftrace (a folder)',
    })
    .option('offset', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as readonly number[],
      coerce: (given: readonly string[]) => given.map(offsetOf),
      describe: 'How much later than the first trace each of the others began: 1.5ms, -20us; one for each',
    })
    .option('align', {
      type: 'string',
      array: true,
      nargs: 1,
      default: [] as readonly Moment[],
      coerce: (given: readonly string[]) => given.map((one) => moment('--align')(one) as Moment),
      describe: 'What happened at the same moment in all: fn:GLOB, or a time of each; one for all, or one for each',
    })
    .check(({ others, offset, align }) => {
      const traces = (others as readonly string[]).length + 1;
      if (offset.length > 0 && align.length > 0) throw notTogether('--offset and --align do not go together');
      if (offset.length > 0 && offset.length !== traces - 1) {
        throw notTogether(`--offset is needed ${traces - 1} times, for each trace but the first`);
      }
      if (align.length > 1 && align.length !== traces) {
        throw notTogether(`--align is needed once, or ${traces} times: once for each trace`);
      }
      return true;
    });
}

function offsetOf(words: string): number {
  const [, sign, number, unit] = /^([-+]?)(\d+(?:\.\d+)?)(ns|us|ms|s|m)$/.exec(words.trim()) ?? [];
  if (number === undefined) throw new Error(`--offset takes a length of time: 1.5ms, -20us, not '${words}'`);
  return Math.round(Number(number) * units[unit as keyof typeof units]) * (sign === '-' ? -1 : 1);
}

export function openOptions<T>(args: Argv<T>) {
  return args
    .positional('trace', { type: 'string', demandOption: true, describe: 'A .pftrace, .pftrace.gz or .json' })
    .option('browser', { type: 'boolean', default: true, describe: 'Open a browser; --no-browser prints the address' })
    .option('port', {
      ...text,
      default: '9001',
      coerce: (given: string) => port(count('--port')(given) as number),
      describe: 'Where it is served: ui.perfetto.dev may fetch from 9001 alone',
    });
}

function port(given: number): number {
  if (given >= 1 && given <= 65_535) return given;
  throw new Error(`--port takes a port of this machine, 1 to 65535, not ${given}`);
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
      // The formats are not loaded for this.
      const format = option === '--to' && /^[a-z]+$/.test(words) ? '; a format is named by the extension of -o' : '';
      throw new Error(
        `${option} takes a time of the trace or a function: 1.2s, 350us, fn:init_done, not '${words}'${format}`,
      );
    }
    return Math.round(Number(number) * units[unit as keyof typeof units]);
  };
}
