import {
  AwaitPaths,
  type ChainLink,
  type FutureSet,
  type FutureState,
  type FutureType,
  type Guard,
  type InlinedPoll,
  type InnerFuture,
  NEVER,
} from '../../../async/futures/index.js';
import { type Addr, addOffset, addr } from '../../../base/addr.js';
import { AddressMap, inSpace } from '../../../base/address-map.js';
import {
  type BlockKind,
  type Call,
  type CallKind,
  type CallSite,
  type EventOutput,
  emittedAround,
  type FutureLook,
  type HitMemory,
  type MemoryRequest,
  type Moment,
  type OpenCall,
  type TracedCall,
} from '../../../calls/index.js';
import type { SpaceNumbers } from '../../../target/index.js';
import type {
  AwaitLink,
  FutureRef,
  GuestNanos,
  PollBegin,
  PollEnd,
  PollResult,
  ProbeFact,
  RootRef,
  StackEntry,
} from '../../../trace/index.js';
import { type Conditions, decide } from '../../expressions/comparison.js';
import type { Backtraces } from './backtraces.js';
import { handedOn } from './handed-on.js';
import { type ImpliedDrops, isCompiled, type PolledPlace } from './implied-drops.js';
import { type DerivedStep, InlinedChain, mayInline } from './inlined-chain.js';
import { InlinedPlaces } from './inlined-places.js';
import { innerAddresses } from './inner-addresses.js';
import type { MergedPolls } from './merged.js';
import type { InlinedProbe, PolledFuture, PollProbe, PollProbes } from './resolve.js';
import { ResultRegister } from './result-tag.js';
import type { TaskPoll, TaskPolls } from './task-polls.js';
import type { TaskBook } from './wakes.js';

/** A poll function or a place where one was inlined, and the Futures that it polls. */
interface Probed {
  readonly future: FutureType;
  readonly ref: FutureRef;
  readonly isAround: boolean;
  /** Which polls emit events; undefined: all. */
  readonly when: Conditions | undefined;
  /** What is known of the poll function; undefined where it was inlined. */
  readonly fn: PollProbe | undefined;
  /** Where it was inlined; undefined if it is a function. */
  readonly copy: InlinedPoll | undefined;
  /** Where its result is, if that is in a register. */
  readonly tag: ResultRegister | undefined;
  /** Those that this poll function belongs to. */
  readonly futures: readonly FutureType[];
  /** The same, each by itself, if these are several. */
  readonly among: readonly Probed[];
  /** Each poll that returns is Pending. */
  readonly isNeverReady: boolean;
  /** Bytes of them that are read. */
  readonly length: number;
  /** What a task is called by that is such a Future; undefined: by itself. */
  readonly wraps: Wrapping | undefined;
  /** The Future whose result is theirs, and where it lies in them. */
  readonly handedOn: ReturnType<typeof handedOn>;
  /** Whether Futures may be inlined into them; undefined until the first is polled. */
  inlines: boolean | undefined;
  /** Roots that are alive, by address and space: one that is polled again is the same root. */
  readonly roots: AddressMap<RootRef>;
}

/** What a task is called by, inside its own Future. */
interface Wrapping extends Pick<Probed, 'future' | 'ref' | 'roots'> {
  /** From the task's Future. */
  readonly offset: number;
  readonly way: readonly InnerFuture[];
}

/** What {@link CallTracer} keeps about an open poll. */
interface TracedPoll extends TracedCall {
  /** The event of its begin, when it was emitted. */
  emitted: PollBegin | undefined;
  readonly probe: Probed;
  /** Where the Future exists as long as it is not Ready, if its poll was inlined. */
  readonly guards: readonly Guard[];
  /** It emits no events. */
  readonly isAround: boolean;
  readonly self: Addr;
  readonly root: RootRef;
  readonly began: GuestNanos;
  readonly before: FutureState | undefined;
  /** Where the result will be, if not in registers. */
  readonly resultAt: Addr | undefined;
  readonly inlined: InlinedChain | undefined;
  readonly hart: number;
  /** Other values of the entry, until the begin is emitted. */
  entry: Entry | undefined;
  /** The result of the last poll inside it of the Future whose result is its own. */
  held: PollResult | undefined;
  /** The values of its return, until they are emitted. */
  exit: Exit | undefined;
}

/** What differs between a poll function's polls and inlined ones. */
interface Opened {
  readonly probe: Probed;
  readonly self: Addr;
  readonly look: FutureLook | undefined;
  readonly isAround: boolean;
  readonly resultAt: Addr | undefined;
  readonly guards: readonly Guard[];
  readonly entry: Entry;
  /** The poll around it whose task this one belongs to; undefined if it is a task itself. */
  readonly within: PollCall | undefined;
  /** Makes this poll. */
  readonly runtime: string | undefined;
}

type PollCall = OpenCall<TracedCall> & { readonly payload: TracedPoll };

interface Entry {
  /** The poller, if it is recorded. */
  readonly stack: readonly StackEntry[] | undefined;
  /** The enclosing poll, whose inlined Futures are followed, and its Future now. */
  readonly outer: PollCall | undefined;
  readonly outerLook: FutureLook | undefined;
}

interface Exit {
  readonly hart: number;
  readonly look: FutureLook | undefined;
  readonly result: PollResult;
}

const noGuards: readonly Guard[] = [];
const onlyMoment: Entry = { stack: undefined, outer: undefined, outerLook: undefined };

/**
 * Of larger Futures only this many bytes are read: in practice their states lie at the front, and a hit must stay
 * cheap.
 */
const mostFutureBytes = 64 * 1024;

/** The roots that are alive: a Future that nobody polls from inside another one. */
class Roots {
  readonly #ofType = new Map<FutureRef, AddressMap<RootRef>>();
  readonly #tasks: TaskBook | undefined;
  #count = 0;

  /** `tasks` is told of each. */
  constructor(tasks: TaskBook | undefined) {
    this.#tasks = tasks;
  }

  /** Those of one type, by address and space. */
  ofType(future: FutureRef): AddressMap<RootRef> {
    const roots = this.#ofType.get(future) ?? new AddressMap(64);
    this.#ofType.set(future, roots);
    return roots;
  }

  /**
   * The root at an address, new if none is known there. `outer`: the task's own Future and where that lies, if the root
   * is a part of it.
   */
  at(
    { roots, ref, future }: Pick<Probed, 'future' | 'ref' | 'roots'>,
    { self, runtime, space }: Pick<Opened, 'self' | 'runtime'> & Pick<RootRef, 'space'>,
    outer = { future, self },
  ): RootRef {
    const place = inSpace(self, space);
    let root = roots.get(place);
    if (!root) {
      const header = this.#tasks?.headerOf(outer.future, outer.self, space);
      // Without a header its wakes cannot be told, so nothing is said of it.
      const made = runtime === undefined || header === undefined ? undefined : { runtime };
      const about = (header === undefined ? undefined : this.#tasks?.about(header)) ?? made;
      root = { key: ++this.#count, future: ref, address: self, space, about };
      roots.set(place, root);
      this.#tasks?.add(root, header);
    }
    return root;
  }

  /** A poll of a root has ended. */
  polled(root: RootRef, result: 'pending' | 'unknown'): void {
    this.#tasks?.polled(root, result);
  }

  /** It is no more. */
  over(root: RootRef): void {
    this.#ofType.get(root.future)?.delete(inSpace(root.address, root.space));
    this.#tasks?.polled(root, 'over');
  }

  clear(): void {
    for (const roots of this.#ofType.values()) roots.clear();
    this.#tasks?.forget();
  }
}

/** What polls are told to besides. */
interface PollTracerParts {
  /** With it every poll's begin has the poller's stack. */
  readonly backtraces?: Backtraces | undefined;
  /** It is told of each task. */
  readonly tasks?: TaskBook | undefined;
  /** Which polls runtimes make. Without it a poll inside another one belongs to the same task. */
  readonly taskPolls?: TaskPolls | undefined;
  /** Which Future a poll is of, where one function polls several. */
  readonly merged?: MergedPolls | undefined;
  /** Names the address spaces of hits. */
  readonly spaces?: SpaceNumbers | undefined;
  readonly implied: ImpliedDrops;
}

/**
 * Turns hits at poll functions and at their return addresses into poll events: the Future, its states, its result,
 * and what it awaits. One read of the Future's bytes at each end gives all of it.
 */
export class PollTracer implements CallKind {
  readonly blocks: BlockKind | undefined;
  readonly #probes = new AddressMap<Probed>();
  readonly #resolved: PollProbes;
  readonly #futures: FutureSet;
  readonly #output: EventOutput;
  readonly #backtraces: Backtraces | undefined;
  readonly #roots: Roots;
  readonly #implied: ImpliedDrops;
  readonly #taskPolls: TaskPolls | undefined;
  readonly #merged: MergedPolls | undefined;
  readonly #spaces: SpaceNumbers | undefined;
  readonly #paths = new AwaitPaths();

  constructor(
    futures: FutureSet,
    resolved: PollProbes,
    output: EventOutput,
    { backtraces, tasks, taskPolls, merged, spaces, implied }: PollTracerParts,
  ) {
    this.#spaces = spaces;
    this.#merged = merged;
    this.#taskPolls = taskPolls;
    this.#backtraces = backtraces;
    this.#implied = implied;
    this.#roots = new Roots(tasks);
    this.#futures = futures;
    this.#resolved = resolved;
    this.#output = output;
    for (const probe of resolved.probes) {
      const futures = [probe.future, ...probe.among.map(({ future }) => future)];
      const among = probe.among.map((one) => this.#entered(probe, one, [one.future]));
      this.#probes.set(probe.address, { ...this.#entered(probe, probe, [...new Set(futures)]), among });
    }
    this.blocks = resolved.sites.length > 0 ? this.#inlinedPolls(resolved.sites) : undefined;
  }

  #entered(fn: PollProbe, one: PolledFuture, futures: readonly FutureType[]): Probed {
    const own = { wraps: this.#wrapping(one), fn, tag: ResultRegister.of(fn), when: fn.when };
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
        const stack = probe.isAround ? undefined : this.#backtraces?.request(at.registers);
        const word = places.wordAt(at, block);
        const object = self && { address: self.address, length: probe.length };
        return [word, object, stack].filter((each) => each !== undefined);
      },
      begin: (at, { block }, around, memory) => {
        const self = places.selfAt(at, block, memory);
        const probe = all[block];
        if (self === undefined || !probe) return undefined;
        const outer = pollAround(around);
        const made = probe.copy && this.#taskPolls?.inlined(probe.copy);
        const opened = {
          probe,
          self: self.address,
          look: self.isStored ? lookAt(probe, self.address, memory) : undefined,
          isAround: probe.isAround,
          resultAt: undefined,
          guards: self.guards,
          within: outer && isTask(outer, made) ? undefined : outer,
          runtime: made?.runtime,
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
    const reads = [{ address: addr(pointer), length: probe.length }];
    const outer = pollAround(around())?.payload;
    if (outer?.inlined) reads.push({ address: outer.self, length: outer.probe.length });
    const stack = probe.isAround ? undefined : this.#backtraces?.request(registers);
    if (stack) reads.push(stack);
    return reads;
  }

  moreReads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    const when = this.#probes.get(pc)?.when;
    const decided = when ? decide(when, registers, memory) : true;
    return typeof decided === 'boolean' ? noReads : decided;
  }

  begin(at: Moment, site: CallSite, memory: HitMemory): TracedPoll | undefined {
    const { registers } = at;
    const entered = this.#probes.get(at.pc);
    const { fn } = entered ?? {};
    const pointer = fn && registers.register(fn.selfRegister);
    if (!entered || !fn || pointer === undefined) return undefined;
    const self = pointer as Addr;
    const outer = pollAround(site.around);
    const probe = entered.among.length === 0 ? entered : this.#identified(entered, site, self, outer);
    const resultAt = fn.resultPointer === undefined ? undefined : registers.register(fn.resultPointer);
    const look = lookAt(probe, self, memory);
    const isAround = probe.isAround || (probe.when !== undefined && decide(probe.when, registers, memory) !== true);
    const entry = this.#entry(at, outer, memory);
    const made = this.#taskPolls?.returningTo(site.returnAddress);
    const within = outer && !isJump(site, outer) && isTask(outer, made) ? undefined : outer;
    const result = resultAt as Addr | undefined;
    return this.#open(
      { probe, self, look, isAround, resultAt: result, guards: noGuards, within, runtime: made?.runtime, entry },
      at,
    );
  }

  /** Which of the Futures of one poll function is polled: by what the Future around holds there, or by who calls. */
  #identified(probe: Probed, site: CallSite, self: Addr, outer: PollCall | undefined): Probed {
    const around = outer && !isJump(site, outer) ? outer.payload : undefined;
    const offset = around ? Number(self - around.self) : -1;
    const inside = around && offset >= 0 && offset < around.probe.future.size ? around.probe : undefined;
    // Code that was made of several functions itself tells nothing.
    if (around && (inside ? inside.ref.oneOf !== undefined : isShared(around.probe))) return probe;
    const [address, { returnAddress }] = [probe.fn?.address as Addr, site];
    const found =
      (inside && this.#paths.find(inside.future, offset, probe.futures)?.inner?.future) ??
      this.#merged?.at({
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
    const { probe, self, look, isAround, resultAt, guards, entry, within, runtime } = opened;
    const before = look?.state;
    const space = this.#spaces?.root(at.space);
    const place = inSpace(self, space);
    // A Future that was never polled cannot be the one that was here before: a new lifetime.
    if (before?.name === 'Unresumed' && probe.roots.get(place) !== within?.payload.root) probe.roots.delete(place);
    return {
      kind: this,
      emitted: undefined,
      probe,
      guards,
      isAround,
      self,
      root: within?.payload.root ?? this.#rootOf(probe, { self, look, runtime, space }),
      began: this.#output.at(at.time),
      before,
      resultAt,
      inlined: inlines(probe) ? new InlinedChain(look) : undefined,
      hart: at.hart,
      entry,
      held: undefined,
      exit: undefined,
    };
  }

  #rootOf(
    probe: Probed,
    { self, look, runtime, space }: Pick<Opened, 'self' | 'look' | 'runtime'> & Pick<RootRef, 'space'>,
  ): RootRef {
    const { wraps } = probe;
    if (!wraps) return this.#roots.at(probe, { self, runtime, space });
    const address = addOffset(self, wraps.offset);
    if (look?.along(wraps.way)[0]?.resumed?.name === 'Unresumed') wraps.roots.delete(inSpace(address, space));
    return this.#roots.at(wraps, { self: address, runtime, space }, { future: probe.future, self });
  }

  #stackAt({ registers }: Moment, memory: HitMemory): readonly StackEntry[] | undefined {
    const request = this.#backtraces?.request(registers);
    const bytes = request && memory.at(request.address, request.length)?.bytes;
    return this.#backtraces?.read(registers, bytes);
  }

  #entry(at: Moment, around: PollCall | undefined, memory: HitMemory): Entry {
    const outer = around?.payload.inlined ? around : undefined;
    if (!outer && !this.#backtraces) return onlyMoment;
    const outerLook = outer && lookAt(outer.payload.probe, outer.payload.self, memory);
    return { stack: this.#stackAt(at, memory), outer, outerLook };
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
    const offset = Number(self - outer.self);
    if (!inlined || offset < 0 || offset >= outer.probe.future.size) return;
    const inner = this.#paths.find(outer.probe.future, offset, probe.futures);
    if (inner) this.#derived(outer, hart, inlined.enter(inner, look));
    else for (const future of probe.futures) inlined.observe({ future, offset });
  }

  exitReads({ payload }: PollCall): readonly MemoryRequest[] {
    const { probe, self, resultAt, guards } = payload;
    const reads = [{ address: self, length: probe.length }];
    const { result, resultSize = 0 } = probe.fn?.poll ?? {};
    if (result && resultAt !== undefined) reads.push({ address: resultAt, length: resultSize });
    for (const { offset, size } of guards) reads.push({ address: addOffset(self, offset), length: size });
    return reads;
  }

  returning({ payload }: PollCall, at: Moment, memory: HitMemory): void {
    const look = lookAt(payload.probe, payload.self, memory);
    payload.exit = { hart: at.hart, look, result: this.#result(payload, at, look, memory) };
  }

  ended(call: PollCall): void {
    const { payload } = call;
    const { inlined, exit, held } = payload;
    if (!exit) return;
    const { look, hart } = exit;
    const isHeld = exit.result === 'unknown' && (held === 'ready' || held === 'pending');
    const result = isHeld ? held : exit.result;
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
    handOn(call, result);
    this.#reportDrops(payload, { result, state, chain, hart });
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
      chain,
      wasLost,
    });
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
      const address = innerAddresses.at(outer.self, offset);
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
    if (root.address === self) this.#roots.over(root);
    if (isAround) return;
    const { time } = this.#output;
    const of = { time, hart, thread, root, future: probe.ref, address: self, depth, begin: emitted, began };
    this.#output.emit({ type: 'poll-lost', ...of });
  }

  /** A task's Future was dropped: what is polled at its address from now on is another one. */
  dropped(root: RootRef): void {
    this.#roots.over(root);
  }

  missed(): void {
    this.#implied.forget();
  }

  leftOut(probes: readonly ProbeFact[]): void {
    this.#implied.leftOut(probes);
  }

  forget(): void {
    this.#implied.forget();
    this.#roots.clear();
  }

  /**
   * Ready or Pending: from a compiler-made Future's own state; for any other from the tag of the `Poll<T>` it
   * returned.
   */
  #result(open: TracedPoll, { registers }: Moment, look: FutureLook | undefined, memory: HitMemory): PollResult {
    const { fn, tag, isNeverReady } = open.probe;
    if (isNeverReady) return look?.state?.name === 'Panicked' ? 'panicked' : 'pending';
    if (open.guards.some((guard) => !holds(guard, open.self, memory))) return 'ready';
    const state = look?.state;
    // The compiler does not store that it is Ready where nobody would read it.
    if (!fn && state && (state === open.before || !open.before)) {
      return state.name === 'Returned' ? 'ready' : 'unknown';
    }
    if (state) return state.name === 'Returned' ? 'ready' : state.name === 'Panicked' ? 'panicked' : 'pending';
    if (!fn?.poll.result) return 'unknown';
    if (open.resultAt === undefined) {
      const isReady = tag?.isReady(registers);
      return isReady === undefined ? 'unknown' : isReady ? 'ready' : 'pending';
    }
    const { offset, size, isReady } = fn.poll.result;
    const bytes = memory.at(open.resultAt, fn.poll.resultSize)?.bytes;
    if (!bytes || bytes.length < offset + size) return 'unknown';
    return isReady(littleEndian(bytes.subarray(offset, offset + size))) ? 'ready' : 'pending';
  }

  readonly #link = ({ future, typeName, state }: ChainLink, address: Addr | undefined): AwaitLink => ({
    future: future && this.#resolved.ref(future),
    typeName,
    address,
    state,
  });
}

/** Whether a poll is one of its task's own Future, or of what that lies in. */
function isRoot({ root, self, probe: { ref, wraps } }: TracedPoll): boolean {
  if (wraps) return root.future === wraps.ref && root.address === addOffset(self, wraps.offset);
  return root.future === ref && root.address === self;
}

/** A poll has ended: its result may be that of the poll around it. */
function handOn({ payload: { self, probe }, parent }: PollCall, result: PollResult): void {
  const outer = pollAround(parent)?.payload;
  const held = outer?.probe.handedOn;
  if (outer && held?.future === probe.future && self === addOffset(outer.self, held.offset)) outer.held = result;
}

function placeOf({ root, probe: { ref }, self }: TracedPoll): PolledPlace {
  return { root, ref, self };
}

function isShared({ fn }: Probed): boolean {
  return fn !== undefined && fn.among.length > 0;
}

/** The innermost poll of the calls around a place. */
export function pollAround(call: Call | undefined): PollCall | undefined {
  for (let at = call; at; at = at.parent) if (isPoll(at)) return at;
  return undefined;
}

/** The outer poll ends with a jump to this one, so the caller that is seen is not its own. */
function isJump({ returnAddress, stackPointer }: CallSite, outer: PollCall): boolean {
  return outer.returnAddress === returnAddress && outer.stackPointer === stackPointer;
}

/** A runtime makes a poll: not, if the poll around it was inlined into the runtime's code and makes it. */
function isTask({ payload }: PollCall, poll: TaskPoll | undefined): boolean {
  const { copy } = payload.probe;
  return poll !== undefined && (copy === undefined || !poll.around.has(copy.die.offset));
}

function isPoll(call: Call): call is PollCall {
  return call.payload.kind instanceof PollTracer;
}

function probed(
  { future, ref, isAround }: Pick<PollProbe, 'future' | 'ref' | 'isAround'>,
  futures: readonly FutureType[],
  roots: AddressMap<RootRef>,
): Probed {
  const isNeverReady = future.output === NEVER;
  const length = readLength(future);
  const held = handedOn(future);
  const unknown = { when: undefined, fn: undefined, copy: undefined, tag: undefined, inlines: undefined, among: [] };
  return { future, ref, isAround, futures, isNeverReady, length, roots, handedOn: held, wraps: undefined, ...unknown };
}

/** Whether an enum around a Future still has the variant that holds it; true if that was not read. */
function holds({ offset, size, values, within }: Guard, self: Addr, memory: HitMemory): boolean {
  const bytes = memory.at(addOffset(self, offset), size)?.bytes;
  if (!bytes || bytes.length < size) return true;
  const value = littleEndian(bytes);
  return values.some(({ low, high }) => value >= low && value <= high) === within;
}

function lookAt({ future, length }: Probed, self: Addr, memory: HitMemory): FutureLook | undefined {
  return memory.at(self, length)?.as(future);
}

function inlines(probe: Probed): boolean {
  probe.inlines ??= mayInline(probe.future);
  return probe.inlines;
}

function readLength(future: FutureType): number {
  // A Future without fields still has an address; reading a byte there is harmless and keeps replies in step.
  return Math.min(Math.max(future.size, 1), mostFutureBytes);
}

const noLinks: readonly AwaitLink[] = [];
const noReads: readonly MemoryRequest[] = [];

function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i] as number);
  return value;
}
