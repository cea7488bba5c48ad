// What the commands take that ask a saved trace.
import { timeOf } from '../../base/time.js';
import { engineNames } from '../../engines/index.js';
import { compileGlob } from '../../probes/index.js';
import { groupings, type Landmark, sortKeys } from '../../trace/index.js';
import { parseFilter, type TraceFilter } from '../trace-filter.js';
import { budgetText, checkReportOptions, json, logOptions, plugin } from './common.js';
import {
  type ArgumentsOf,
  type Behind,
  choice,
  count,
  declared,
  flag,
  givenOf,
  list,
  many,
  optional,
  parsed,
  required,
  seconds,
  text,
  usage,
  type Values,
} from './option.js';

const savedTrace = { trace: required('A .pftrace or .pftrace.gz; of others the slices') };
/** What every command takes that asks a saved trace. */
export interface SavedTraceArguments extends Values<typeof savedTrace> {
  readonly json: boolean;
}

const windowOptions = {
  plugin,
  from: parsed('Only what begins from here on: 1.2s, 500us, fn:GLOB (its first call or poll)', landmark('--from')),
  to: parsed('Only what begins before: as --from', landmark('--to')),
};
export interface WindowArguments extends Values<typeof windowOptions> {
  /** What is read is printed meanwhile. */
  readonly isPrinted?: boolean;
}

/** Which part of a trace is asked: the same for every command. */
export const partOptions = {
  ...windowOptions,
  filter: parsed("Only these calls and polls: 'net::**', 'fn:net::* if duration > 1ms'", parseFilter),
};
export interface SelectionArguments extends WindowArguments {
  readonly filter: TraceFilter | undefined;
}

const selectionOptions = { json, ...partOptions };
export interface SavedPartArguments extends SavedTraceArguments, SelectionArguments {}

export const info = declared({
  about: 'what a saved trace holds: target, clock, probes, losses',
  positionals: savedTrace,
  options: selectionOptions,
});

export const replay = declared({
  about: 'what happened in a saved trace, call by call, indented',
  positionals: savedTrace,
  options: selectionOptions,
});

const top = (describe: string) => parsed(describe, count('--top'));

export const awaitsFull = flag('Shorten nothing: of an await also what the library awaits below your own line');

export const report = declared({
  about: 'where the time of a saved trace went: calls, total, self, percentiles, callers',
  positionals: savedTrace,
  options: {
    ...selectionOptions,
    by: choice(groupings, 'A row each of these; of a process hart is thread'),
    full: awaitsFull,
    callers: text('Who calls this function: counts and times of every arc'),
    callees: text('What this function calls'),
    story: parsed('All that happened for one call or Future: the longest of these names', parseFilter),
    nth: parsed('With --story: this one, in the order of their begins, from 1', count('--nth')),
    sort: choice(sortKeys, 'The most first', { default: 'total' }),
    top: top('Only so many rows'),
    format: choice(['table', 'gnu'], 'gnu: FILE:LINE: and what it took, a line a row, for editors', {
      default: 'table',
    }),
  },
});
export type ReportArguments = ArgumentsOf<typeof report>;

export function checkReport(given: ReportArguments): void {
  const { by, filter, story, nth, format } = given;
  if (givenOf(given, ['by', 'callers', 'callees', 'story']).length > 1)
    throw usage('--by, --callers, --callees and --story do not go together');
  if (story && filter) throw usage('--story and --filter do not go together', 'give --story the name');
  if (story?.condition) throw usage('--story takes a name without a condition', '--nth chooses one of several');
  if (nth !== undefined && !story) throw usage('--nth needs --story: which of what it names', "try --story 'net::rx'");
  const [other] = format === 'gnu' ? givenOf(given, ['json', 'callers', 'callees', 'story']) : [];
  if (other !== undefined) throw usage(`--${other} and --format gnu do not go together`);
  if (by === 'await' || by === 'latency') checkNamesAlone(`--by ${by}`, filter);
}

/** A condition compares what calls and polls have, and not waits and lives. */
export function checkNamesAlone(option: string, filter: TraceFilter | undefined): void {
  if (filter?.condition === undefined) return;
  throw usage(`${option} takes a --filter without a condition`, 'leave out what begins with `if`: names choose here');
}

const graphSortKeys = ['total', 'self', 'calls', 'name'] as const;
export type GraphSortKey = (typeof graphSortKeys)[number];

export const graph = declared({
  about: 'the calls of a saved trace merged into one tree; with --fn those of a program or a target, as they happen',
  usage:
    'rsptrace graph [options] <trace> [function]\n       rsptrace graph [options] --fn GLOB <program> [-- its arguments]\n       rsptrace graph [options] --fn GLOB --pid PID [elf]\n       rsptrace graph [options] --fn GLOB --remote ADDR <elf>',
  positionals: {
    trace: optional('A .pftrace or .pftrace.gz; with --fn the program'),
    function: optional("Begin at these functions: level3, 'net::**'"),
  },
  options: {
    ...selectionOptions,
    remote: text('With --fn: a stub, instead of a program of this machine', { alias: 'r' }),
    pid: text('With --fn: a process of this machine, by its number', { alias: 'p' }),
    fn: text('Instead of a trace: these functions and what they call, as it happens'),
    duration: parsed('With --fn: stop after so long: 10s', seconds, { alias: 'd' }),
    'max-events': parsed('The same by events', count('--max-events'), { alias: 'n' }),
    engine: choice(engineNames, 'With --fn: as in a recording'),
    scratch: text('With --fn: memory for trampolines, as in a recording: ADDR,SIZE or hidden'),
    depth: parsed('Only so many levels', count('--depth'), { alias: 'D' }),
    sort: choice(graphSortKeys, 'The most first', { default: 'total' }),
    top: top('Only so many callees of each'),
  },
});
export type GraphArguments = ArgumentsOf<typeof graph>;

/** With --fn, and without it. */
export const ofLiveGraph = ['duration', 'max-events', 'engine', 'scratch'] as const;
export const ofSavedGraph = ['json', 'plugin', 'from', 'to', 'filter', 'top'] as const;

export function checkGraph(given: GraphArguments & Behind): void {
  const { fn, trace, pid } = given;
  const isLive = fn !== undefined;
  const where = givenOf(given, ['remote', 'pid']);
  if (where.length > 1) throw usage('--pid and --remote do not go together', 'leave one of them out');
  if (!isLive && where.length > 0)
    throw usage(`--${where[0]} needs --fn: where the graph begins`, "try --fn 'net::rx'");
  if (trace === undefined && pid === undefined) {
    if (isLive) throw usage('no program is given', "rsptrace graph --fn 'GLOB' ./program");
    throw usage('no trace is given', 'rsptrace graph boot.pftrace');
  }
  if (given['--'] !== undefined && (!isLive || where.length > 0)) {
    const hint = "rsptrace graph --fn 'GLOB' ./program -- its arguments";
    throw usage('only a program that is started takes arguments behind --', hint);
  }
  const [ofSaved] = givenOf(given, ['function', ...ofSavedGraph]);
  const [ofLive] = givenOf(given, ofLiveGraph);
  if (isLive && ofSaved) throw usage(`--${ofSaved} is for saved traces`, 'record a .pftrace and ask that');
  if (!isLive && ofLive) throw usage(`--${ofLive} needs --fn`, 'a saved trace takes the function behind its name');
}

const diffSortKeys = ['delta', 'percent', 'before', 'after', 'name'] as const;

export const diff = declared({
  about: 'what is slower, faster, new and gone between two saved traces',
  positionals: { ...savedTrace, other: required('The trace to compare with it') },
  options: {
    ...selectionOptions,
    by: choice(['latency', 'await'], 'Averages: how long a Future lived, a request for example, or a wait at a line'),
    sort: choice(diffSortKeys, 'The most first', { default: 'delta' }),
    top: top('Only so many rows'),
    'fail-on': list(
      "Exit status 4 if the total grew by more, or is new: '+5% fn:boot'; 'new fn:GLOB', 'gone fn:GLOB' if there are such; repeatable",
      failOn,
    ),
  },
});
export type DiffArguments = ArgumentsOf<typeof diff>;

export function checkDiff({ by, filter }: DiffArguments): void {
  if (by) checkNamesAlone(`--by ${by}`, filter);
}

/** `+5% fn:boot`: the total of what matches may grow by so much. `new fn:GLOB`, `gone fn:GLOB`: there may be none. */
export interface FailOn {
  readonly text: string;
  readonly limit: number | 'new' | 'gone';
  readonly kind: 'fn' | 'poll' | 'latency' | 'await';
  readonly glob: string;
}

function failOn(words: string): FailOn {
  const pattern = /^(?:\+?(\d+(?:\.\d+)?) ?% ?|(new|gone) +)(fn|poll|latency|await):(.+)$/;
  const [, number, change, kind, glob] = pattern.exec(words.trim()) ?? [];
  if (glob === undefined) {
    throw new Error(
      `--fail-on takes a growth and a name: '+5% fn:boot', 'new fn:net::**', 'gone fn:boot', not '${words}'`,
    );
  }
  const limit = change === 'new' || change === 'gone' ? change : Number(number);
  return { text: words, limit, kind: kind as FailOn['kind'], glob };
}

export const recover = declared({
  about: 'the whole trace of a recording that was killed before it had understood all records',
  positionals: { trace: required('The trace that was being recorded') },
  options: {
    plugin,
    output: text('Another file than this trace, of the format of its extension', { alias: 'o' }),
    force: flag('Overwrite what -o names'),
    json,
    ...logOptions,
  },
});
export type RecoverArguments = ArgumentsOf<typeof recover>;

export const dump = declared({
  about: 'the records of a recording, decoded, with the events of each: --keep-records keeps them',
  positionals: { trace: required('The trace, or its .records') },
  options: {
    plugin,
    explain: parsed(
      'Only this event, by its number: its records, their clock, and how its duration follows from them',
      count('--explain'),
    ),
    json: flag('JSON lines on stdout'),
    ...logOptions,
  },
});
export type DumpArguments = ArgumentsOf<typeof dump>;

/** Where a trace is written to. */
const outputOptions = {
  plugin,
  output: text('The file or folder to write. Its extension chooses the format: {extensions}', {
    alias: 'o',
    demandOption: true,
  }),
  format: text('The format, whatever the extension: folded, pftrace'),
  force: flag('Overwrite what is there'),
};

export const convert = declared({
  about: 'a saved trace in another format: -o OUT',
  positionals: savedTrace,
  options: { ...selectionOptions, ...outputOptions },
});
export type ConvertArguments = ArgumentsOf<typeof convert>;

export const merge = declared({
  about: 'several traces on one timeline: -o OUT',
  positionals: {
    ...savedTrace,
    others: many('The traces to put beside it: of rsptrace, of Perfetto, of Chrome (.json), of uftrace (a folder)'),
  },
  options: {
    json,
    ...outputOptions,
    offset: list('How much later than the first trace each of the others began: 1.5ms, -20us; one for each', offsetOf),
    align: list(
      'What happened at the same moment in all: fn:GLOB, or a time of each; one for all, or one for each',
      landmark('--align'),
    ),
  },
});
export type MergeArguments = ArgumentsOf<typeof merge>;

export function checkMerge({ others, offset, align }: MergeArguments): void {
  const traces = others.length + 1;
  if (offset.length > 0 && align.length > 0) throw usage('--offset and --align do not go together');
  if (offset.length > 0 && offset.length !== traces - 1) {
    throw usage(`--offset is needed ${traces - 1} times, for each trace but the first`);
  }
  if (align.length > 1 && align.length !== traces) {
    throw usage(`--align is needed once, or ${traces} times: once for each trace`);
  }
}

function offsetOf(words: string): number {
  const [, sign, length = ''] = /^([-+]?)(.*)$/.exec(words.trim()) ?? [];
  const found = timeOf(length, units);
  if (found === undefined) throw new Error(`--offset takes a length of time: 1.5ms, -20us, not '${words}'`);
  // Times are below 2^53.
  if (found > 2 ** 52) throw new Error(`--offset takes up to 52 days, not '${words}'`);
  return Math.round(found) * (sign === '-' ? -1 : 1);
}

export const open = declared({
  about: 'shows a saved trace in a browser: as an HTML report, or in ui.perfetto.dev',
  positionals: { trace: required('A .pftrace, .pftrace.gz, .json or .html, or a directory of uftrace') },
  options: {
    plugin,
    browser: flag('Open a browser; --no-browser prints the address', { default: true }),
    perfetto: flag('Show it in ui.perfetto.dev, which fetches it from this machine'),
    port: parsed('Where it is served. Default: a free one; with --perfetto 9001, the only one it may fetch from', port),
  },
});
export type OpenArguments = ArgumentsOf<typeof open>;

function port(words: string): number {
  const given = count('--port')(words);
  if (given <= 65_535) return given;
  throw new Error(`--port takes a port of this machine, 1 to 65535, not ${given}`);
}

export const check = declared({
  about: 'whether a saved trace keeps the budgets of a file; --update writes them',
  positionals: savedTrace,
  options: {
    json,
    ...windowOptions,
    ...checkReportOptions,
    budget: text(budgetText, { demandOption: true }),
    update: flag(
      'Write the limits of this trace into the budget file, with head room; a new file gets budgets for all that was traced',
    ),
    force: flag('Overwrite the files of --junit and --markdown'),
    /** A share: 0.25 for a quarter. */
    headroom: parsed('How far --update sets limits from what was measured', share, { default: '25%' }),
  },
});
export type CheckArguments = ArgumentsOf<typeof check>;

function share(words: string): number {
  const [, number] = /^(\d+(?:\.\d+)?) ?%$/.exec(words.trim()) ?? [];
  if (number !== undefined && Number(number) <= 1000) return Number(number) / 100;
  throw new Error(`--headroom takes a share, as 25% or 0%, not '${words}'`);
}

const units = ['ns', 'us', 'ms', 's', 'm'] as const;

/** A time of the trace, or the first entry of a function. */
export function landmark(option: string) {
  return (words: string): Landmark => {
    if (words.startsWith('fn:') && words.length > 3) return compileGlob(words.slice(3));
    const time = timeOf(words, units);
    if (time !== undefined) return Math.round(time);
    // The formats are not loaded for this.
    const format = option === '--to' && /^[a-z]+$/.test(words) ? '; a format is named by the extension of -o' : '';
    throw new Error(
      `${option} takes a time of the trace or a function: 1.2s, 350us, fn:init_done, not '${words}'${format}`,
    );
  };
}
