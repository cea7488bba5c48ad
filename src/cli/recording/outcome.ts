import { basename } from 'node:path';
import { type Checked, checkedText, isBroken, type Verdict } from '../../check/index.js';
import { jsonLine } from '../../text/index.js';
import { brokenParts, reportChecked } from '../check-report.js';
import { ExitCode, reportError } from '../failure.js';
import type { RecordingArguments } from '../options/recording.js';
import type { PanicLook } from '../panic-report.js';
import { isColored, lineWidth } from '../terminal.js';
import { reportTables } from './closing.js';
import { recordingJson } from './json.js';
import { reportLimits } from './limits.js';
import type { Prepared } from './prepare.js';
import type { Recorded } from './session.js';

/** The table, or the JSON object; and the error that ended it early, if one did. Gives the exit status. */
export function report(prepared: Prepared, recording: Recorded, guest?: Guest): number {
  const { args, reports } = prepared;
  const { error } = recording;
  const checked = { ...checkedOf(prepared, guest), error };
  if (args.json) process.stdout.write(jsonLine(recordingJson(prepared, recording, guest, checked)));
  else reportTables(prepared, recording);
  reportLimits(args, recording, guest);
  tellChecked(args, checked, guest);
  if (error) {
    reportError(error);
    return ExitCode.cutShort;
  }
  const broken = brokenParts(checked);
  if (broken.guest) return (guest?.isStatusOurs && guest.status) || ExitCode.guestFailed;
  const isFound = args.findings === 'error' && reports.some((each) => (each.findings?.(recording) ?? 0) > 0);
  return isFound || broken.budget ? ExitCode.limitBroken : ExitCode.recorded;
}

/** What budgets say of the trace, and limits of the guest. */
function checkedOf({ args, program, checker }: Prepared, guest: Guest | undefined): Checked {
  const verdicts = [...(guest?.verdicts ?? []), ...(checker?.verdicts() ?? [])];
  const { output: trace, budget, strict: isStrict } = args;
  return { program: basename(program.elf.path), trace, budget, verdicts, isStrict };
}

/** A guest that only ended as it should needs no words. */
function tellChecked(args: RecordingArguments, checked: Checked, guest: Guest | undefined): void {
  const stream = args.json ? process.stderr : process.stdout;
  if (guest?.panic && !args.json) stream.write(`\n${guest.panic.text}`);
  const isAsked = checked.verdicts.length > 1 || isBroken(checked);
  if (isAsked && !args.json) stream.write(`\n${checkedText(checked, { color: isColored(), width: lineWidth() })}`);
  const isReported = checked.error !== undefined || args.junit !== undefined || args.markdown !== undefined;
  if (isAsked || isReported) reportChecked(checked, args, stream);
}

/** A machine or a program that rsptrace has started, and how it ended. */
export interface Guest {
  /** In words; undefined if it was left. */
  readonly exit: string | undefined;
  /** Null if it was ended, or a signal ended it. */
  readonly status: number | null;
  /** Its status is to be that of rsptrace, where it fails. */
  readonly isStatusOurs: boolean;
  readonly verdicts: readonly Verdict[];
  readonly panic: PanicLook | undefined;
}
