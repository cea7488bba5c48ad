import { fstatSync } from 'node:fs';
import { type ErrorCode, type RsptraceError, toError } from '../base/errors.js';
import { jsonLine, textLines, visible, wrapped } from '../text/index.js';
import { sizeOf } from './terminal-size.js';

const NEWLINE = 10;

export const ExitCode = {
  recorded: 0,
  failed: 1,
  usage: 2,
  /** An error cut the recording short; what was recorded is kept. */
  cutShort: 3,
  /** A limit that the user set is broken: a budget, `--fail-on`, `--findings error`. */
  limitBroken: 4,
  /** The guest failed: it panicked, ended with another status than success, or said what it must not say. */
  guestFailed: 5,
} as const;

/**
 * Errors that the command line alone shows, whatever its files hold and its target answers. docs/record.md lists
 * them.
 */
const usageCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'USAGE',
  'EXPRESSION_SYNTAX',
  'OUTPUT_IS_INPUT',
  'OUTPUT_TWICE',
  'PROBE_SYNTAX',
  'RSP_BAD_ADDRESS',
  'RUN_HAS_STUB',
  'RUN_NO_COMMAND',
  'RUN_NO_ELF',
  'RUN_NOT_DETERMINISTIC',
  'SCRATCH_SYNTAX',
  'SETTINGS_INVALID',
  'TRACE_UNKNOWN_FORMAT',
]);

/** An error as `--json` shows it. */
interface ErrorJson {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
}

export function errorJson(error: RsptraceError): ErrorJson {
  const { code, message, hint } = error;
  return hint === undefined ? { code, message } : { code, message, hint };
}

/** An error for the user, on stderr: one sentence with its code, and what to do about it. */
export function reportError(error: RsptraceError): void {
  // Other hints may have names of the target's in them, and these line breaks.
  const lines = error.code === 'USAGE' ? error.hint?.split('\n') : error.hint && [error.hint];
  const hint = (lines || []).map((line) => `  ${line}`);
  writeMessage(sentenceLines([`rsptrace: ${error.message} [${error.code}]`, ...hint], process.stderr));
}

/** Reports an error; with `--json` also as the one object on stdout. Gives the exit status. */
export function fail(thrown: unknown, { json }: { readonly json: boolean }): number {
  const error = toError(thrown);
  reportError(error);
  if (process.env.RSPTRACE_STACK && thrown instanceof Error)
    process.stderr.write(textLines(thrown.stack?.split('\n') ?? []));
  if (json) process.stdout.write(jsonLine({ version: 1, error: errorJson(error) }));
  return usageCodes.has(error.code) ? ExitCode.usage : ExitCode.failed;
}

/** Those that apply: of the others the condition stands in their place. */
export function thoseOf(sentences: readonly (string | false | undefined)[]): string[] {
  return sentences.filter((sentence) => typeof sentence === 'string');
}

/** What a person is to know, apart from the data: a line each on stderr. */
export function note(...sentences: readonly (string | false | undefined)[]): void {
  const lines = thoseOf(sentences).map((sentence) => `rsptrace: ${sentence}`);
  if (lines.length > 0) writeMessage(sentenceLines(lines, process.stderr));
}

/** Where the target has printed the begin of a line. */
let inLine: NodeJS.WritableStream | undefined;

/** Shows what the target prints. */
export function showOutput(out: NodeJS.WritableStream, text: Uint8Array): void {
  out.write(text);
  if (text.length > 0) inLine = text.at(-1) === NEWLINE ? undefined : out;
}

/** The target has ended: what comes after its last line begins another one. */
export function endOutputLine(): void {
  inLine?.write('\n');
  inLine = undefined;
}

/** A message begins a line of its own, also where the target's output goes to the same terminal or file. */
export function writeMessage(text: string): void {
  if (inLine === process.stderr || (inLine && isOneFile())) endOutputLine();
  process.stderr.write(text);
}

function isOneFile(): boolean {
  const [out, error] = [1, 2].map((fd) => fstatSync(fd));
  return out?.dev === error?.dev && out?.ino === error?.ino;
}

/** A terminal gets lines broken between words; a file, in which other programs search, one line a sentence. */
export function sentenceLines(lines: readonly string[], stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'>): string {
  const { columns = 80 } = sizeOf(stream);
  return lines
    .map(visible)
    .flatMap((line) => (stream.isTTY ? wrapped(line, columns, `${/^ */.exec(line)?.[0]}  `) : line))
    .map((line) => `${line}\n`)
    .join('');
}

/** Whether a command line asks for JSON, also where it is wrong. Behind `--` are the words of another program. */
export function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? undefined : end).some((word) => /^--json(?:=true)?$/.test(word));
}
