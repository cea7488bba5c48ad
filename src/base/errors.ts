/**
 * An error that a person can act on: a stable `code` (`RSP_TIMEOUT`, `ELF_NOT_ELF`, ...), one sentence, and, where one is
 * known, a `hint` that says what to do about it. The CLI prints exactly these and nothing else.
 */
export class RsptraceError extends Error {
  readonly code: string;
  readonly hint: string | undefined;

  constructor(code: string, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'RsptraceError';
    this.code = code;
    this.hint = options.hint;
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whatever was thrown. A defect of our own must not keep us from leaving the target as it was: it is told like any other error. */
export function toError(thrown: unknown): RsptraceError {
  if (thrown instanceof RsptraceError) return thrown;
  const hint = 'this is a defect of rsptrace: please report it, with RSPTRACE_STACK=1 set to see where';
  return new RsptraceError('INTERNAL', messageOf(thrown), { hint, cause: thrown });
}
