import { AwaitPaths, type FutureSet, type FutureType } from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import {
  type BlockKind,
  type Call,
  type CallKind,
  type CallSite,
  type EventOutput,
  type HitMemory,
  isSameFrame,
  type MemoryRequest,
  type Moment,
  type SpaceNumbers,
} from '../../../calls/index.js';
import type { ProbeFact, RootRef, StackEntry } from '../../../trace/index.js';
import type { loopsToStart } from '../../code-facts.js';
import { decide } from '../../expressions/comparison.js';
import type { Backtraces } from './callers.js';
import type { ImpliedDrops } from './implied-drops.js';
import { InlinedChain } from './inlined-chain.js';
import { InlinedPlaces } from './inlined-places.js';
import type { MergedPolls } from './merged.js';
import { PollEvents } from './poll-events.js';
import type { InlinedProbe, PolledFuture, PollProbe, PollProbes } from './resolve.js';
import { Roots } from './roots.js';
import type { TaskPolls } from './task-polls.js';
import {
  type Entry,
  inlines,
  isShared,
  isTask,
  lookAt,
  noGuards,
  type Opened,
  onlyMoment,
  type PollCall,
  type Probed,
  pollAround,
  probed,
  ResultRegister,
  readsOf,
  resultOf,
  type TracedPoll,
  type Wrapping,
} from './traced-poll.js';
import type { TaskBook } from './wakes.js';

/** What else is known of polls, and what else observes them. */
interface PollTracerParts {
  /** With it every poll's begin has the poller's stack. */
  readonly backtraces?: Backtraces | undefined;
  /** It gets each task. */
  readonly tasks?: TaskBook | undefined;
  /** Who makes which polls. Without it a poll inside another one belongs to the same task, and any other is a task. */
  readonly taskPolls?: TaskPolls | undefined;
  /** Which Future a poll is of, where one function polls several. */
  readonly merged?: MergedPolls | undefined;
  /** Names the address spaces of hits. */
  readonly spaces?: SpaceNumbers | undefined;
  readonly implied: ImpliedDrops;
  /** Whether a poll function jumps to its first instruction. */
  readonly loops?: ReturnType<typeof loopsToStart>;
}

/**
 * Turns hits at poll functions and at their return addresses into poll events: the Future, its states, its result,
 * and what it awaits. One read of the Future's bytes at each end gives all of it.
 */
export class PollTracer implements CallKind {
  readonly blocks: BlockKind | undefined;
  readonly #probes = new AddressMap<Probed>();
  readonly #resolved: PollProbes;
  readonly #output: EventOutput;
  readonly #parts: PollTracerParts;
  readonly #roots: Roots;
  readonly #paths = new AwaitPaths();
  readonly #events: PollEvents;

  constructor(futures: FutureSet, resolved: PollProbes, output: EventOutput, parts: PollTracerParts) {
    this.#parts = parts;
    this.#roots = new Roots(parts.tasks);
    this.#resolved = resolved;
    this.#output = output;
    const { implied } = parts;
    this.#events = new PollEvents(futures, resolved, output, { roots: this.#roots, implied, paths: this.#paths });
    for (const probe of resolved.probes) {
      const futures = [probe.future, ...probe.among.map(({ future }) => future)];
      const among = probe.among.map((one) => this.#entered(probe, one, [one.future]));
      this.#probes.set(probe.address, { ...this.#entered(probe, probe, [...new Set(futures)]), among });
    }
    this.blocks = resolved.sites.length > 0 ? this.#inlinedPolls(resolved.sites) : undefined;
  }

  #entered(fn: PollProbe, one: PolledFuture, futures: readonly FutureType[]): Probed {
    // If Futures cannot be distinguished, all are taken where one is without a condition.
    const isWhole = one === fn && fn.among.some(({ isAround, when }) => !isAround && when === undefined);
    const own = { wraps: this.#wrapping(one), fn, tag: ResultRegister.of(fn), when: isWhole ? undefined : one.when };
    return { ...probed(one, futures, this.#roots.ofType(one.ref)), ...own };
  }

  #wrapping({ wraps }: PolledFuture): Wrapping | undefined {
    if (!wraps) return undefined;
    const ref = this.#resolved.ref(wraps.future);
    return { ...wraps, ref, roots: this.#roots.ofType(ref), way: [wraps] };
  }

  /** Polls that were inlined, which are blocks of other functions. */
  #inlinedPolls(sites: readonly InlinedProbe[]): BlockKind {
    const places = new InlinedPlaces(sites);
    const all = sites.map((site) => {
      const one = probed(site, [site.future], this.#roots.ofType(site.ref));
      return { ...one, copy: site.copy };
    });
    return {
      at: (pc) => places.at(pc),
      reads: (at, { block }, memory) => {
        const self = places.selfAt(at, block, memory);
        const probe = all[block];
        if (!probe) return [];
        const stack = probe.isAround ? undefined : this.#parts.backtraces?.request(at.registers);
        const word = places.wordAt(at, block);
        const object = self ? readsOf(probe, self.address) : [];
        return [word, ...object, stack].filter((each) => each !== undefined);
      },
      begin: (at, { block }, around, memory) => {
        const self = places.selfAt(at, block, memory);
        const probe = all[block];
        if (self === undefined || !probe) return undefined;
        const outer = pollAround(around);
        const made = probe.copy && this.#parts.taskPolls?.inlined(probe.copy);
        const opened = {
          probe,
          self: self.address,
          look: self.isStored ? lookAt(probe, self.address, memory) : undefined,
          isAround: probe.isAround,
          resultAt: undefined,
          guards: self.guards,
          within: outer && isTask(outer, made) ? undefined : outer,
          made,
          // The outer Future's bytes are not read: the compiler may not have stored its states where no call is.
          entry: {
            stack: probe.isAround ? undefined : this.#stackAt(at, memory),
            outer: outer?.payload.inlined ? outer : undefined,
            outerLook: undefined,
          },
        };
        return this.#open(opened, at);
      },
    };
  }

  isAt(pc: Addr): boolean {
    return this.#probes.get(pc) !== undefined;
  }

  entryReads({ pc, registers }: Moment, around: () => Call | undefined): readonly MemoryRequest[] | undefined {
    const probe = this.#probes.get(pc);
    const pointer = probe?.fn && registers.register(probe.fn.selfRegister);
    if (!probe || pointer === undefined) return undefined;
    const reads = readsOf(probe, addr(pointer));
    const outer = pollAround(around())?.payload;
    if (outer?.inlined) reads.push(...readsOf(outer.probe, outer.self));
    const stack = probe.isAround ? undefined : this.#parts.backtraces?.request(registers);
    if (stack) reads.push(stack);
    return reads;
  }

  moreReads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const probe = this.#probes.get(pc);
    return [probe, ...(probe?.among ?? [])].flatMap((one) => {
      const decided = one?.when ? decide(one.when, registers, memory) : true;
      return typeof decided === 'boolean' ? noReads : decided;
    });
  }

  begin(at: Moment, site: CallSite, memory: HitMemory): TracedPoll | undefined {
    const { registers } = at;
    const entered = this.#probes.get(at.pc);
    const { fn } = entered ?? {};
    const pointer = fn && registers.register(fn.selfRegister);
    if (!entered || !fn || pointer === undefined) return undefined;
    const self = pointer as Addr;
    const outer = pollAround(site.around);
    if (outer && !site.isCall && this.#isTurn(outer, site, fn, self)) return undefined;
    const probe = entered.among.length === 0 ? entered : this.#identified(entered, site, self, outer);
    const resultAt = fn.resultPointer === undefined ? undefined : registers.register(fn.resultPointer);
    const look = lookAt(probe, self, memory);
    const isAround = probe.isAround || (probe.when !== undefined && decide(probe.when, registers, memory) !== true);
    const entry = this.#entry(at, outer, memory);
    const made = this.#parts.taskPolls?.returningTo(site.returnAddress);
    const within = outer && !isSameFrame(outer, site) && isTask(outer, made) ? undefined : outer;
    const result = resultAt as Addr | undefined;
    return this.#open({ probe, self, look, isAround, resultAt: result, guards: noGuards, within, made, entry }, at);
  }

  /** The function has jumped to its first instruction: the poll goes on. */
  #isTurn(outer: PollCall, site: CallSite, fn: PollProbe, self: Addr): boolean {
    const isOwn = outer.payload.probe.fn === fn && outer.payload.self === self && isSameFrame(outer, site);
    return isOwn && this.#parts.loops?.({ address: fn.address, size: Number(fn.poll.end - fn.address) }) === true;
  }

  /** Which of the Futures of one poll function is polled: by what the Future around holds there, or by who calls. */
  #identified(probe: Probed, site: CallSite, self: Addr, outer: PollCall | undefined): Probed {
    const around = outer && !isSameFrame(outer, site) ? outer.payload : undefined;
    const offset = around ? Number(self - around.self) : -1;
    const inside = around && offset >= 0 && offset < around.probe.future.size ? around.probe : undefined;
    // Code that was made of several functions itself says nothing.
    if (around && (inside ? inside.ref.oneOf !== undefined : isShared(around.probe))) return probe;
    const [address, { returnAddress }] = [probe.fn?.address as Addr, site];
    const found =
      (inside && this.#paths.find(inside.future, offset, probe.futures)?.inner?.future) ??
      this.#parts.merged?.at({
        address,
        futures: probe.futures,
        returnAddress,
        outer: inside?.future,
        copy: inside?.copy?.die,
      });
    return probe.among.find(({ future }) => future === found) ?? probe;
  }

  /** All of them have one shape, and no copies are made: a trace of a busy program has a million a second. */
  #open(opened: Opened, at: Moment): TracedPoll {
    const { probe, self, look, isAround, resultAt, guards, entry, within, made } = opened;
    const before = look?.state;
    const space = this.#parts.spaces?.root(at.space);
    const place = inSpace(self, space);
    // A Future that was never polled cannot be the one that was here before: a new lifetime.
    if (before?.name === 'Unresumed' && probe.roots.get(place) !== within?.payload.root) probe.roots.delete(place);
    return {
      kind: this,
      isPoll: true,
      emitted: undefined,
      probe,
      guards,
      isAround,
      self,
      root: within?.payload.root ?? this.#rootOf(probe, { self, look, made, space }),
      began: this.#output.at(at.time),
      before,
      resultAt,
      inlined: inlines(probe) ? new InlinedChain(look) : undefined,
      hart: at.hart,
      entry,
      inside: undefined,
      held: undefined,
      exit: undefined,
    };
  }

  #rootOf(
    probe: Probed,
    { self, look, made, space }: Pick<Opened, 'self' | 'look' | 'made'> & Pick<RootRef, 'space'>,
  ): RootRef {
    const { wraps } = probe;
    if (!wraps) return this.#roots.at(probe, { self, made, space });
    const address = addOffset(self, wraps.offset);
    if (look?.along(wraps.way)[0]?.resumed?.name === 'Unresumed') wraps.roots.delete(inSpace(address, space));
    return this.#roots.at(wraps, { self: address, made, space }, { future: probe.future, self });
  }

  #stackAt({ registers }: Moment, memory: HitMemory): readonly StackEntry[] | undefined {
    const request = this.#parts.backtraces?.request(registers);
    const bytes = request && memory.at(request.address, request.length)?.bytes;
    return this.#parts.backtraces?.read(registers, bytes);
  }

  #entry(at: Moment, around: PollCall | undefined, memory: HitMemory): Entry {
    const outer = around?.payload.inlined ? around : undefined;
    if (!outer && !this.#parts.backtraces) return onlyMoment;
    const outerLook = outer && lookAt(outer.payload.probe, outer.payload.self, memory);
    return { stack: this.#stackAt(at, memory), outer, outerLook };
  }

  began(call: PollCall, lost: readonly Call[]): void {
    this.#events.began(call, lost);
  }

  exitReads({ payload }: PollCall): readonly MemoryRequest[] {
    const { probe, self, resultAt, guards } = payload;
    const reads = readsOf(probe, self);
    const { result, resultSize = 0 } = probe.fn?.poll ?? {};
    if (result && resultAt !== undefined) reads.push({ address: resultAt, length: resultSize });
    for (const { offset, size } of guards) reads.push({ address: addOffset(self, offset), length: size });
    return reads;
  }

  returning({ payload }: PollCall, at: Moment, memory: HitMemory): void {
    const look = lookAt(payload.probe, payload.self, memory);
    payload.exit = { hart: at.hart, look, result: resultOf(payload, at, look, memory) };
  }

  ended(call: PollCall): void {
    this.#events.ended(call);
  }

  panicked(call: PollCall, hart: number): void {
    this.#events.panicked(call, hart);
  }

  lost(call: PollCall, hart: number): void {
    this.#events.lost(call, hart);
  }

  /** A task's Future was dropped: what is polled at its address from now on is another one. */
  dropped(root: RootRef): void {
    this.#roots.over(root);
  }

  missed(): void {
    this.#parts.implied.forget();
  }

  leftOut(probes: readonly ProbeFact[]): void {
    this.#parts.implied.leftOut(probes);
  }

  forget(): void {
    this.#parts.implied.forget();
    this.#roots.clear();
  }
}

const noReads: readonly MemoryRequest[] = [];
