import type { Argv } from 'yargs';
import {
  convertOptions,
  diffOptions,
  graphOptions,
  replayOptions,
  reportOptions,
  savedTraceOptions,
} from './saved-trace-options.js';

/** Wraps a command's body: checks its files before, keeps its status after. */
type Does = <T extends { readonly trace: string }>(body: (args: T) => Promise<number>) => (args: T) => Promise<void>;

/** The options of each command that asks a saved trace. */
export const savedTraceCommands = {
  report: (args: Argv) => reportOptions(args),
  info: (args: Argv) => savedTraceOptions(args),
  replay: (args: Argv) => replayOptions(args),
  graph: (args: Argv) => graphOptions(args),
  convert: (args: Argv) => convertOptions(args),
  diff: (args: Argv) => diffOptions(args),
};

export function declareSavedTraceCommands(args: Argv, does: Does): Argv {
  return args
    .command(
      'report <trace>',
      'where the time of a saved trace went: calls, total, self, percentiles, callers',
      savedTraceCommands.report,
      does(async (given) => (await import('./report.js')).report(given)),
    )
    .command(
      'info <trace>',
      'what a saved trace holds: target, clock, probes, losses',
      savedTraceCommands.info,
      does(async (given) => (await import('./info.js')).info(given)),
    )
    .command(
      'replay <trace>',
      'what happened in a saved trace, call by call, indented',
      savedTraceCommands.replay,
      does(async (given) => (await import('./replay.js')).replay(given)),
    )
    .command(
      'graph <trace> [fn]',
      'the calls of a saved trace merged into one tree',
      savedTraceCommands.graph,
      does(async (given) => (await import('./graph.js')).graph(given)),
    )
    .command(
      'convert <trace>',
      'a saved trace in another format: -o OUT',
      savedTraceCommands.convert,
      does(async (given) => (await import('./convert.js')).convert(given)),
    )
    .command(
      'diff <trace> <other>',
      'what is slower, faster, new and gone between two saved traces',
      savedTraceCommands.diff,
      does(async (given) => (await import('./diff.js')).diff(given)),
    );
}
