import { basename } from 'node:path';
import { toError } from '../base/errors.js';
import { reportChecked } from './check-report.js';
import { errorJson } from './failure.js';
import type { FileArguments } from './files.js';
import { isThere } from './open-output.js';
import type { CheckReportArguments } from './options/common.js';

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
