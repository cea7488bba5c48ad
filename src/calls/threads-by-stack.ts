import { type Addr, addr } from '../base/addr.js';
import type { SpaceNumbers } from '../target/index.js';
import type { ThreadRef } from '../trace/index.js';
import type { Kept, Space } from './open-call.js';
import { locationOf } from './stack-bounds.js';
import { type Stack, surelyNear } from './stack-set.js';

/** The threads of a target, each known by its stack: one that is used again is the same. */
export class ThreadsByStack {
  readonly #threads = new Map<string, ThreadRef>();
  readonly #spaces: SpaceNumbers | undefined;

  constructor(spaces?: SpaceNumbers) {
    this.#spaces = spaces;
  }

  /** Whose stack this is. */
  of<T>({ number, stacks: { bounds, all } }: Space<T>, stack: Stack<Kept<T>>): ThreadRef {
    const location = locationOf(stack.top);
    const bound = bounds.below(location);
    if (Number.isFinite(bound)) {
      const thread = this.#at(number, bound);
      if (!all.some((other) => other.thread === thread)) return thread;
    }
    return this.#at(number, Math.floor(location / surelyNear) * surelyNear);
  }

  /** Whose stack begins at an address of an address space. */
  #at(space: number, lowest: number): ThreadRef {
    const name = `${space} ${lowest}`;
    let thread = this.#threads.get(name);
    if (!thread) {
      thread = { key: this.#threads.size, stack: stackAt(lowest), space: this.#spaces?.root(space) };
      this.#threads.set(name, thread);
    }
    return thread;
  }
}

function stackAt(address: number): Addr {
  return addr(BigInt.asUintN(64, BigInt(address)));
}
