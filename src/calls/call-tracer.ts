import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { SpaceNumbers } from '../target/index.js';
import type { AnyBegin, GuestNanos, ProbeFact, TraceEvent, TraceSink } from '../trace/index.js';
import { CallStacks, type OpenCall, type ReturnPlace, stackNumber } from './call-stacks.js';
import { type Hit, type MemoryRequest, newRequests, type Reaction, type Tracer } from './hit.js';
import { Answers, type HitMemory, nothingRead } from './reading.js';

export type Call = OpenCall<TracedCall>;

/** One place in a hart's execution: a stop there, or a trampoline's record. */
export type Moment = Omit<Hit, 'stackPointer'> & {
  /** The address space: 0, or nothing, if there is one only. Calls of two spaces are not related. */
  readonly space?: number | undefined;
};

/** The place of a call that would begin here. */
export interface CallSite {
  readonly returnAddress: Addr;
  /** The stack pointer when the call has returned, see `stackNumber`. */
  readonly stackPointer: number;
  /** The innermost open call around it. */
  readonly around: Call | undefined;
  /**
   * It comes from a trampoline. It is no turn of a loop, because functions that loop to their first instruction have
   * no trampoline. A stop may be one.
   */
  readonly isCall: boolean;
}

/** What is kept about an open call, of any kind. */
export interface TracedCall {
  readonly kind: CallKind;
  /** The event of its begin, once emitted. */
  emitted?: AnyBegin | undefined;
}

/**
 * Where code inside a function begins or ends that is traced like a call. It has no return address: its kind knows
 * where it ends.
 */
export interface BlockEdge {
  /** The number of the block, which no other one of the program has. */
  readonly block: number;
  /** Stands for the return address that a block has not. It is negative, as no address is. */
  readonly key: bigint;
  /**
   * The stack pointer with which the function around it returns, see `stackNumber`, less 1, and less 1 more for each
   * block around this one. So nothing else has the same one. Undefined if the registers do not tell.
   */
  stackPointer(registers: RegisterReader): number | undefined;
}

/** The blocks of one kind at a place. The outermost are first among those that begin, and last among the others. */
export interface BlocksHere {
  readonly ended: readonly BlockEdge[];
  readonly begun: readonly BlockEdge[];
}

/** A kind's calls that are blocks. */
export interface BlockKind {
  /**
   * Undefined where no block begins or ends. One that runs already is not begun again, and one that does not run is
   * not ended.
   */
  at(pc: Addr): BlocksHere | undefined;
  /** Memory to read where it begins. Asked again with what was read, until nothing new is asked for. */
  reads(at: Moment, block: BlockEdge, memory: HitMemory): readonly MemoryRequest[];
  begin(at: Moment, block: BlockEdge, around: Call | undefined, memory: HitMemory): TracedCall | undefined;
}

/** What a kind can say of a hit before it is known which calls are open. */
export interface AheadReads {
  /** Memory to read at an entry. Asked again with what was read, until nothing new is asked for. */
  entryReads(at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** All is read: false if certainly no call begins whose return matters. */
  mayBegin(at: Moment, memory: HitMemory): boolean;
  /** Memory to read where a call returns that began at a stop. Asked again with what was read. */
  exitReads(begun: Moment, at: Moment, memory: HitMemory): readonly MemoryRequest[];
}

/**
 * One kind of traced calls: polls, functions. `began`, `ended` and `lost` may run while the guest runs again; the
 * output's time is that of the hit.
 */
export interface CallKind {
  /** Whether calls of this kind begin at an address, always the same. Without it the kind is asked at each address. */
  isAt?(pc: Addr): boolean;
  /**
   * Memory to read at an entry, with the innermost open call there. Undefined when nothing of this kind begins at the
   * pc.
   */
  entryReads(at: Moment, around: () => Call | undefined): readonly MemoryRequest[] | undefined;
  /** Memory to read at an entry besides, now that some is known. What has no answer cannot be read. */
  moreReads?(at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** Whether both are calls of the same thing. At one place such calls follow each other. */
  isSame?(one: TracedCall, other: TracedCall): boolean;
  /** All is read. Undefined if this call emits nothing, or nothing of this kind begins. */
  begin(at: Moment, site: CallSite, memory: HitMemory): TracedCall | undefined;
  began(call: Call, lost: readonly Call[]): void;
  /** Memory to read when it returns. Asked again with what was read, until nothing new is asked for. */
  exitReads(call: Call, at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** It returns here: keeps the values of its return. */
  returning(call: Call, at: Moment, memory: HitMemory): void;
  ended(call: Call): void;
  /** Its return was not seen. */
  lost(call: Call, hart: number): void;
  /** A panic went through it and was caught further out. If the kind cannot know that, the call is lost. */
  panicked?(call: Call, hart: number): void;
  /** Calls without a function of their own. They are seen at stops only. */
  readonly blocks?: BlockKind | undefined;
  /** Undefined where what is read depends on the calls that are open. */
  readonly ahead?: AheadReads | undefined;
  /** Events are missing from here on to the next one, or probes of it are left out. */
  missed?(): void;
  leftOut?(probes: readonly ProbeFact[]): void;
  /** The program has ended, and no call is open: the objects in its memory no longer exist. */
  forget?(): void;
}

/** Places where a hit neither begins nor ends a call. */
export interface InstantKind {
  /** Whether an address is one of its places, always the same. Without it the kind is asked at each address. */
  isAt?(pc: Addr): boolean;
  /** Memory to read; undefined if the pc is none of its places. */
  reads?(at: Moment): readonly MemoryRequest[] | undefined;
  /** Emits the event, at the output's time, when the guest may run again; undefined if none. */
  hit(at: Moment, site: InstantSite): (() => void) | undefined;
}

/** What is around an instant that is a function's entry. */
export interface InstantSite {
  /** The innermost open call. */
  readonly around: Call | undefined;
  /** Undefined if it was not read. */
  readonly returnAddress: Addr | undefined;
  readonly memory: HitMemory;
}

/** The innermost poll or call around this one that was emitted. */
export function emittedAround({ parent }: Call): AnyBegin | undefined {
  for (let around = parent; around; around = around.parent) if (around.payload.emitted) return around.payload.emitted;
  return undefined;
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

/** Looks at every hit once its events are out. */
export interface HitObserver {
  /** A hit out of a record, which is read no more when this returns. */
  recorded(at: Moment, memory: HitMemory): void;
  /** A hit that stopped the target, which stands until the promise resolves. */
  stopped(at: Moment, memory: MemoryReader): Promise<void>;
}

export interface CallTracerOptions {
  readonly observer?: HitObserver | undefined;
  /** See {@link CallStacks}. */
  readonly stackBytes?: number | undefined;
  /** Functions that are called when a panic was caught. */
  readonly catches?: readonly Addr[];
  readonly instants?: readonly InstantKind[];
  /** Names the address spaces of hits. */
  readonly spaces?: SpaceNumbers;
}

/** Who has something at an address. */
interface Here {
  readonly kinds: readonly CallKind[];
  readonly blocks: readonly { readonly kind: BlockKind; readonly here: BlocksHere }[];
  readonly instants: readonly InstantKind[];
  /** A panic is caught here. */
  readonly catches: boolean;
}

/**
 * Matches entries with returns over one set of stacks, so that polls and functions nest in each other as they were
 * called. A place that is both a poll and a function opens two calls, the first kind's around the second's, and one
 * return ends both. It knows hits, not where they come from. Hits of stops are read in between (`wants`, `react`,
 * `digest`). Hits of records were read when they happened (`entered`, `returned`).
 */
export class CallTracer implements Tracer {
  readonly #arch: Architecture;
  readonly #output: EventOutput;
  readonly #kinds: readonly CallKind[];
  readonly #stacks: CallStacks<TracedCall>;
  readonly #instants: readonly InstantKind[];
  readonly #observer: HitObserver | undefined;
  /** Functions that are called when a panic was caught. */
  readonly #catches: readonly Addr[];
  /** By address: most hits are at a few of them. */
  readonly #here = new AddressMap<Here>();
  #undigested: { readonly time: number; readonly tell: () => void }[] = [];
  /** What `wants` found, for `react`. `arrives`: a call may begin. */
  #asked: { readonly requests: readonly MemoryRequest[]; readonly arrives: boolean } = { requests: [], arrives: false };

  constructor(
    arch: Architecture,
    output: EventOutput,
    kinds: readonly CallKind[],
    { stackBytes, catches = [], instants = [], spaces, observer }: CallTracerOptions = {},
  ) {
    this.#catches = catches;
    this.#stacks = new CallStacks(stackBytes, spaces);
    this.#arch = arch;
    this.#output = output;
    this.#kinds = kinds;
    this.#instants = instants;
    this.#observer = observer;
  }

  get awaitsReturns(): boolean {
    return this.#stacks.awaitsAny;
  }

  wants(hit: Hit): readonly MemoryRequest[] {
    const requests: MemoryRequest[] = this.#blockReads(hit, nothingRead);
    if (this.#stacks.awaits(hit.pc)) {
      requests.push(...this.#exitReads(hit, nothingRead));
    }
    let arrives = false;
    for (const kind of this.#kinds) {
      const reads = kind.entryReads(hit, () => this.#stacks.enclosing(hit, this.#afterReturn(hit)));
      if (!reads) continue;
      requests.push(...reads);
      arrives = true;
    }
    let isInstant = false;
    for (const kind of this.#instants) {
      const reads = kind.reads?.(hit);
      if (!reads) continue;
      requests.push(...reads);
      isInstant = true;
    }
    const stacked = this.#stackedReturn(hit);
    if ((arrives || isInstant) && stacked) requests.push(stacked);
    this.#asked = { requests, arrives };
    return requests;
  }

  wantsMore(hit: Hit, answers: readonly (Uint8Array | undefined)[]): readonly MemoryRequest[] {
    const returns = this.#stacks.awaits(hit.pc);
    const hasBlocks = this.#at(hit.pc).blocks.length > 0;
    const { requests, arrives } = this.#asked;
    if (!arrives && !returns && !hasBlocks) return [];
    const memory = new Answers(requests, answers);
    const more = arrives ? this.#kinds.flatMap((kind) => kind.moreReads?.(hit, memory) ?? []) : [];
    if (hasBlocks) more.push(...this.#blockReads(hit, memory));
    if (returns) more.push(...this.#exitReads(hit, memory));
    const fresh = more.length === 0 ? more : newRequests(more, requests);
    if (fresh.length > 0) this.#asked = { requests: [...requests, ...fresh], arrives };
    return fresh;
  }

  #exitReads(hit: Hit, memory: HitMemory): readonly MemoryRequest[] {
    const ending = this.#stacks.endingAt(hit, hit.pc, stackNumber(hit.stackPointer));
    return ending.flatMap((call) => call.payload.kind.exitReads(call, hit, memory));
  }

  react(hit: Hit, answers: readonly (Uint8Array | undefined)[]): Reaction {
    const memory = new Answers(this.#asked.requests, answers);
    const watch: Addr[] = [];
    const unwatch: Addr[] = [];
    if (this.#stacks.awaits(hit.pc)) {
      const { ended, lost } = this.#stacks.leave(hit, hit.pc, stackNumber(hit.stackPointer));
      for (const call of ended) call.payload.kind.returning(call, hit, memory);
      if (ended.length > 0) this.#later(hit, () => this.#reportEnd(hit.hart, ended, lost));
      for (const { returnAddress } of [...ended, ...lost]) this.#unwatchIfIdle(returnAddress, unwatch);
    }
    const here = this.#at(hit.pc);
    if (here.catches) {
      const gone = this.#stacks.unwind(hit, this.#afterReturn(hit));
      if (gone.length > 0) this.#later(hit, () => this.#reportPanic(hit.hart, gone));
      for (const { returnAddress } of gone) this.#unwatchIfIdle(returnAddress, unwatch);
    }
    for (const gone of this.#laterBlocks(hit, memory)) this.#unwatchIfIdle(gone.returnAddress, unwatch);
    for (const { call, lost } of this.#arrivals(hit, memory)) {
      this.#later(hit, () => this.#reportBegin(hit.hart, call, lost));
      if (call) watch.push(call.returnAddress as Addr);
      for (const gone of lost) this.#unwatchIfIdle(gone.returnAddress, unwatch);
    }
    for (const kind of here.instants) {
      const around = this.#stacks.enclosing(hit, this.#afterReturn(hit));
      const emit = kind.hit(hit, { around, returnAddress: this.#returnAddress(hit, memory), memory });
      if (emit) this.#later(hit, emit);
    }
    // A call that began at a stop may have ended with one that a trampoline recorded.
    this.#unwatchIfIdle(hit.pc, unwatch);
    return { watch, unwatch };
  }

  /** A call is open that returns there, at a stop. */
  awaits(returnAddress: bigint): boolean {
    return this.#stacks.awaits(returnAddress);
  }

  /**
   * Memory to read at a stop, although what came before it is not known yet: all that it may want. Asked again with
   * what was read. `ending`: where calls began, at stops not known yet, that may end here. Undefined if what is read
   * depends on the calls that are open.
   */
  readsAhead(hit: Hit, memory: HitMemory, ending: readonly Hit[]): readonly MemoryRequest[] | undefined {
    const { kinds, blocks, instants } = this.#at(hit.pc);
    const isOpen = kinds.some(({ ahead }) => !ahead) || blocks.length > 0;
    if (this.#observer || isOpen) return undefined;
    const requests: MemoryRequest[] = [];
    if (this.#stacks.awaits(hit.pc)) requests.push(...this.#exitReads(hit, memory));
    for (const begun of ending)
      for (const { ahead } of this.#at(begun.pc).kinds) requests.push(...(ahead?.exitReads(begun, hit, memory) ?? []));
    for (const { ahead } of kinds) requests.push(...(ahead?.entryReads(hit, memory) ?? []));
    for (const kind of instants) requests.push(...(kind.reads?.(hit) ?? []));
    const stacked = kinds.length + instants.length > 0 ? this.#stackedReturn(hit) : undefined;
    if (stacked) requests.push(stacked);
    return requests;
  }

  /** All of {@link readsAhead} is read: where a call returns that may begin here. */
  beginsAhead(hit: Hit, memory: HitMemory): Omit<CallSite, 'around' | 'isCall'> | undefined {
    const { kinds } = this.#at(hit.pc);
    if (!kinds.some(({ ahead }) => ahead?.mayBegin(hit, memory))) return undefined;
    const returnAddress = this.#returnAddress(hit, memory);
    return returnAddress && { returnAddress, stackPointer: this.#afterReturn(hit) };
  }

  /** A stop whose memory was read before, in its turn. What is not among that cannot be read. */
  replay(hit: Hit, memory: HitMemory): Reaction {
    const answers: (Uint8Array | undefined)[] = [];
    let requests = this.wants(hit);
    do {
      for (const { address, length } of requests) {
        const bytes = memory.bytes(address, length);
        answers.push(typeof bytes === 'string' ? undefined : bytes);
      }
      requests = this.wantsMore(hit, answers);
    } while (requests.length > 0);
    const reaction = this.react(hit, answers);
    this.digest();
    return reaction;
  }

  digest(): void {
    const todo = this.#undigested;
    this.#undigested = [];
    for (const { time, tell } of todo) {
      this.#output.moveTo(time);
      tell();
    }
  }

  standing(hit: Hit, memory: MemoryReader): Promise<void> | undefined {
    if (!this.#observer) return undefined;
    this.digest();
    return this.#observer.stopped(hit, memory);
  }

  /** An entry whose memory has been read. `stackPointer` is that of its return. */
  entered(at: Moment, returnAddress: Addr, stackPointer: number, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    const { kinds, instants, catches } = this.#at(at.pc);
    if (catches) this.#reportPanic(at.hart, this.#stacks.unwind(at, stackPointer));
    let begins = false;
    for (const kind of kinds) {
      const begun = this.#begin(kind, at, { returnAddress, stackPointer, isCall: true }, memory);
      if (!begun) continue;
      this.#reportBegin(at.hart, begun.call, begun.lost);
      begins = true;
    }
    if (!begins) this.#reportLost(at.hart, this.#stacks.overwrite(at, stackPointer));
    for (const kind of instants) {
      const around = this.#stacks.enclosing(at, stackPointer);
      kind.hit(at, { around, returnAddress, memory })?.();
    }
    this.#observer?.recorded(at, memory);
  }

  /** A return, to the moment's pc, whose memory has been read. */
  returned(at: Moment, stackPointer: number, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    const { ended, lost } = this.#stacks.leave(at, at.pc, stackPointer);
    for (const call of ended) call.payload.kind.returning(call, at, memory);
    this.#reportEnd(at.hart, ended, lost);
    this.#observer?.recorded(at, memory);
  }

  /** A place inside a function, whose memory has been read. */
  reached(at: Moment, memory: HitMemory): void {
    this.#output.moveTo(at.time);
    const { blocks, instants } = this.#at(at.pc);
    for (const { kind, here } of blocks) {
      for (const edge of here.ended) {
        const { ended, lost } = this.#endBlock(at, edge, memory);
        if (ended.length > 0) this.#reportEnd(at.hart, ended, lost);
      }
      for (const edge of here.begun) {
        const begun = this.#beginBlock(kind, at, edge, memory);
        if (begun) this.#reportBegin(at.hart, begun.call, begun.lost);
      }
    }
    for (const kind of instants) kind.hit(at, { around: undefined, returnAddress: undefined, memory })?.();
    this.#observer?.recorded(at, memory);
  }

  /** The trace ends here: calls still open are reported as lost, each where it began. */
  finish(): void {
    this.digest();
    for (const call of this.#stacks.clear()) call.payload.kind.lost(call, call.hart);
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

  /** What a stop begins, and the calls that are therefore gone. */
  #arrivals(hit: Hit, memory: HitMemory): { readonly call?: Call; readonly lost: readonly Call[] }[] {
    const returnAddress = this.#asked.arrives ? this.#returnAddress(hit, memory) : undefined;
    if (returnAddress === undefined) return [];
    const stackPointer = this.#afterReturn(hit);
    const begun = this.#kinds.flatMap(
      (kind) => this.#begin(kind, hit, { returnAddress, stackPointer, isCall: false }, memory) ?? [],
    );
    return begun.length > 0 ? begun : [{ lost: this.#stacks.overwrite(hit, stackPointer) }];
  }

  #begin(
    kind: CallKind,
    at: Moment,
    { returnAddress, stackPointer, isCall }: ReturnPlace & { readonly returnAddress: Addr },
    memory: HitMemory,
  ): { readonly call: Call; readonly lost: readonly Call[] } | undefined {
    const around = this.#stacks.enclosing(at, stackPointer);
    const site: CallSite = { returnAddress, stackPointer, around, isCall };
    const traced = kind.begin(at, site, memory);
    if (!traced) return undefined;
    const isAgain = (other: TracedCall): boolean => other.kind === kind && (kind.isSame?.(other, traced) ?? false);
    return this.#stacks.enter(at, site, traced, isAgain);
  }

  #at(pc: Addr): Here {
    let here = this.#here.get(pc);
    if (!here) {
      here = {
        kinds: this.#kinds.filter((kind) => kind.isAt?.(pc) ?? true),
        blocks: this.#kinds.flatMap(({ blocks: kind }) => {
          const here = kind?.at(pc);
          return kind && here ? [{ kind, here }] : [];
        }),
        instants: this.#instants.filter((kind) => kind.isAt?.(pc) ?? true),
        catches: this.#catches.includes(pc),
      };
      this.#here.set(pc, here);
    }
    return here;
  }

  #blockReads(hit: Hit, memory: HitMemory): MemoryRequest[] {
    return this.#at(hit.pc).blocks.flatMap(({ kind, here }) => {
      const ending = here.ended.flatMap((edge) => this.#running(hit, edge));
      const begun = here.begun.filter((edge) => this.#running(hit, edge).length === 0);
      return [
        ...ending.flatMap((call) => call.payload.kind.exitReads(call, hit, nothingRead)),
        ...begun.flatMap((edge) => kind.reads(hit, edge, memory)),
      ];
    });
  }

  /** Ends and begins blocks at a stop. Returns the calls that are gone. */
  #laterBlocks(hit: Hit, memory: HitMemory): readonly Call[] {
    const gone: Call[] = [];
    for (const { kind, here } of this.#at(hit.pc).blocks) {
      for (const edge of here.ended) {
        const { ended, lost } = this.#endBlock(hit, edge, memory);
        if (ended.length > 0) this.#later(hit, () => this.#reportEnd(hit.hart, ended, lost));
        gone.push(...lost);
      }
      for (const edge of here.begun) {
        const begun = this.#beginBlock(kind, hit, edge, memory);
        if (!begun) continue;
        this.#later(hit, () => this.#reportBegin(hit.hart, begun.call, begun.lost));
        gone.push(...begun.lost);
      }
    }
    return gone;
  }

  #endBlock(
    hit: Moment,
    edge: BlockEdge,
    memory: HitMemory,
  ): { readonly ended: readonly Call[]; readonly lost: readonly Call[] } {
    const stackPointer = edge.stackPointer(hit.registers);
    if (stackPointer === undefined) return { ended: noCalls, lost: noCalls };
    const gone = this.#stacks.leave(hit, edge.key, stackPointer);
    for (const call of gone.ended) call.payload.kind.returning(call, hit, memory);
    return gone;
  }

  /** Undefined if it runs already, or if nothing begins. */
  #beginBlock(
    kind: BlockKind,
    hit: Moment,
    edge: BlockEdge,
    memory: HitMemory,
  ): { readonly call: Call; readonly lost: readonly Call[] } | undefined {
    const stackPointer = edge.stackPointer(hit.registers);
    if (stackPointer === undefined || this.#stacks.isOpen(hit, edge.key, stackPointer)) return undefined;
    const around = this.#stacks.enclosing(hit, stackPointer);
    const traced = kind.begin(hit, edge, around, memory);
    return traced && this.#stacks.enter(hit, { returnAddress: edge.key, stackPointer, isCall: true }, traced);
  }

  #running(hit: Moment, edge: BlockEdge): readonly Call[] {
    const stackPointer = edge.stackPointer(hit.registers);
    return stackPointer === undefined ? noCalls : this.#stacks.endingAt(hit, edge.key, stackPointer);
  }

  #reportBegin(hart: number, call: Call | undefined, lost: readonly Call[]): void {
    this.#reportLost(hart, lost);
    call?.payload.kind.began(call, lost);
  }

  #reportEnd(hart: number, ended: readonly Call[], lost: readonly Call[]): void {
    this.#reportLost(hart, lost);
    for (const call of ended) call.payload.kind.ended(call);
  }

  #reportLost(hart: number, lost: readonly Call[]): void {
    for (const call of lost) call.payload.kind.lost(call, hart);
  }

  #reportPanic(hart: number, gone: readonly Call[]): void {
    for (const call of gone) {
      const { kind } = call.payload;
      if (kind.panicked) kind.panicked(call, hart);
      else if (!call.wasLost) kind.lost(call, hart);
    }
  }

  #later({ time }: Hit, tell: () => void): void {
    this.#undigested.push({ time, tell });
  }

  #unwatchIfIdle(returnAddress: bigint, unwatch: Addr[]): void {
    if (returnAddress < 0n) return;
    if (!this.#stacks.awaits(returnAddress)) unwatch.push(addr(returnAddress));
  }

  #afterReturn(hit: Hit): number {
    return stackNumber(this.#arch.stackPointerAfterReturn(hit.stackPointer));
  }

  /** Where an entry finds its return address, if that is in memory. */
  #stackedReturn({ stackPointer }: Hit): MemoryRequest | undefined {
    const where = this.#arch.returnAddress;
    return where.in === 'stack' ? { address: addOffset(addr(stackPointer), where.offset), length: 8 } : undefined;
  }

  #returnAddress(hit: Hit, memory: HitMemory): Addr | undefined {
    const where = this.#arch.returnAddress;
    if (where.in === 'register') {
      const value = hit.registers.register(where.name);
      return value === undefined ? undefined : addr(value);
    }
    const stacked = this.#stackedReturn(hit);
    const bytes = stacked && memory.at(stacked.address, stacked.length)?.bytes;
    if (!bytes || bytes.length < 8) return undefined;
    return addr(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  }
}

const noCalls: readonly never[] = [];
