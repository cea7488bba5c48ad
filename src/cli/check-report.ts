import { appendFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { messageOf, RsptraceError, toError } from '../base/errors.js';
import { type Checked, checkedMarkdown, githubAnnotations, isBroken, junitXml } from '../check/index.js';
import { errorJson } from './failure.js';
import type { FileArguments } from './files.js';
import { isThere } from './open-output.js';
import type { CheckReportArguments } from './options/common.js';

/** Writes the reports that options ask for. Throws `CHECK_CANNOT_WRITE`. `stream`: for annotations. */
export function reportChecked(
  checked: Checked,
  { junit, markdown, github }: CheckReportArguments,
  stream: NodeJS.WritableStream,
): void {
  const { GITHUB_WORKSPACE: workspace = process.cwd(), GITHUB_STEP_SUMMARY: summary } = process.env;
  if (github) stream.write(githubAnnotations(checked, workspace));
  if (junit !== undefined) writing('--junit', junit, () => writeFileSync(junit, junitXml(checked)));
  if (markdown !== undefined) writing('--markdown', markdown, () => writeFileSync(markdown, checkedMarkdown(checked)));
  // The page of a step is one file for all of its commands.
  else if (github && summary)
    writing('GITHUB_STEP_SUMMARY', summary, () => appendFileSync(summary, checkedMarkdown(checked)));
}

/** The same where a recording is over, whose outcome must not be lost with its reports. */
export function whyUnreported(...reported: Parameters<typeof reportChecked>): RsptraceError | undefined {
  try {
    reportChecked(...reported);
    return undefined;
  } catch (thrown) {
    return toError(thrown);
  }
}

/** Whether a part of it is broken: the guest's own failures are distinguished from budgets. */
export function brokenParts(checked: Checked): { readonly guest: boolean; readonly budget: boolean } {
  const of = (isGuest: boolean): boolean =>
    isBroken({ ...checked, verdicts: checked.verdicts.filter(({ section }) => (section === 'guest') === isGuest) });
  return { guest: of(true), budget: of(false) };
}

function writing(option: string, path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw new RsptraceError(
      'CHECK_CANNOT_WRITE',
      `the report of ${option} cannot be written to ${path}: ${messageOf(error)}`,
      {
        hint: 'name a file that can be written',
        cause: error,
      },
    );
  }
}

/** A command that may have reports for CI. */
export type MayReport = FileArguments & Partial<CheckReportArguments> & { readonly json?: boolean };

/** A report itself cannot be written, or must not. */
const isOfReports: ReadonlySet<string> = new Set(['CHECK_CANNOT_WRITE', 'OUTPUT_IS_INPUT', 'OUTPUT_TWICE']);

/** A command has failed before it had anything to check: its reports say so, because CI reads nothing else. */
export function reportFailure(args: MayReport, thrown: unknown): void {
  const error = toError(thrown);
  if (isOfReports.has(error.code) || args['dry-run']) return;
  const mayWrite = (path: string | undefined): boolean =>
    path !== undefined && (error.code !== 'OUTPUT_EXISTS' || !isThere(path));
  const { junit, markdown, github = false, elf, trace, command = [], budget } = args;
  const kernel = command[command.indexOf('-kernel') + 1];
  reportChecked(
    {
      ...{ program: basename(elf ?? trace ?? kernel ?? 'rsptrace'), trace: trace ?? '' },
      ...{ budget, verdicts: [], isStrict: args.strict ?? false, error: errorJson(error) },
    },
    {
      ...{ github, strict: false },
      junit: mayWrite(junit) ? junit : undefined,
      markdown: mayWrite(markdown) ? markdown : undefined,
    },
    args.json ? process.stderr : process.stdout,
  );
}
