import { type Addr, addr } from '../base/addr.js';
import type { ThreadRef } from '../trace/index.js';

/** The threads of a target, each known by its stack: one that is used again is the same. */
export class ThreadsByStack {
  readonly #threads = new Map<number, ThreadRef>();
  readonly #stackBytes: number;

  /** Every stack is so many bytes at a multiple of them. */
  constructor(stackBytes: number) {
    this.#stackBytes = stackBytes;
  }

  /** Whose stack a call is on; `stackPointer` as in {@link OpenCall}. */
  of(stackPointer: number): ThreadRef {
    // The end of a stack is its own, and the begin of the next is nobody's: nothing has been pushed there.
    const number = Math.floor((stackPointer - 8) / this.#stackBytes);
    let thread = this.#threads.get(number);
    if (!thread) {
      thread = { key: this.#threads.size, stack: stackAt(number * this.#stackBytes) };
      this.#threads.set(number, thread);
    }
    return thread;
  }
}

function stackAt(address: number): Addr {
  return addr(BigInt.asUintN(64, BigInt(address)));
}
