import type { Addr } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { CallTracer } from './call-tracer.js';
import type { Hit, Tracer, Visit } from './hit.js';
import { stackNumber } from './open-call.js';
import { type HitMemory, nothingRead } from './reading.js';

/** What was recorded without stops before a stop, and is not understood yet. */
export interface EarlierRecords {
  /** Nothing is left of that. */
  readonly areDigested: boolean;
  /** Makes events of all of it, while the target stands. */
  digestAll(): void;
  /** Calls `done` when all of it has become events; not at all where no more events are wanted. */
  queue(done: () => void): void;
}

/** A call that began at a stop which waits in the queue. */
interface Begun {
  readonly hit: Hit;
  readonly returnAddress: Addr;
  /** See {@link stackNumber}. */
  readonly stackPointer: number;
}

/**
 * Lets a stop wait for its turn behind records that were not digested yet, so that the target need not stand while
 * they are. All that the stop may mean is read, and it is understood when they are events. A stop whose reads depend on
 * the calls before it has those digested first.
 *
 *      stop     read all that it may mean | resume
 *      queue    record, record, record, stop, record, ...  ->  CallTracer
 */
export class QueuedStops implements Tracer {
  readonly #tracer: CallTracer;
  readonly #earlier: EarlierRecords;
  /** By the address that they return to. */
  readonly #begun = new AddressMap<readonly Begun[]>(64);
  /** Return addresses that are perhaps awaited no more. */
  #idle = new Set<Addr>();

  constructor(tracer: CallTracer, earlier: EarlierRecords) {
    this.#tracer = tracer;
    this.#earlier = earlier;
  }

  get awaitsReturns(): boolean {
    return this.#tracer.awaitsReturns || this.#begun.size > 0;
  }

  *visit(hit: Hit): Visit {
    if (!this.#earlier.areDigested) {
      if (hit.systemCall !== undefined) {
        yield [];
        this.#earlier.queue(() => this.#understand(hit, nothingRead, undefined));
        return { watch: [], unwatch: this.#takeIdle() };
      }
      if (this.#tracer.canWait(hit.pc)) return yield* this.#wait(hit);
      this.#earlier.digestAll();
    }
    const { watch, unwatch, stay, spent } = yield* this.#tracer.visit(hit);
    return { watch, stay, spent, unwatch: [...unwatch, ...this.#takeIdle()] };
  }

  *#wait(hit: Hit): Visit {
    const ending = this.#endingAt(hit);
    const { memory, begins } = yield* this.#tracer.ahead(
      hit,
      ending.map((call) => call.hit),
    );
    for (const call of ending) this.#forget(call);
    const begun = begins && { hit, ...begins };
    if (begun) this.#begun.set(begun.returnAddress, [...(this.#begun.get(begun.returnAddress) ?? []), begun]);
    this.#earlier.queue(() => this.#understand(hit, memory, begun));
    return { watch: begun ? [begun.returnAddress] : [], unwatch: this.#takeIdle() };
  }

  digest(): void {
    this.#tracer.digest();
  }

  standing(hit: Hit, memory: MemoryReader): Promise<void> | undefined {
    return this.#tracer.standing(hit, memory);
  }

  abandon(): void {
    this.#begun.clear();
    this.#idle.clear();
    this.#tracer.abandon();
  }

  /** The turn of a stop has come: from now on its call is known to the tracer. */
  #understand(hit: Hit, memory: HitMemory, begun: Begun | undefined): void {
    if (begun) this.#forget(begun);
    for (const address of this.#tracer.replay(hit, memory).unwatch) this.#idle.add(address);
  }

  #endingAt({ pc, stackPointer, space }: Hit): readonly Begun[] {
    const at = stackNumber(stackPointer);
    return (this.#begun.get(pc) ?? []).filter((call) => call.stackPointer === at && call.hit.space === space);
  }

  #forget(call: Begun): void {
    const { returnAddress } = call;
    const others = (this.#begun.get(returnAddress) ?? []).filter((other) => other !== call);
    if (others.length > 0) this.#begun.set(returnAddress, others);
    else this.#begun.delete(returnAddress);
    this.#idle.add(returnAddress);
  }

  /** Where no call returns any more, as far as is known. */
  #takeIdle(): readonly Addr[] {
    if (this.#idle.size === 0) return [];
    const idle = [...this.#idle].filter((address) => !this.#begun.get(address) && !this.#tracer.awaits(address));
    this.#idle.clear();
    return idle;
  }
}
