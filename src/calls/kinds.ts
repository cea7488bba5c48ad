import type { Addr } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import type { MemoryReader, RegisterReader } from '../base/memory-reader.js';
import type { AnyBegin, ProbeFact } from '../trace/index.js';
import type { Hit, MemoryRequest } from './hit.js';
import type { OpenCall } from './open-call.js';
import type { HitMemory } from './reading.js';

export type Call = OpenCall<TracedCall>;

/** One place in a hart's execution: a stop there, or a trampoline's record. */
export type Moment = Omit<Hit, 'stackPointer'>;

/** The place of a call that would begin here. */
export interface CallSite {
  readonly returnAddress: Addr;
  /** The stack pointer when the call has returned, see `stackNumber`. */
  readonly stackPointer: number;
  /** The innermost open call around it. */
  readonly around: Call | undefined;
  /** Something observes the return; else the call is over where it began. */
  readonly seesReturn: boolean;
  /**
   * It comes from a trampoline. It is no turn of a loop, because functions that loop to their first instruction have
   * no trampoline. A stop may be one.
   */
  readonly isCall: boolean;
}

/**
 * An open call has the caller and the frame of one that would begin. Either the function jumps to its first
 * instruction, or its last action was a jump to another one, or it was left without a return.
 */
export function isSameFrame(open: Call, { returnAddress, stackPointer }: CallSite): boolean {
  return open.returnAddress === returnAddress && open.stackPointer === stackPointer;
}

/** The innermost open call of a kind in the frame of one that would begin: other kinds may have some there, too. */
export function inSameFrame(kind: OpenKind, site: CallSite): Call | undefined {
  for (let call = site.around; call && isSameFrame(call, site); call = call.parent)
    if (call.payload.kind === kind) return call;
  return undefined;
}

/** What is kept about an open call, of any kind. */
export interface TracedCall {
  readonly kind: OpenKind;
  /** The event of its begin, once emitted. */
  emitted?: AnyBegin | undefined;
  /** Nothing observes its return: it is over where it began, and nothing is inside it. */
  readonly entryOnly?: boolean;
  /** Where it began, if one that begins there in its frame proves that it was left without a return. */
  readonly place?: Addr;
  /** What it stands inside has not called it: an interrupt. */
  readonly isInterrupt?: boolean;
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
   * block around this one. So nothing else has the same one. Undefined if the registers do not say.
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
  entryReads?(at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** All is read: false if certainly no call begins whose return matters. */
  mayBegin(at: Moment, memory: HitMemory): boolean;
  /** Memory to read where a call returns that began at a stop. Asked again with what was read. */
  exitReads?(begun: Moment, at: Moment, memory: HitMemory): readonly MemoryRequest[];
}

/**
 * What becomes of open calls, whatever began them. `began`, `ended` and `lost` may run while the guest runs again; the
 * output's time is that of the hit.
 */
export interface OpenKind {
  began?(call: Call, lost: readonly Call[]): void;
  /** Memory to read when it returns. Asked again with what was read, until nothing new is asked for. */
  exitReads?(call: Call, at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** It returns here: keeps the values of its return. */
  returning(call: Call, at: Moment, memory: HitMemory): void;
  ended?(call: Call): void;
  /** Its return was not seen. */
  lost?(call: Call, hart: number): void;
  /** A panic went through it and was caught further out. If the kind cannot know that, the call is lost. */
  panicked?(call: Call, hart: number): void;
}

/** One kind of traced calls: polls, functions. */
export interface CallKind extends OpenKind {
  /** Whether calls of this kind begin at an address, always the same. Without it the kind is asked at each address. */
  isAt?(pc: Addr): boolean;
  /**
   * Memory to read at an entry, with the innermost open call there. Undefined when nothing of this kind begins at the
   * pc.
   */
  entryReads(at: Moment, around: () => Call | undefined): readonly MemoryRequest[] | undefined;
  /** Memory to read at an entry besides, now that some is known. What has no answer cannot be read. */
  moreReads?(at: Moment, memory: HitMemory): readonly MemoryRequest[];
  /** All is read. Undefined if this call emits nothing, or nothing of this kind begins. */
  begin(at: Moment, site: CallSite, memory: HitMemory): TracedCall | undefined;
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
  /** Something has begun at a stop of it, and ends at another one. */
  readonly isOpen?: boolean;
  /** See {@link CallKind}. */
  missed?(): void;
  leftOut?(probes: readonly ProbeFact[]): void;
  forget?(): void;
}

/** What is around an instant that is a function's entry. */
export interface InstantSite {
  /** The innermost open call. */
  readonly around: Call | undefined;
  /** Undefined if it was not read. */
  readonly returnAddress: Addr | undefined;
  readonly stackPointer: number | undefined;
  readonly memory: HitMemory;
}

/** Where something is left that is traced like a call, see {@link Crossing}. */
export interface CrossingPlace {
  /** See `Moment.space`: of what is left, not of the hart as it stands here. */
  readonly space: number;
  /** See {@link BlockEdge.key}. */
  readonly key: bigint;
  /** See {@link BlockEdge.stackPointer}. */
  readonly stackPointer: number;
}

/** What a stop at such a place means. */
export interface Crossing {
  /** `isOf`: whether it is this open call's end. */
  readonly ended?: (CrossingPlace & { isOf(call: TracedCall): boolean }) | undefined;
  readonly begun?: (CrossingPlace & { readonly call: TracedCall }) | undefined;
  /** Further places of the kind, which the target has just shown. */
  readonly places?: readonly Addr[];
  /** Places that show nothing any more. */
  readonly spent?: readonly Addr[];
}

/**
 * Places at which a hart leaves what it runs, whatever that is, or goes back to it: traps. They are seen at stops only,
 * and some are known only when the target has run.
 */
export interface CrossingKind {
  isAt(pc: Addr): boolean;
  /** It sees the stops at system calls of a process, wherever these are. */
  readonly seesSystemCalls?: true;
  /** Memory to read. Asked again with what was read, until nothing new is asked for. */
  reads(at: Moment, memory: HitMemory): readonly MemoryRequest[];
  cross(at: Moment, memory: HitMemory): Crossing;
  /** Nothing was open that ends there. */
  unmatched?(at: Moment): void;
  /** See {@link InstantKind.isOpen}. */
  readonly isOpen?: boolean;
  /** See {@link CallKind}. */
  missed?(): void;
  leftOut?(probes: readonly ProbeFact[]): void;
  forget?(): void;
}

/** The innermost poll or call around this one that was emitted. */
export function emittedAround({ parent }: Call): AnyBegin | undefined {
  for (let around = parent; around; around = around.parent) if (around.payload.emitted) return around.payload.emitted;
  return undefined;
}

/** Observes every hit once its events are out. */
export interface HitObserver {
  /** A hit out of a record, which is read no more when this returns. */
  recorded(at: Moment, memory: HitMemory): void;
  /** A hit that stopped the target, which stands until the promise resolves. */
  stopped(at: Moment, memory: MemoryReader): Promise<void>;
}

/** Who has something at an address. */
export interface Here {
  readonly kinds: readonly CallKind[];
  readonly blocks: readonly { readonly kind: BlockKind; readonly here: BlocksHere }[];
  readonly instants: readonly InstantKind[];
  readonly crossings: readonly CrossingKind[];
  /** A panic is caught here. */
  readonly catches: boolean;
}

interface AllKinds {
  readonly kinds: readonly CallKind[];
  readonly instants: readonly InstantKind[];
  readonly crossings: readonly CrossingKind[];
  /** Functions that are called when a panic was caught. */
  readonly catches: readonly Addr[];
}

/** The places of all kinds, by address: most hits are at a few of them. */
export class TracedPlaces {
  readonly #all: AllKinds;
  readonly #here = new AddressMap<Here>();

  constructor(all: AllKinds) {
    this.#all = all;
  }

  at(pc: Addr): Here {
    let here = this.#here.get(pc);
    if (!here) {
      const { kinds, instants, crossings, catches } = this.#all;
      here = {
        kinds: kinds.filter((kind) => kind.isAt?.(pc) ?? true),
        blocks: kinds.flatMap(({ blocks: kind }) => {
          const here = kind?.at(pc);
          return kind && here ? [{ kind, here }] : [];
        }),
        instants: instants.filter((kind) => kind.isAt?.(pc) ?? true),
        crossings: crossings.filter((kind) => kind.isAt(pc)),
        catches: catches.includes(pc),
      };
      this.#here.set(pc, here);
    }
    return here;
  }
}
