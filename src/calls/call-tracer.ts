import type { Architecture } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { ProbeFact } from '../trace/index.js';
import { CallStacks } from './call-stacks.js';
import { atOnce, type EventOutput, type Follows, Later } from './follows.js';
import type { Hit, Reaction, SpaceNumbers, Tracer, Visit } from './hit.js';
import {
  type BlockEdge,
  type BlockKind,
  type Call,
  type CallKind,
  type CallSite,
  type CrossingKind,
  type Here,
  type HitObserver,
  type InstantKind,
  type InstantSite,
  type Moment,
  type TracedCall,
  TracedPlaces,
} from './kinds.js';
import { MomentReads, type ReadAhead, type ReadMoment } from './moment-reads.js';
import { stackNumber } from './open-call.js';
import { Answers, type HitMemory } from './reading.js';

interface CallTracerOptions {
  readonly observer?: HitObserver | undefined;
  /** See {@link CallStacks}. */
  readonly stackBytes?: number | undefined;
  readonly switchesStacks?: boolean;
  /** Functions that are called when a panic was caught. */
  readonly catches?: readonly Addr[];
  readonly instants?: readonly InstantKind[];
  readonly crossings?: readonly CrossingKind[];
  /** Names the address spaces of hits. */
  readonly spaces?: SpaceNumbers;
}

const nowhere = addr(0n);

/** Where a call returns that would begin here. */
type ReturnSite = Omit<CallSite, 'around'>;

/** Calls of one place follow each other in one frame, whatever their kinds. */
const isAgain = (before: TracedCall, now: TracedCall): boolean =>
  before.place !== undefined && before.place === now.place;

/**
 * Matches entries with returns over one set of stacks, so that polls and functions nest in each other as they were
 * called. A place that is both a poll and a function opens two calls, the first kind's around the second's, and one
 * return ends both. It knows moments, not where they come from:
 *
 *      a moment  ->  the reads that it needs  ->  what follows from them
 *
 * A stop ({@link visit}) reads while the target stands. A stop that waits in a queue has read all that it may need
 * ({@link ahead}), and is understood in its turn ({@link replay}). A record carries its reads, so it never asks
 * ({@link entered}, {@link returned}, {@link reached}). What follows goes through the same steps.
 */
export class CallTracer implements Tracer {
  readonly #output: EventOutput;
  readonly #kinds: readonly Pick<CallKind, 'missed' | 'leftOut' | 'forget'>[];
  readonly #stacks: CallStacks<TracedCall>;
  readonly #places: TracedPlaces;
  readonly #reads: MomentReads;
  readonly #observer: HitObserver | undefined;
  readonly #ofSystemCalls: readonly CrossingKind[];
  readonly #opened: readonly Pick<CrossingKind, 'isOpen'>[];
  #undigested: { readonly time: number; readonly emit: () => void }[] = [];

  constructor(
    arch: Architecture,
    output: EventOutput,
    kinds: readonly CallKind[],
    {
      stackBytes,
      switchesStacks,
      catches = [],
      instants = [],
      crossings = [],
      spaces,
      observer,
    }: CallTracerOptions = {},
  ) {
    this.#stacks = new CallStacks(stackBytes, spaces, switchesStacks);
    this.#places = new TracedPlaces({ kinds, instants, crossings, catches });
    this.#reads = new MomentReads(arch, this.#stacks, this.#places);
    this.#output = output;
    this.#kinds = [...kinds, ...instants, ...crossings];
    this.#observer = observer;
    this.#opened = [...instants, ...crossings].filter((kind) => 'isOpen' in kind);
    this.#ofSystemCalls = crossings.filter(({ seesSystemCalls }) => seesSystemCalls);
  }

  get awaitsReturns(): boolean {
    return this.#stacks.awaitsAny || this.#opened.some(({ isOpen }) => isOpen);
  }

  /** A call is open that returns there, at a stop. */
  awaits(returnAddress: bigint): boolean {
    return this.#stacks.awaits(returnAddress);
  }

  *visit(hit: Hit): Visit {
    if (hit.systemCall === undefined) return this.#react(hit, yield* this.#reads.visit(hit));
    const memory = new Answers();
    yield* memory.readAll(() => this.#ofSystemCalls.flatMap((kind) => kind.reads(hit, memory)));
    const follows = this.#later();
    for (const kind of this.#ofSystemCalls) this.#cross(kind, hit, memory, follows);
    return follows.reaction(hit.pc);
  }

  /** Whether all that a stop here may mean can be read before it is known which calls are open. */
  canWait(pc: Addr): boolean {
    const { kinds, blocks, crossings } = this.#places.at(pc);
    return !this.#observer && blocks.length === 0 && crossings.length === 0 && kinds.every(({ ahead }) => ahead);
  }

  /** See {@link MomentReads.ahead}. */
  ahead(hit: Hit, ending: readonly Hit[]): Visit<ReadAhead> {
    return this.#reads.ahead(hit, ending);
  }

  /** A stop whose memory was read before, in its turn. What is not among that cannot be read. */
  replay(hit: Hit, memory: HitMemory): Reaction {
    const visit = this.visit(hit);
    let step = visit.next();
    while (!step.done) {
      const answers = step.value.map(({ address, length }) => memory.bytes(address, length));
      step = visit.next(answers.map((bytes) => (typeof bytes === 'string' ? undefined : bytes)));
    }
    this.digest();
    return step.value;
  }

  digest(): void {
    const todo = this.#undigested;
    this.#undigested = [];
    for (const { time, emit } of todo) {
      this.#output.moveTo(time);
      emit();
    }
  }

  standing(hit: Hit, memory: MemoryReader): Promise<void> | undefined {
    if (!this.#observer) return undefined;
    this.digest();
    return this.#observer.stopped(hit, memory);
  }

  /** The record of an entry. */
  entered(at: Moment, site: ReturnSite, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    const here = this.#places.at(at.pc);
    if (here.catches) this.#caught(at, site.stackPointer, atOnce);
    this.#enter(at, here, site, memory, atOnce);
    if (here.instants.length > 0) this.#pass(at, here, site, memory, atOnce);
    this.#observer?.recorded(at, memory);
  }

  /** The record of a return, to the moment's pc. */
  returned(at: Moment, stackPointer: number, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    this.#leave(at, at.pc, stackPointer, memory, atOnce);
    this.#observer?.recorded(at, memory);
  }

  /** The record of a place inside a function. */
  reached(at: Moment, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    const here = this.#places.at(at.pc);
    if (here.blocks.length > 0) this.#edges(at, here, memory, atOnce);
    if (here.instants.length > 0) this.#pass(at, here, undefined, memory, atOnce);
    this.#observer?.recorded(at, memory);
  }

  /** The trace ends here: calls still open are reported as lost, each where it began. */
  finish(): void {
    this.digest();
    for (const call of this.#stacks.clear()) call.payload.kind.lost?.(call, call.hart);
    this.missed();
  }

  /** Hits from the last one to the next one are not seen. */
  missed(): void {
    this.digest();
    for (const kind of this.#kinds) kind.missed?.();
  }

  /** These probes will not see all hits. */
  leftOut(probes: readonly ProbeFact[]): void {
    for (const kind of this.#kinds) kind.leftOut?.(probes);
  }

  /** The program has ended: open calls will not return. */
  abandon(): void {
    this.finish();
    for (const kind of this.#kinds) kind.forget?.();
  }

  /** What follows from a stop. */
  #react(hit: Hit, { memory, arrives, returnAddress, stackPointer }: ReadMoment): Reaction {
    const follows = this.#later();
    const here = this.#places.at(hit.pc);
    if (this.#stacks.awaits(hit.pc)) this.#leave(hit, hit.pc, stackNumber(hit.stackPointer), memory, follows);
    if (here.catches) this.#caught(hit, stackPointer, follows);
    this.#edges(hit, here, memory, follows);
    for (const kind of here.crossings) this.#cross(kind, hit, memory, follows);
    if (arrives) {
      const place = { returnAddress: returnAddress ?? nowhere, seesReturn: returnAddress !== undefined };
      this.#enter(hit, here, { ...place, stackPointer, isCall: false }, memory, follows);
    }
    this.#pass(hit, here, { returnAddress, stackPointer }, memory, follows);
    return follows.reaction(hit.pc);
  }

  #later(): Later {
    return new Later(
      ({ time }, emit) => this.#undigested.push({ time, emit }),
      (address) => this.#stacks.awaits(address),
    );
  }

  #leave(at: Moment, key: bigint, stackPointer: number, memory: HitMemory, follows: Follows): void {
    const { ended, lost } = this.#stacks.leave(at, key, stackPointer);
    for (let i = 0; i < ended.length; i++) {
      const call = ended[i] as Call;
      call.payload.kind.returning(call, at, memory);
    }
    follows.ended(at, ended, lost);
  }

  /** The hart leaves what it runs, or goes back to it. */
  #cross(kind: CrossingKind, at: Moment, memory: HitMemory, follows: Later): void {
    const { ended, begun, places = [], spent = [] } = kind.cross(at, memory);
    if (ended) {
      const where = { ...at, space: ended.space };
      const open = this.#stacks.endingAt(where, ended.key, ended.stackPointer);
      const isEnd = open.length > 0 && open.every(({ payload }) => ended.isOf(payload));
      if (isEnd) this.#leave(where, ended.key, ended.stackPointer, memory, follows);
      else kind.unmatched?.(at);
    }
    if (begun) {
      const { space, key: returnAddress, stackPointer, call: traced } = begun;
      const { call, lost } = this.#stacks.enter(
        { ...at, space },
        { returnAddress, stackPointer, isCall: true },
        traced,
        () => true,
      );
      follows.began(at, call, lost);
    }
    follows.stopAt(places, spent);
  }

  #caught(at: Moment, stackPointer: number, follows: Follows): void {
    follows.panicked(at, this.#stacks.unwind(at, stackPointer));
  }

  /** Calls of every kind begin that has some here. If none does, what returns to the same place is gone. */
  #enter(at: Moment, here: Here, site: ReturnSite, memory: HitMemory, follows: Follows): void {
    const { returnAddress, stackPointer, seesReturn, isCall } = site;
    let begins = false;
    let followsOthers = true;
    for (let i = 0; i < here.kinds.length; i++) {
      const kind = here.kinds[i] as CallKind;
      const around = this.#stacks.enclosing(at, stackPointer);
      const full: CallSite = { returnAddress, stackPointer, seesReturn, isCall, around };
      const traced = kind.begin(at, full, memory);
      if (!traced || !(seesReturn || traced.entryOnly)) continue;
      begins = true;
      if (traced.entryOnly) {
        follows.began(at, this.#stacks.passing(at, full, traced), []);
        continue;
      }
      // The next kind's call does not replace this one.
      const { call, lost } = this.#stacks.enter(at, full, traced, followsOthers ? isAgain : undefined);
      followsOthers &&= traced.place === undefined;
      follows.began(at, call, lost);
    }
    if (!begins && seesReturn) follows.began(at, undefined, this.#stacks.overwrite(at, stackPointer));
  }

  /** Blocks end and begin. */
  #edges(at: Moment, { blocks }: Here, memory: HitMemory, follows: Follows): void {
    for (const { kind, here } of blocks) {
      for (const edge of here.ended) {
        const stackPointer = edge.stackPointer(at.registers);
        if (stackPointer !== undefined) this.#leave(at, edge.key, stackPointer, memory, follows);
      }
      for (const edge of here.begun) this.#beginBlock(kind, at, edge, memory, follows);
    }
  }

  /** Unless it runs already. */
  #beginBlock(kind: BlockKind, at: Moment, edge: BlockEdge, memory: HitMemory, follows: Follows): void {
    const stackPointer = edge.stackPointer(at.registers);
    if (stackPointer === undefined || this.#stacks.isOpen(at, edge.key, stackPointer)) return;
    const traced = kind.begin(at, edge, this.#stacks.enclosing(at, stackPointer), memory);
    if (!traced) return;
    const { call, lost } = this.#stacks.enter(at, { returnAddress: edge.key, stackPointer, isCall: true }, traced);
    follows.began(at, call, lost);
  }

  /** Instants. `entry`: the return of a function's entry; undefined inside a function. */
  #pass(
    at: Moment,
    { instants }: Here,
    entry: { readonly returnAddress: Addr | undefined; readonly stackPointer: number } | undefined,
    memory: HitMemory,
    follows: Follows,
  ): void {
    for (const kind of instants) {
      const around = entry && this.#stacks.enclosing(at, entry.stackPointer);
      const { returnAddress, stackPointer } = entry ?? {};
      const site: InstantSite = { around, returnAddress, stackPointer, memory };
      const emit = kind.hit(at, site);
      if (emit) follows.emits(at, emit);
    }
  }
}
