import type { FutureState, FutureType, InnerFuture, InnerPoll } from '../../../async/futures/index.js';
import { reachedFrom } from '../../../base/search.js';
import type { FutureLook, Running } from '../../../calls/index.js';

/** A poll that must have happened although no breakpoint saw it. */
export interface DerivedStep {
  readonly future: FutureType;
  /** From the start of the outer Future's bytes. */
  readonly offset: number;
  readonly result: 'ready' | 'pending';
  readonly from: FutureState | undefined;
  readonly to: FutureState | undefined;
}

/**
 * The inlined inner Futures of one poll of one outer Future, followed through its bytes.
 *
 * The bytes are read when the outer poll begins and when it ends. They are also read when a poll with a breakpoint
 * begins inside it, because the compiler has stored everything before such a call. An inner Future that has left the
 * await chain, or that starts again from `Unresumed`, was polled to Ready. One that is on the chain at the end was
 * polled and is Pending.
 *
 * Some polls cannot be derived: those of a Future that starts and ends between two reads, or whose bytes were not read.
 * The same holds where another Future of the type takes the place of one without a state number. So derived polls are a
 * lower bound.
 */
export class InlinedChain {
  /**
   * Futures whose polls had a hit of their own within this poll: they and those below them are not derived from then
   * on.
   */
  readonly #observed: InnerFuture[] = [];
  #running: readonly Running[];

  constructor(look: FutureLook | undefined) {
    this.#running = look?.suspended ?? [];
  }

  /**
   * An inner poll with a breakpoint of its own begins, with these Futures running around it. `look`: the outer
   * Future's bytes; without them a Future at the same place counts as the same.
   * @returns polls that this proves to be over
   */
  enter({ way, inner }: InnerPoll, look: FutureLook | undefined): readonly DerivedStep[] {
    const before = this.#running;
    const known = this.#derivable(before);
    if (inner) this.observe(inner);
    const now = look ? look.along(way) : way.map((link, i) => resumedAs(link, before[i]));
    const same = commonLength(before, now, true);
    this.#running = now;
    // The Future that is polled now was on the chain already: it goes on, under its own breakpoint.
    const next = before[same];
    if (!next || (same === now.length && inner && isSame(next, inner))) return none;
    return known.slice(same).toReversed().map(finished);
  }

  /** A poll with a breakpoint of its own begins at `inner`, whatever runs around it. */
  observe(inner: InnerFuture): void {
    if (!this.#isObserved(inner)) this.#observed.push(inner);
  }

  /** The outer poll ends: as Ready when `ready`, else suspended with these bytes. */
  end(look: FutureLook | undefined, ready: boolean): readonly DerivedStep[] {
    const before = this.#running;
    this.#running = none;
    if (ready) return before.length === 0 ? none : this.#derivable(before).toReversed().map(finished);
    if (!look) return none;
    const now = this.#derivable(look.suspended);
    if (before.length === 0 && now.length === 0) return none;
    const same = commonLength(before, look.suspended, false);
    const steps = this.#derivable(before).slice(same).toReversed().map(finished);
    for (let i = 0; i < now.length; i++) {
      const { future, offset, resumed } = now[i] as Running;
      const from = i < same ? before[i]?.resumed : undefined;
      steps.push({ future, offset, result: 'pending', from, to: resumed });
    }
    return steps;
  }

  /** A chain down to the first link that was polled under its own breakpoint. */
  #derivable(chain: readonly Running[]): readonly Running[] {
    if (this.#observed.length === 0) return chain;
    const first = chain.findIndex((link) => this.#isObserved(link));
    return first < 0 ? chain : chain.slice(0, first);
  }

  #isObserved(inner: InnerFuture): boolean {
    return this.#observed.some((observed) => isSame(observed, inner));
  }
}

const none: readonly never[] = [];

function isSame(a: InnerFuture, b: InnerFuture): boolean {
  return a.offset === b.offset && a.future.typeOffset === b.future.typeOffset;
}

/** A Future whose bytes were not read: if it is the one that ran there before, it was resumed like that one. */
function resumedAs(link: InnerFuture, before: Running | undefined): Running {
  const { future, offset } = link;
  return { future, offset, resumed: before && isSame(before, link) ? before.resumed : undefined };
}

/**
 * How many links two chains have in common at their outer ends; `alike`: in the same states, as far as these are
 * known.
 */
function commonLength(before: readonly Running[], now: readonly Running[], alike: boolean): number {
  let i = 0;
  for (; i < now.length; i++) {
    const was = before[i];
    const is = now[i] as Running;
    if (!was || !isSame(was, is)) break;
    if (alike && was.resumed && is.resumed && was.resumed !== is.resumed) break;
  }
  return i;
}

function finished({ future, offset, resumed }: Running): DerivedStep {
  const to = future.states.find((state) => state.name === 'Returned');
  return { future, offset, result: 'ready', from: resumed, to };
}

/** True when some Future that this one awaits in place may be polled without a breakpoint of its own. */
export function mayInline(outer: FutureType): boolean {
  const awaited = ({ states }: FutureType): FutureType[] => states.flatMap(({ awaitee }) => awaitee?.future ?? []);
  return [...reachedFrom(awaited(outer), awaited)].some(
    ({ polls, inlined }) => polls.length === 0 || inlined.length > 0,
  );
}
