import { type Addr, addr } from '../base/addr.js';
import type { GuestNanos, TraceEvent, TraceSink } from '../trace/index.js';
import type { Reaction } from './hit.js';
import type { Call, Moment } from './kinds.js';

/** Takes what follows from a moment: of a record at once, of a stop when the target runs again. */
export interface Follows {
  /** `lost`: calls that are therefore gone. Undefined: no call of ours began. */
  began(at: Moment, call: Call | undefined, lost: readonly Call[]): void;
  ended(at: Moment, ended: readonly Call[], lost: readonly Call[]): void;
  /** A panic was caught around these. */
  panicked(at: Moment, gone: readonly Call[]): void;
  emits(at: Moment, emit: () => void): void;
}

/** A record's: its events are due now. */
export const atOnce: Follows = {
  began({ hart }, call, lost) {
    if (lost.length > 0) for (const one of lost) one.payload.kind.lost?.(one, hart);
    call?.payload.kind.began?.(call, lost);
    if (call?.payload.entryOnly) call.payload.kind.lost?.(call, hart);
  },
  ended({ hart }, ended, lost) {
    if (lost.length > 0) for (const call of lost) call.payload.kind.lost?.(call, hart);
    for (let i = 0; i < ended.length; i++) {
      const call = ended[i] as Call;
      call.payload.kind.ended?.(call);
    }
  },
  panicked({ hart }, gone) {
    for (const call of gone) {
      const { kind } = call.payload;
      if (kind.panicked) kind.panicked(call, hart);
      else if (!call.wasLost) kind.lost?.(call, hart);
    }
  },
  emits(_, emit) {
    emit();
  },
};

/** A stop's: its events wait until the target runs, and returns are awaited by breakpoints. */
export class Later implements Follows {
  readonly #queue: (at: Moment, emit: () => void) => void;
  readonly #awaits: (returnAddress: bigint) => boolean;
  readonly #watch: Addr[] = [];
  readonly #unwatch: Addr[] = [];
  readonly #stay: Addr[] = [];
  readonly #spent: Addr[] = [];

  /** `awaits`: whether a call is open that returns to an address, at a stop. */
  constructor(queue: (at: Moment, emit: () => void) => void, awaits: (returnAddress: bigint) => boolean) {
    this.#queue = queue;
    this.#awaits = awaits;
  }

  began(at: Moment, call: Call | undefined, lost: readonly Call[]): void {
    this.#queue(at, () => atOnce.began(at, call, lost));
    if (call && !call.payload.entryOnly && call.returnAddress >= 0n) this.#watch.push(addr(call.returnAddress));
    this.#release(lost);
  }

  ended(at: Moment, ended: readonly Call[], lost: readonly Call[]): void {
    if (ended.length > 0) this.#queue(at, () => atOnce.ended(at, ended, lost));
    this.#release(ended);
    this.#release(lost);
  }

  panicked(at: Moment, gone: readonly Call[]): void {
    if (gone.length > 0) this.#queue(at, () => atOnce.panicked(at, gone));
    this.#release(gone);
  }

  emits(at: Moment, emit: () => void): void {
    this.#queue(at, emit);
  }

  /** The target is to stop at places from now on, and at others no more. */
  stopAt(places: readonly Addr[], noMore: readonly Addr[]): void {
    this.#stay.push(...places);
    this.#spent.push(...noMore);
  }

  /** A call that began at a stop may have ended here with one that a trampoline recorded. */
  reaction(pc: Addr): Reaction {
    this.#releaseAt(pc);
    return { watch: this.#watch, unwatch: this.#unwatch, stay: this.#stay, spent: this.#spent };
  }

  #release(gone: readonly Call[]): void {
    for (const { returnAddress } of gone) this.#releaseAt(returnAddress);
  }

  /** A block has no return address: see `BlockEdge.key`. */
  #releaseAt(returnAddress: bigint): void {
    if (returnAddress >= 0n && !this.#awaits(returnAddress)) this.#unwatch.push(addr(returnAddress));
  }
}

/** Takes the events: keeps the guest's time from running backwards, and counts. */
export class EventOutput {
  readonly #sink: TraceSink;
  #time = 0;
  #events = 0;

  constructor(sink: TraceSink) {
    this.#sink = sink;
  }

  /** The time of the hit whose events are emitted. */
  get time(): GuestNanos {
    return this.#time as GuestNanos;
  }

  /** Events given to the sink so far. */
  get events(): number {
    return this.#events;
  }

  /** A guest that sets its clock back must not turn durations negative. */
  at(time: number): GuestNanos {
    return Math.max(this.#time, time) as GuestNanos;
  }

  moveTo(time: number): void {
    this.#time = this.at(time);
  }

  emit(event: TraceEvent): void {
    this.#events++;
    this.#sink.event(event);
  }
}
