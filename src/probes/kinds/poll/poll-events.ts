import type { AwaitPaths, ChainLink, FutureSet, FutureState } from '../../../async/futures/index.js';
import { type Addr, addOffset, distance } from '../../../base/addr.js';
import { type Call, type EventOutput, emittedAround, type FutureLook } from '../../../calls/index.js';
import type { AwaitLink, PollBegin, PollEnd, PollResult } from '../../../trace/index.js';
import { type ImpliedDrops, isCompiled } from './implied-drops.js';
import type { DerivedStep } from './inlined-chain.js';
import { PolledInsides } from './polled-inside.js';
import type { PollProbes } from './resolve.js';
import type { Roots } from './roots.js';
import { handOn, isRoot, noLinks, type PollCall, placeOf, pollAround, type TracedPoll } from './traced-poll.js';

/** What the begins and ends of polls emit. */
export class PollEvents {
  readonly #futures: FutureSet;
  readonly #resolved: PollProbes;
  readonly #output: EventOutput;
  readonly #roots: Roots;
  readonly #implied: ImpliedDrops;
  readonly #paths: AwaitPaths;
  readonly #insides: PolledInsides;

  constructor(
    futures: FutureSet,
    resolved: PollProbes,
    output: EventOutput,
    { roots, implied, paths }: { readonly roots: Roots; readonly implied: ImpliedDrops; readonly paths: AwaitPaths },
  ) {
    this.#futures = futures;
    this.#resolved = resolved;
    this.#output = output;
    this.#roots = roots;
    this.#implied = implied;
    this.#paths = paths;
    this.#insides = new PolledInsides(futures);
  }

  began(call: PollCall, lost: readonly Call[]): void {
    const { payload } = call;
    const { probe, isAround, self, root, before, hart, entry } = payload;
    payload.entry = undefined;
    const outer = entry?.outer;
    if (outer && !lost.includes(outer)) this.#insideOf(outer.payload, payload, entry.outerLook);
    if (isAround) return;
    this.#implied.began(placeOf(payload), before && before.name === 'Unresumed', hart);
    const { time } = this.#output;
    const { depth, thread } = call;
    const begin: PollBegin = {
      type: 'poll-begin',
      time,
      hart,
      thread,
      root,
      future: probe.ref,
      address: self,
      depth,
      around: emittedAround(call),
      state: before,
      stack: entry?.stack,
    };
    payload.emitted = begin;
    this.#output.emit(begin);
  }

  /** A poll begins inside another whose inlined Futures are followed. */
  #insideOf(outer: TracedPoll, { self, probe, hart }: TracedPoll, look: FutureLook | undefined): void {
    const { inlined } = outer;
    const offset = distance(outer.self, self);
    if (!inlined || offset < 0 || offset >= outer.probe.future.size) return;
    const inner = this.#paths.find(outer.probe.future, offset, probe.futures);
    if (inner) this.#derived(outer, hart, inlined.enter(inner, look));
    else for (const future of probe.futures) inlined.observe({ future, offset });
  }

  ended(call: PollCall): void {
    const { payload } = call;
    const { inlined, exit, held } = payload;
    if (!exit) return;
    const { look, hart } = exit;
    const goesOn = held === 'pending' && isRoot(payload) && !payload.root.isPart;
    const result = exit.result === 'unknown' && (held === 'ready' || goesOn) ? held : exit.result;
    // Where an inlined Future has not changed, those inside it have been polled all the same.
    if (inlined && (result === 'ready' || result === 'pending' || (!payload.probe.fn && look?.state))) {
      this.#derived(payload, hart, inlined.end(look, result === 'ready'));
    }
    const { self } = payload;
    const chain = look && result !== 'ready' ? look.chainAt(self, this.#futures, this.#link) : noLinks;
    this.#reportEnd(call, hart, result, look?.state, chain);
  }

  /** Unwinding leaves every compiler-made Future in its state `Panicked`; others have no state. */
  panicked(call: PollCall, hart: number): void {
    const state = call.payload.probe.future.states.find(({ name }) => name === 'Panicked');
    this.#reportEnd(call, hart, 'panicked', state, noLinks);
  }

  #reportEnd(
    call: PollCall,
    hart: number,
    result: PollResult,
    state: FutureState | undefined,
    chain: readonly AwaitLink[],
  ): void {
    const { payload, depth, thread, wasLost } = call;
    const { probe, isAround, self, root, began, before } = payload;
    const { time } = this.#output;
    const future = probe.ref;
    const address = self;
    // A wrapper of a wrapper has what is known of the innermost.
    handOn(call, result === 'unknown' ? (payload.held ?? result) : result);
    this.#reportDrops(payload, { result, state, chain, hart });
    const isOver = result === 'ready' || result === 'panicked';
    const whole = isOver || !payload.inside ? chain : this.#below(payload, chain);
    this.#insides.ended(payload, pollAround(call.parent)?.payload, { result, state, chain: whole });
    if (isRoot(payload)) {
      if (result === 'ready' || result === 'panicked') this.#roots.over(root);
      // What it holds may be pending when its own code says that it is over, so a drop of it is none of a pending one.
      else this.#roots.polled(root, payload.exit?.result === 'unknown' ? 'unknown' : result);
    }
    if (isAround) return;
    if (state && state !== before) {
      this.#output.emit({ type: 'state', time, hart, root, future, address, from: before, to: state, derived: false });
    }
    const begin = payload.emitted;
    this.#output.emit({
      type: 'poll-end',
      time,
      hart,
      thread,
      root,
      future,
      address,
      depth,
      begin,
      began,
      result,
      state,
      chain: whole,
      wasLost,
    });
  }

  #below(poll: TracedPoll, chain: readonly AwaitLink[]): readonly AwaitLink[] {
    return this.#insides.below(poll, chain, () => poll.exit?.look?.chain(this.#futures).at(-1)?.future);
  }

  /** What the end of a poll says of drops that nothing shows. */
  #reportDrops(
    poll: TracedPoll,
    { result, state, chain, hart }: Pick<PollEnd, 'result' | 'state' | 'chain' | 'hart'>,
  ): void {
    const place = placeOf(poll);
    if (result === 'pending' || result === 'unknown') {
      this.#implied.polled(place, result, state);
      if (result === 'pending') this.#implied.awaited(chain, place.root.space);
      return;
    }
    this.#implied.over(place);
    const { future } = poll.probe;
    if (isCompiled(future)) this.#implied.ended(place, future.size, hart);
  }

  #derived(outer: TracedPoll, hart: number, steps: readonly DerivedStep[] | undefined): void {
    if (!steps) return;
    for (const { future, offset, result, from, to } of steps) {
      // Every poll of some Futures is seen where it happens.
      if (!this.#resolved.allows(future) || this.#resolved.isSeenInlined(future)) continue;
      const { time } = this.#output;
      const { root } = outer;
      const ref = this.#resolved.ref(future);
      const address = addOffset(outer.self, offset);
      this.#output.emit({ type: 'derived-poll', time, hart, root, future: ref, address, result, state: to });
      if (from === to) continue;
      this.#output.emit({ type: 'state', time, hart, root, future: ref, address, from, to, derived: true });
    }
  }

  lost(call: PollCall, hart: number): void {
    const { payload, depth, thread } = call;
    handOn(call, 'unknown');
    const { probe, isAround, self, root, emitted, began } = payload;
    this.#implied.over(placeOf(payload));
    if (isRoot(payload)) this.#roots.over(root);
    if (isAround) return;
    const { time } = this.#output;
    const of = { time, hart, thread, root, future: probe.ref, address: self, depth, begin: emitted, began };
    this.#output.emit({ type: 'poll-lost', ...of });
  }

  readonly #link = ({ future, typeName, state }: ChainLink, address: Addr | undefined): AwaitLink => ({
    future: future && this.#resolved.ref(future),
    typeName,
    address,
    state,
  });
}
