import { type Command, command } from './command.js';
import * as of from './options/saved-trace.js';

/** The commands that ask a saved trace. */
export const savedTraceCommands: Readonly<Record<string, Command>> = {
  report: command({
    about: 'where the time of a saved trace went: calls, total, self, percentiles, callers',
    positionals: of.savedTrace,
    options: of.reportOptions,
    check: of.checkReport,
    run: async (args) => (await import('./report.js')).report(args),
  }),
  info: command({
    about: 'what a saved trace holds: target, clock, probes, losses',
    positionals: of.savedTrace,
    options: of.selectionOptions,
    run: async (args) => (await import('./info.js')).info(args),
  }),
  replay: command({
    about: 'what happened in a saved trace, call by call, indented',
    positionals: of.savedTrace,
    options: of.selectionOptions,
    run: async (args) => (await import('./replay.js')).replay(args),
  }),
  graph: command({
    about: 'the calls of a saved trace merged into one tree; with --fn those of a program or a target, as they happen',
    usage: of.graphUsage,
    positionals: of.graphPositionals,
    options: of.graphOptions,
    check: of.checkGraph,
    run: async (args) => {
      const { fn, trace } = args;
      if (fn !== undefined) return (await import('./live-graph.js')).liveGraph({ ...args, fn });
      return (await import('./graph.js')).graph({ ...args, trace: trace as string });
    },
  }),
  convert: command({
    about: 'a saved trace in another format: -o OUT',
    positionals: of.savedTrace,
    options: of.convertOptions,
    run: async (args) => (await import('./convert.js')).convert(args),
  }),
  recover: command({
    about: 'the whole trace of a recording that was killed before it had understood all records',
    positionals: of.recoverPositionals,
    options: of.recoverOptions,
    run: async (args) => (await import('./recover.js')).recover(args),
  }),
  dump: command({
    about: 'the records of a recording, decoded, with the events of each: --keep-records keeps them',
    positionals: of.dumpPositionals,
    options: of.dumpOptions,
    run: async (args) => (await import('./dump.js')).dump(args),
  }),
  check: command({
    about: 'whether a saved trace keeps the budgets of a file; --update writes them',
    positionals: of.savedTrace,
    options: of.checkOptions,
    run: async (args) => (await import('./check.js')).check(args),
  }),
  diff: command({
    about: 'what is slower, faster, new and gone between two saved traces',
    positionals: of.diffPositionals,
    options: of.diffOptions,
    run: async (args) => (await import('./diff.js')).diff(args),
  }),
  merge: command({
    about: 'several traces on one timeline: -o OUT',
    positionals: of.mergePositionals,
    options: of.mergeOptions,
    check: of.checkMerge,
    run: async (args) => (await import('./convert.js')).merge(args),
  }),
  open: command({
    about: 'serves a saved trace to ui.perfetto.dev, and opens that; opens an HTML report',
    positionals: of.openPositionals,
    options: of.openOptions,
    run: async (args) => (await import('./open.js')).open(args),
  }),
};
