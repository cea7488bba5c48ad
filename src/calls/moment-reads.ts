import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import type { CallStacks } from './call-stacks.js';
import type { Hit, MemoryRequest, Visit } from './hit.js';
import type { BlockEdge, Call, CallSite, TracedCall, TracedPlaces } from './kinds.js';
import { stackNumber } from './open-call.js';
import { Answers, type HitMemory, nothingRead } from './reading.js';

/** A stop with all that it needs. */
export interface ReadMoment {
  readonly memory: HitMemory;
  /** A call may begin here. */
  readonly arrives: boolean;
  /** Undefined if it was not read. */
  readonly returnAddress: Addr | undefined;
  /** When a call that begins here has returned, see `stackNumber`. */
  readonly stackPointer: number;
}

/** All that a stop may mean is read, although what came before it is not known yet. */
export interface ReadAhead {
  readonly memory: HitMemory;
  /** Where a call returns that may begin here. */
  readonly begins: Pick<CallSite, 'returnAddress' | 'stackPointer'> | undefined;
}

/** From a moment to the reads that it needs. */
export class MomentReads {
  readonly #arch: Architecture;
  readonly #stacks: CallStacks<TracedCall>;
  readonly #places: TracedPlaces;

  constructor(arch: Architecture, stacks: CallStacks<TracedCall>, places: TracedPlaces) {
    this.#arch = arch;
    this.#stacks = stacks;
    this.#places = places;
  }

  /** Reads what a stop needs, while the target stands. */
  *visit(hit: Hit): Visit<ReadMoment> {
    const memory = new Answers();
    const { kinds, blocks, instants, crossings } = this.#places.at(hit.pc);
    const returns = this.#stacks.awaits(hit.pc);
    const requests = this.#blockReads(hit, memory);
    if (returns) requests.push(...this.#exitReads(hit, memory));
    for (const kind of crossings) requests.push(...kind.reads(hit, memory));
    const around = (): Call | undefined => this.#stacks.enclosing(hit, this.#afterReturn(hit));
    const entries = kinds.map((kind) => kind.entryReads(hit, around));
    const arrives = entries.some((reads) => reads !== undefined);
    const besides = instants.map((kind) => kind.reads?.(hit));
    const reads = [...entries, ...besides];
    for (const each of reads) if (each) requests.push(...each);
    const stacked = reads.some((each) => each !== undefined) ? this.#stackedReturn(hit) : undefined;
    if (stacked) requests.push(stacked);
    memory.add(requests, yield requests);
    if (arrives || returns || blocks.length > 0 || crossings.length > 0) {
      yield* memory.readAll(() => {
        const more = arrives ? kinds.flatMap((kind) => kind.moreReads?.(hit, memory) ?? []) : [];
        more.push(...this.#blockReads(hit, memory));
        if (returns) more.push(...this.#exitReads(hit, memory));
        for (const kind of crossings) more.push(...kind.reads(hit, memory));
        return more;
      });
    }
    const returnAddress = arrives || instants.length > 0 ? this.#returnAddress(hit, memory) : undefined;
    return { memory, arrives, returnAddress, stackPointer: this.#afterReturn(hit) };
  }

  /**
   * Reads all that a stop may mean, although what came before it is not known yet. `ending`: where calls began, at
   * such stops too, that may end here.
   */
  *ahead(hit: Hit, ending: readonly Hit[]): Visit<ReadAhead> {
    const memory = new Answers();
    const first = this.#readsAhead(hit, memory, ending);
    memory.add(first, yield first);
    yield* memory.readAll(() => this.#readsAhead(hit, memory, ending));
    const mayBegin = this.#places.at(hit.pc).kinds.some(({ ahead }) => ahead?.mayBegin(hit, memory));
    const returnAddress = mayBegin ? this.#returnAddress(hit, memory) : undefined;
    return { memory, begins: returnAddress && { returnAddress, stackPointer: this.#afterReturn(hit) } };
  }

  #exitReads(hit: Hit, memory: HitMemory): readonly MemoryRequest[] {
    const ending = this.#stacks.endingAt(hit, hit.pc, stackNumber(hit.stackPointer));
    return ending.flatMap((call) => call.payload.kind.exitReads?.(call, hit, memory) ?? []);
  }

  #blockReads(hit: Hit, memory: HitMemory): MemoryRequest[] {
    const running = (edge: BlockEdge): readonly Call[] => {
      const stackPointer = edge.stackPointer(hit.registers);
      return stackPointer === undefined ? [] : this.#stacks.endingAt(hit, edge.key, stackPointer);
    };
    return this.#places.at(hit.pc).blocks.flatMap(({ kind, here }) => {
      const ending = here.ended.flatMap(running);
      const begun = here.begun.filter((edge) => running(edge).length === 0);
      return [
        ...ending.flatMap((call) => call.payload.kind.exitReads?.(call, hit, nothingRead) ?? []),
        ...begun.flatMap((edge) => kind.reads(hit, edge, memory)),
      ];
    });
  }

  #readsAhead(hit: Hit, memory: HitMemory, ending: readonly Hit[]): readonly MemoryRequest[] {
    const { kinds, instants } = this.#places.at(hit.pc);
    const requests: MemoryRequest[] = [];
    if (this.#stacks.awaits(hit.pc)) requests.push(...this.#exitReads(hit, memory));
    for (const begun of ending)
      for (const { ahead } of this.#places.at(begun.pc).kinds)
        requests.push(...(ahead?.exitReads?.(begun, hit, memory) ?? []));
    for (const { ahead } of kinds) requests.push(...(ahead?.entryReads?.(hit, memory) ?? []));
    for (const kind of instants) requests.push(...(kind.reads?.(hit) ?? []));
    const stacked = kinds.length + instants.length > 0 ? this.#stackedReturn(hit) : undefined;
    if (stacked) requests.push(stacked);
    return requests;
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
    const word = stacked && memory.at(stacked.address, stacked.length)?.word(0);
    return word === undefined ? undefined : addr(word);
  }
}
