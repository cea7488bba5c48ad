import type { AnyBegin, CallBegin } from '../events/events.js';
import { spaceOf } from '../events/processes.js';

/** A system call, and what the kernel ran first for it: numbers from 1. */
export interface Served {
  /** Of a system call. */
  readonly call?: number;
  /** Of the call or poll that a hart ran next in the kernel: the number of the system call. */
  readonly by?: number;
}

/**
 * Finds what serves the system calls of a kernel's programs: the first call or poll of the kernel on the same hart. None
 * does if another trap or a switch of threads comes first.
 */
export class ServedCalls {
  /** By hart: the system call whose server has not been seen yet. */
  readonly #waiting: ({ readonly begin: CallBegin; readonly number: number } | undefined)[] = [];
  /** Those that have one. */
  readonly #served = new Map<AnyBegin, number>();
  #count = 0;

  began(begin: AnyBegin): Served | undefined {
    const { hart } = begin;
    const kind = begin.type === 'call-begin' ? begin.function.kind : undefined;
    const waiting = this.#waiting[hart];
    if (kind === 'syscall' && spaceOf(begin) !== undefined) {
      const number = ++this.#count;
      this.#waiting[hart] = { begin: begin as CallBegin, number };
      return { call: number };
    }
    if (waiting === undefined || kind === 'lock') return undefined;
    // A thread's own track says the same as its hart's.
    if (kind === 'thread' && begin.thread) return undefined;
    this.#waiting[hart] = undefined;
    if (kind !== undefined || spaceOf(begin) !== undefined) return undefined;
    this.#served.set(waiting.begin, waiting.number);
    return { by: waiting.number };
  }

  /** The number of a system call that ends and was served. */
  ended(begin: AnyBegin): number | undefined {
    if (begin.type !== 'call-begin' || begin.function.kind !== 'syscall') return undefined;
    if (this.#waiting[begin.hart]?.begin === begin) this.#waiting[begin.hart] = undefined;
    const number = this.#served.get(begin);
    if (number !== undefined) this.#served.delete(begin);
    return number;
  }

  forget(): void {
    this.#waiting.length = 0;
  }
}
