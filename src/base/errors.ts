import { tmpdir } from 'node:os';
import { type ErrorCode, errorCodes } from './error-codes.js';

export { type ErrorCode, errorCodes, type OwnErrorCode } from './error-codes.js';

/**
 * An error for the user: a stable `code` (`RSP_TIMEOUT`, ...) and one sentence. If a way out is known, a `hint` says
 * it. The CLI prints exactly these. Code that uses the library throws errors with codes of the form `name:CODE`
 * ({@link OwnErrorCode}), for instance in a trace sink.
 */
export class RsptraceError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'RsptraceError';
    this.code = code;
    this.hint = options.hint;
  }
}

/**
 * The error for a part of rsptrace's own installation that cannot be loaded: a package that a bundle or a pruned
 * container has left out. Fewer results without an error would go unnoticed.
 */
export function partMissing(name: string, consequence: string, cause: unknown): RsptraceError {
  return new RsptraceError(
    'PART_MISSING',
    `${consequence}: the package ${name} cannot be loaded (${firstLine(messageOf(cause))})`,
    { hint: `install rsptrace with all its packages (npm ci), or put ${name} with its files into the bundle`, cause },
  );
}

/**
 * Whether a part of a file cannot be read, so that the rest of it may be used with a warning. Any other error
 * concerns the whole file (it is too costly to read, or a part of the installation is missing).
 */
export function isDamage(error: unknown): error is RsptraceError {
  return error instanceof RsptraceError && /^(?:INPUT_|DWARF_|ELF_DAMAGED$)/.test(error.code);
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Code that is not rsptrace's own, by the URL of its module: the path that the user knows it by. */
const foreignCode = new Map<string, string>();

/** From now on an error that is thrown in this module is reported as its own, not as a defect of rsptrace. */
export function addForeignCode(url: string, path: string): void {
  foreignCode.set(url, path);
}

/**
 * Makes an error of anything that was thrown. A defect of rsptrace itself must not prevent it from leaving the target
 * as it was: it is reported like any other error. A plug-in need not know this class: its error's own `code`
 * (`name:CODE`) and `hint` are taken.
 */
export function toError(thrown: unknown): RsptraceError {
  if (thrown instanceof RsptraceError) return thrown;
  const foreign = foreignError(thrown);
  if (foreign) return foreign;
  const wanted = /^Cannot find (?:package|module) '([^']+)'/.exec(messageOf(thrown))?.[1];
  const missing = wanted && /^(?:@[^/]+\/)?[^/]+/.exec(wanted.split('node_modules/').at(-1) ?? '')?.[0];
  if (missing !== undefined) return partMissing(missing, 'rsptrace is not installed completely', thrown);
  const { code, path } = thrown instanceof Error ? (thrown as NodeJS.ErrnoException) : {};
  if (code === 'ENOSPC' || (typeof path === 'string' && path.startsWith(tmpdir()))) {
    const hint = 'TMPDIR names the folder for files of its own, which needs room';
    return new RsptraceError('OUTPUT_CANNOT_WRITE', messageOf(thrown), { hint, cause: thrown });
  }
  const hint = 'this is a defect of rsptrace: please report it, with RSPTRACE_STACK=1 set to see where';
  return new RsptraceError('INTERNAL', messageOf(thrown), { hint, cause: thrown });
}

function foreignError(thrown: unknown): RsptraceError | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { code, hint, stack = '' } = thrown as Error & { readonly code?: unknown; readonly hint?: unknown };
  const [, path] = [...foreignCode].find(([url]) => stack.includes(url)) ?? [];
  if (path === undefined) return undefined;
  if (typeof code === 'string' && isKnownCode(code)) {
    const way = typeof hint === 'string' ? { hint } : {};
    return new RsptraceError(code, thrown.message, { ...way, cause: thrown });
  }
  return new RsptraceError('PLUGIN_FAILED', `the plug-in ${path} failed: ${thrown.message}`, {
    hint: 'RSPTRACE_STACK=1 shows where',
    cause: thrown,
  });
}

/** Its own; or one of rsptrace's, out of another copy of the library. */
function isKnownCode(code: string): code is ErrorCode {
  return /^[\w-]+:\w+$/.test(code) || errorCodes.some((known) => known === code);
}

/** Why something cannot be had, in words for a person: an answer, not an error. */
export interface Refusal {
  readonly refused: string;
  /** What would help, where that is known. */
  readonly wayOut?: string;
}

export function isRefusal(value: object): value is Refusal {
  return 'refused' in value;
}
