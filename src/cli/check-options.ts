import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { budgetOption, type CheckReportArguments, checkReportOptions } from './check-report-options.js';
import { last } from './options.js';
import {
  type SavedTraceArguments,
  savedTraceOptions,
  type WindowArguments,
  windowOptions,
} from './saved-trace-options.js';

export interface CheckArguments extends SavedTraceArguments, WindowArguments, CheckReportArguments {
  readonly budget: string;
  readonly update: boolean;
  /** A share: 0.25 for a quarter. */
  readonly headroom: number;
}

export function checkOptions<T>(args: Argv<T>) {
  return checkReportOptions(windowOptions(savedTraceOptions(args)))
    .option('budget', { ...budgetOption, demandOption: true })
    .option('update', {
      type: 'boolean',
      default: false,
      describe:
        'Write the limits of this trace into the budget file, with head room; a new file gets budgets for all that was traced',
    })
    .option('force', {
      type: 'boolean',
      default: false,
      describe: 'Overwrite the files of --junit and --markdown',
    })
    .option('headroom', {
      type: 'string',
      requiresArg: true,
      default: '25%',
      coerce: share,
      describe: 'How far --update sets limits from what was measured',
    }) as Argv<T & CheckArguments>;
}

function share(given: string | readonly string[]): number {
  const text = last(given);
  const [, number] = /^(\d+(?:\.\d+)?) ?%$/.exec(text.trim()) ?? [];
  if (number === undefined || Number(number) > 1000) {
    throw new RsptraceError('USAGE', `--headroom takes a share, as 25% or 0%, not '${text}'`);
  }
  return Number(number) / 100;
}
