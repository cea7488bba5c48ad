import type { Argv } from 'yargs';

/** Where the outcome of a check goes, besides stdout. */
export interface CheckReportArguments {
  readonly junit: string | undefined;
  readonly markdown: string | undefined;
  readonly github: boolean;
  readonly strict: boolean;
}

const lastOf = (given: string | readonly string[]): string => (Array.isArray(given) ? given.at(-1) : given) as string;

const file = { type: 'string', requiresArg: true, coerce: lastOf } as const;

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
