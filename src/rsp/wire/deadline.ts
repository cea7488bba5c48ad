import { RsptraceError } from '../../base/errors.js';

/**
 * If one answer may take one timeout, several answers may take this many: an answer that comes in drops is no
 * progress.
 */
export const operationTimeouts = 12;
/** And one more timeout for each so many bytes that have come. */
const bytesATimeout = 64 * 1024;

/** How long one operation of several answers may take. */
export class Deadline {
  readonly #what: string;
  readonly #timeoutMs: number;
  readonly #begun = performance.now();

  /** `what` the stub is reading for us, for the message. */
  constructor(what: string, timeoutMs: number) {
    this.#what = what;
    this.#timeoutMs = timeoutMs;
  }

  /** Throws `RSP_TIMEOUT` if the time is over. `bytes`: how many have come. */
  check(bytes: number): void {
    const ms = this.#timeoutMs * (operationTimeouts + bytes / bytesATimeout);
    if (performance.now() - this.#begun > ms) throw tooSlow(this.#what, ms);
  }
}

export function tooSlow(what: string, ms: number): RsptraceError {
  return new RsptraceError('RSP_TIMEOUT', `The stub has not finished ${what} within ${Math.round(ms)} ms`, {
    hint: 'Its answers come in drops; a slow probe or a slow link needs a longer --timeout',
  });
}
