import type { Argv } from 'yargs';
import { reportOptions, savedTraceOptions } from './saved-trace-options.js';

/** Wraps a command's body: checks its files before, keeps its status after. */
type Does = <T extends { readonly trace: string }>(body: (args: T) => Promise<number>) => (args: T) => Promise<void>;

/** The options of each command that asks a saved trace. */
export const savedTraceCommands = {
  report: (args: Argv) => reportOptions(args),
  info: (args: Argv) => savedTraceOptions(args),
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
    );
}
