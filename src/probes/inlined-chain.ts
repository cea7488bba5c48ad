import type { FutureState, FutureType } from '../dwarf/index.js';
import type { InnerFuture } from './await-path.js';
import type { FutureLook, Running } from './reading.js';

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
 * The bytes are looked at when the outer poll begins, whenever a poll of its own breakpoint begins inside it (the compiler must
 * have stored everything before such a call), and when it ends. An inner Future that was on the await chain and is no longer,
 * or that starts again from `Unresumed`, was polled to Ready; one that is on the chain at the end was polled and is Pending.
 *
 * What cannot be told is a Future that starts and ends between two looks, and one without a state number that is replaced by
 * its like: derived polls are those that must have happened, at least.
 */
export class InlinedChain {
  /** Futures whose polls had a hit of their own within this poll: they, and what is below them, are not derived here. */
  readonly #observed: InnerFuture[] = [];
  #running: readonly Running[];

  constructor(look: FutureLook | undefined) {
    this.#running = look?.suspended ?? [];
  }

  /** An inner poll with a breakpoint of its own begins at `inner`; `way` leads to it. Polls that this proves to be over. */
  enter(way: readonly InnerFuture[], inner: InnerFuture, look: FutureLook | undefined): readonly DerivedStep[] {
    if (!this.#isObserved(inner)) this.#observed.push(inner);
    const now = look ? look.along(way) : way.map((link): Running => ({ ...link, resumed: undefined }));
    const before = this.#running;
    const same = commonLength(before, now, true);
    this.#running = now;
    // The Future that is polled now was on the chain already: it goes on, under its own breakpoint.
    const next = before[same];
    if (!next || (same === now.length && isSame(next, inner))) return none;
    return before.slice(same).reverse().map(finished);
  }

  /** The outer poll ends: as Ready when `ready`, else suspended with these bytes. */
  end(look: FutureLook | undefined, ready: boolean): readonly DerivedStep[] {
    const before = this.#running;
    this.#running = none;
    if (ready) return before.length === 0 ? none : before.toReversed().map(finished);
    if (!look) return none;
    const now = this.#suspended(look);
    if (before.length === 0 && now.length === 0) return none;
    const same = commonLength(before, now, false);
    const steps: DerivedStep[] = [];
    for (let i = before.length - 1; i >= same; i--) steps.push(finished(before[i] as Running));
    for (let i = 0; i < now.length; i++) {
      const { future, offset, resumed } = now[i] as Running;
      const from = i < same ? before[i]?.resumed : undefined;
      steps.push({ future, offset, result: 'pending', from, to: resumed });
    }
    return steps;
  }

  /** The await chain of a suspended Future, down to the first link that is polled under its own breakpoint. */
  #suspended(look: FutureLook): readonly Running[] {
    const chain = look.suspended;
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

/** How many links two chains have in common at their outer ends; `alike`: in the same states. */
function commonLength(before: readonly Running[], now: readonly Running[], alike: boolean): number {
  let i = 0;
  for (; i < now.length; i++) {
    const was = before[i];
    const is = now[i] as Running;
    if (!was || !isSame(was, is) || (alike && was.resumed !== is.resumed)) break;
  }
  return i;
}

function finished({ future, offset, resumed }: Running): DerivedStep {
  const to = future.states.find((state) => state.name === 'Returned');
  return { future, offset, result: 'ready', from: resumed, to };
}

/** True when some Future that this one awaits in place may be polled without a breakpoint of its own. */
export function mayInline(outer: FutureType): boolean {
  const seen = new Set<FutureType>();
  const visit = (future: FutureType): boolean => {
    if (seen.has(future)) return false;
    seen.add(future);
    return future.states.some(({ awaitee }) => {
      const inner = awaitee?.future;
      return inner !== undefined && (inner.polls.length === 0 || inner.inlined.length > 0 || visit(inner));
    });
  };
  return visit(outer);
}
