import type { Argv } from 'yargs';
import { RsptraceError } from '../base/errors.js';
import { last } from './options.js';
import {
  type SavedTraceArguments,
  savedTraceOptions,
  type WindowArguments,
  windowOptions,
} from './saved-trace-options.js';

/** Where the outcome of a check goes, besides stdout. */
export interface CheckReportArguments {
  readonly junit: string | undefined;
  readonly markdown: string | undefined;
  readonly github: boolean;
  readonly strict: boolean;
}

export interface CheckArguments extends SavedTraceArguments, WindowArguments, CheckReportArguments {
  readonly budget: string;
  readonly update: boolean;
  /** A share: 0.25 for a quarter. */
  readonly headroom: number;
}

const file = { type: 'string', requiresArg: true, coerce: last<string> } as const;

export const budgetOption = {
  ...file,
  describe: 'The budget file: what must come, and how long it may take (JSON)',
} as const;

export function checkReportOptions<T>(args: Argv<T>) {
  return args
    .option('junit', { ...file, describe: 'Write JUnit XML into this file: a test case a limit' })
    .option('markdown', {
      ...file,
      describe: 'Write a summary into this file. Default in GitHub Actions: the page of the step',
    })
    .option('github', {
      type: 'boolean',
      default: process.env.GITHUB_ACTIONS === 'true',
      defaultDescription: 'in GitHub Actions',
      describe: 'Print annotations for what is broken: ::error file=,line=::',
    })
    .option('strict', {
      type: 'boolean',
      default: false,
      describe: 'A budget that names nothing in the trace is broken, too',
    });
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
