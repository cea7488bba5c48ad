import { checkOptions } from './check-options.js';
import { type Command, command } from './command.js';
import {
  convertOptions,
  diffOptions,
  dumpOptions,
  graphOptions,
  infoOptions,
  mergeOptions,
  openOptions,
  recoverOptions,
  replayOptions,
  reportOptions,
} from './saved-trace-options.js';

/** The commands that ask a saved trace. */
export const savedTraceCommands: Readonly<Record<string, Command>> = {
  report: command(
    '<trace>',
    'where the time of a saved trace went: calls, total, self, percentiles, callers',
    reportOptions,
    async (args) => (await import('./report.js')).report(args),
  ),
  info: command('<trace>', 'what a saved trace holds: target, clock, probes, losses', infoOptions, async (args) =>
    (await import('./info.js')).info(args),
  ),
  replay: command('<trace>', 'what happened in a saved trace, call by call, indented', replayOptions, async (args) =>
    (await import('./replay.js')).replay(args),
  ),
  graph: command(
    '[trace] [function]',
    'the calls of a saved trace merged into one tree; with --fn those of a program or a target, as they happen',
    graphOptions,
    async (args) => {
      const { fn, trace } = args;
      if (fn !== undefined) return (await import('./live-graph.js')).liveGraph({ ...args, fn });
      return (await import('./graph.js')).graph({ ...args, trace: trace as string });
    },
  ),
  convert: command('<trace>', 'a saved trace in another format: -o OUT', convertOptions, async (args) =>
    (await import('./convert.js')).convert(args),
  ),
  recover: command(
    '<trace>',
    'the whole trace of a recording that was killed before it had understood all records',
    recoverOptions,
    async (args) => (await import('./recover.js')).recover(args),
  ),
  dump: command(
    '<trace>',
    'the records of a recording, decoded, with the events of each: --keep-records keeps them',
    dumpOptions,
    async (args) => (await import('./dump.js')).dump(args),
  ),
  check: command(
    '<trace>',
    'whether a saved trace keeps the budgets of a file; --update writes them',
    checkOptions,
    async (args) => (await import('./check.js')).check(args),
  ),
  diff: command(
    '<trace> <other>',
    'what is slower, faster, new and gone between two saved traces',
    diffOptions,
    async (args) => (await import('./diff.js')).diff(args),
  ),
  merge: command('<trace> <others..>', 'several traces on one timeline: -o OUT', mergeOptions, async (args) =>
    (await import('./merge.js')).merge(args),
  ),
  open: command('<trace>', 'serves a saved trace to ui.perfetto.dev, and opens that', openOptions, async (args) =>
    (await import('./open.js')).open(args),
  ),
};
