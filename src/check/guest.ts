// What a guest itself shows of how it went: its console, its exit status, a panic, and the time that it took.
import { timeText } from '../trace/index.js';
import type { Verdict } from './section.js';

export interface GuestLimits {
  /** Texts of the console that must come, and that must not come. */
  readonly expected: readonly string[];
  readonly failing: readonly string[];
  /** A text of the console that ends the run. */
  readonly until: string | undefined;
  /** Milliseconds of the host. */
  readonly hostMs: number | undefined;
  /** Nanoseconds of the guest, from the first event on. */
  readonly guestNs: number | undefined;
  /** The exit statuses that mean success. */
  readonly success: readonly number[];
}

/** How a guest ended that nobody ended. */
export interface GuestExit {
  readonly status: number | null;
  readonly signal: string | null;
}

/** How long a guest may go on talking after a text that fails it, in milliseconds: a panic's message has more lines. */
const lastWordsMs = 300;
/** The part of an unfinished line that is kept, in characters. */
const longestLine = 4096;

/** Watches a guest, ends its run where a limit says so, and says how it went. */
export class GuestWatch implements Disposable {
  readonly #limits: GuestLimits;
  readonly #end: () => void;
  readonly #decoder = new TextDecoder();
  #line = '';
  readonly #seen = new Set<string>();
  /** The line in which a text came that fails it. */
  readonly #failed = new Map<string, string>();
  #late: 'host' | 'guest' | undefined;
  #timers: NodeJS.Timeout[] = [];

  /** `end` ends the run. */
  constructor(limits: GuestLimits, end: () => void) {
    this.#limits = limits;
    this.#end = end;
  }

  /** The guest is about to run. */
  begin(): void {
    const { hostMs } = this.#limits;
    if (hostMs === undefined) return;
    this.#after(hostMs, () => {
      this.#late ??= 'host';
      this.#end();
    });
  }

  /** Guest time of an event. */
  time(nanos: number): void {
    const { guestNs } = this.#limits;
    if (guestNs === undefined || nanos < guestNs || this.#late) return;
    this.#late = 'guest';
    this.#end();
  }

  console(bytes: Uint8Array): void {
    const { expected, failing, until } = this.#limits;
    if (expected.length + failing.length === 0 && until === undefined) return;
    const lines = (this.#line + this.#decoder.decode(bytes, { stream: true })).split(/\r?\n|\r/);
    for (const line of lines) {
      for (const text of expected) if (line.includes(text)) this.#seen.add(text);
      for (const text of failing) if (line.includes(text)) this.#fails(text, line);
      if (until !== undefined && line.includes(until)) this.#end();
    }
    this.#line = (lines.at(-1) ?? '').slice(-longestLine);
  }

  /** `exit`: undefined for a guest that was ended. */
  verdicts(exit: GuestExit | undefined): Verdict[] {
    const { expected, failing, success, hostMs, guestNs } = this.#limits;
    return [
      ...expected.map((text) => {
        const isSeen = this.#seen.has(text);
        return verdict(`console '${text}'`, isSeen, 'comes', isSeen ? 'came' : 'never came');
      }),
      ...failing.map((text) => {
        const line = this.#failed.get(text);
        return verdict(
          `console '${text}'`,
          line === undefined,
          'never comes',
          line === undefined ? 'never came' : `came: ${line.trim()}`,
        );
      }),
      ...(hostMs === undefined
        ? []
        : [timeVerdict('time limit', this.#late !== 'host', `${hostMs / 1000} s of the host`)]),
      ...(guestNs === undefined
        ? []
        : [timeVerdict('guest time limit', this.#late !== 'guest', `${timeText(guestNs)} of the guest`)]),
      ...(exit === undefined ? [] : [exitVerdict(exit, success)]),
    ];
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #fails(text: string, line: string): void {
    if (this.#failed.size === 0) this.#after(lastWordsMs, this.#end);
    this.#failed.set(text, line);
  }

  #after(ms: number, then: () => void): void {
    this.#timers.push(setTimeout(then, ms));
  }
}

function verdict(subject: string, isKept: boolean, limit: string, measured: string): Verdict {
  return { section: 'guest', subject, state: isKept ? 'kept' : 'broken', limit, measured };
}

function timeVerdict(subject: string, isKept: boolean, limit: string): Verdict {
  return verdict(subject, isKept, `at most ${limit}`, isKept ? 'in time' : 'it was ended then');
}

function exitVerdict({ status, signal }: GuestExit, success: readonly number[]): Verdict {
  const isKept = status !== null && success.includes(status);
  const measured = status === null ? `ended by ${signal}` : `status ${status}`;
  return { ...verdict('exit status', isKept, `status ${success.join(' or ')}`, measured), value: status ?? undefined };
}

/** The verdict on a panic. `where`: the function that panicked, and its place. */
export function panicVerdict(where: {
  readonly function: string;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
}): Verdict {
  const { file, line } = where;
  return { ...verdict('panic', false, 'never panics', `in ${where.function}`), place: { file, line } };
}
