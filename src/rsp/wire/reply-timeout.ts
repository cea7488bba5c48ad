import { RsptraceError } from '../../base/errors.js';

/** What several answers at once may take beyond that, in timeouts for each that has come. */
const EACH_ANSWER = 1 / 4;

/** Notices that a stub has been silent for too long after a request. One timer for all requests. */
export class ReplyTimeout {
  readonly #elapsed: () => void;
  readonly timeoutMs: number;
  /** The part of the timeout that may pass in silence. */
  readonly #part: () => number;
  readonly #waiting: () => boolean;
  /** When the stub last sent something, or was asked again after silence. */
  #since = 0;
  /** When it last answered, or was asked again after silence. */
  #asked = 0;
  /** When nothing was outstanding last, and how many answers have come since. */
  #begun = 0;
  #answers = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `elapsed` is called if `waiting` is true and `part` of the timeout has passed. */
  constructor(timeoutMs: number, waiting: () => boolean, part: () => number, elapsed: () => void) {
    this.timeoutMs = timeoutMs;
    this.#waiting = waiting;
    this.#part = part;
    this.#elapsed = elapsed;
  }

  /** Something was asked after silence. */
  asked(): void {
    this.#since = performance.now();
    this.#asked = this.#since;
    this.#begun = this.#since;
    this.#answers = 0;
    this.#timer ??= setTimeout(() => this.#look(), this.timeoutMs * this.#part());
  }

  /** Bytes have come. */
  heard(): void {
    this.#since = performance.now();
  }

  /** They were an answer. */
  answered(): void {
    this.#asked = this.#since;
    this.#answers++;
  }

  error(packet = ''): RsptraceError {
    const what = `The stub has not answered "${packet.slice(0, 40)}" within ${this.timeoutMs} ms`;
    return new RsptraceError('RSP_TIMEOUT', what, { hint: 'A slow probe or a slow link needs a longer --timeout' });
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #left(): number {
    const now = performance.now();
    // A stub that only shows that it works (empty O packets, notifications, an answer in drops) gets this many
    // timeouts, and no more.
    const most = this.timeoutMs * operationTimeouts;
    return Math.min(
      this.timeoutMs * this.#part() - (now - this.#since),
      most - (now - this.#asked),
      most + this.timeoutMs * EACH_ANSWER * this.#answers - (now - this.#begun),
    );
  }

  #look(): void {
    // Data that came while this thread was busy is read before silence is concluded.
    setImmediate(() => {
      this.#timer = undefined;
      if (!this.#waiting()) return;
      if (this.#left() <= 0) this.#elapsed();
      if (this.#waiting()) this.#timer ??= setTimeout(() => this.#look(), Math.max(this.#left(), 1));
    });
  }
}

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
