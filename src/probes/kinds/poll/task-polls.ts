import type { InlinedPoll, TaskPlaces } from '../../../async/futures/index.js';
import { type Addr, addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { type DebugInfo, type Die, functionName } from '../../../dwarf/index.js';
import { functionsAt } from '../../../target/unwind/index.js';

/** A place in a runtime's code that polls tasks. */
export interface TaskPoll {
  readonly runtime: string;
  /** The functions inlined around it, by the offsets of their DIEs. */
  readonly around: ReadonlySet<number>;
}

/**
 * Finds which polls are those of a runtime, by the code that calls them. What a runtime polls is a task of its own,
 * even inside another poll. A thread of tokio runs in a poll that never ends, and a `LocalSet` is a Future itself.
 */
export class TaskPolls {
  readonly #debug: DebugInfo;
  readonly #polls: TaskPlaces['polls'];
  readonly #calls = new AddressMap<{ readonly poll: TaskPoll | undefined }>();
  readonly #inlined = new Map<number, TaskPoll | undefined>();

  constructor(debug: DebugInfo, { polls }: TaskPlaces) {
    this.#debug = debug;
    this.#polls = polls;
  }

  /** The call that returns there; undefined if no runtime makes it. */
  returningTo(returnAddress: Addr): TaskPoll | undefined {
    let known = this.#calls.get(returnAddress);
    if (!known) {
      known = { poll: this.#inside(functionsAt(this.#debug, addr(returnAddress - 1n))) };
      this.#calls.set(returnAddress, known);
    }
    return known.poll;
  }

  /** A poll that was inlined; undefined if not into code of a runtime. */
  inlined({ die, address }: Pick<InlinedPoll, 'die' | 'address'>): TaskPoll | undefined {
    if (this.#inlined.has(die.offset)) return this.#inlined.get(die.offset);
    const functions = functionsAt(this.#debug, address);
    const own = functions.findIndex(({ offset }) => offset === die.offset);
    const poll = own < 0 ? undefined : this.#inside(functions.slice(own + 1));
    this.#inlined.set(die.offset, poll);
    return poll;
  }

  /** `functions`: the innermost first. */
  #inside(functions: readonly Die[]): TaskPoll | undefined {
    for (const [i, die] of functions.entries()) {
      const runtime = this.#runtimeOf(die);
      if (runtime !== undefined) return { runtime, around: new Set(functions.slice(0, i).map(({ offset }) => offset)) };
    }
    return undefined;
  }

  #runtimeOf(die: Die): string | undefined {
    const name = this.#debug.attempt(die.unit, () => functionName(die));
    return name === undefined ? undefined : this.#polls.find(({ functions }) => functions.test(name))?.runtime;
  }
}
