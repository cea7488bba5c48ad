import type { Addr } from '../../base/addr.js';
import type { RingGeometry } from './ring-contract.js';

/** The source of a record's field. `kept` words exist at an exit only: the values of those registers at the entry. */
export type FieldSource =
  | { readonly kind: 'register'; readonly name: string }
  /**
   * The low 64 bits of one of {@link ProbeCode.floats}. `mayBeOff`: all-ones where the hart's floating-point unit is
   * off.
   */
  | { readonly kind: 'float'; readonly name: string; readonly mayBeOff: boolean }
  /** At an entry the value before the trampoline; at an exit the value after the function's return. */
  | { readonly kind: 'stack-pointer' }
  | { readonly kind: 'return-address' }
  | { readonly kind: 'kept'; readonly index: number }
  | { readonly kind: 'constant'; readonly value: bigint }
  /** Of the architecture's counter. */
  | { readonly kind: 'time' }
  /**
   * Which hart or thread it is. `how` is one of the architecture's ways:
   *
   *   riscv  `tp` | `at-tp`: the 32 bits at tp + `offset`
   *   arm    `mpidr`: MPIDR_EL1, whose fields say where in the machine it is
   *   x86    `apic`: the number of the processor's APIC, 0 to 255 | `fs`: the word at fs's base + `offset`, 0 unless given
   */
  | { readonly kind: 'hart'; readonly how: string; readonly offset?: number }
  /**
   * Memory at a pointer: all-ones if the pointer is null or not a multiple of `align`. Only pointers that the
   * program's own types declare as references may be given, because a wild load faults in the target.
   */
  | { readonly kind: 'load'; readonly base: LoadBase; readonly offset: number; readonly align: number }
  /** A word of the control block. `outer` is that of the poll around this call, at the entry and at the exit. */
  | { readonly kind: 'control'; readonly offset: number }
  /** The address of the Future whose poll is open in this thread, or 0: the first of `OuterWords`. */
  | { readonly kind: 'outer' };

/** The word by which a trampoline names its hart, and where the client finds the same word. */
export type HartSource = FieldSource & {
  readonly kind: 'hart';
  /** Where the client reads that word for a stopped hart; undefined if it cannot. */
  readonly outside?:
    | { readonly kind: 'register'; readonly name: string }
    /** Linux's number of the CPU whose hart's number is in the register. */
    | { readonly kind: 'linux-cpu'; readonly hartRegister: string }
    /** The number of the processor's APIC. */
    | { readonly kind: 'apic' }
    /** MPIDR_EL1 of machines with one cluster. */
    | { readonly kind: 'affinity' };
};

/** What must be known about a guest to choose a {@link HartSource}. */
export interface HartsOfGuest {
  readonly count: number;
  /** For a Linux kernel only: the offset of the CPU's number in a task; undefined if neither BTF nor DWARF has it. */
  readonly cpuInTask?: (() => number | undefined) | undefined;
}

export type LoadBase = Partial<References> &
  ({ readonly kind: 'register'; readonly name: string } | { readonly kind: 'kept'; readonly index: number });

export interface RecordField {
  /** Byte offset in the record, a multiple of `size`; the first 8 bytes are the commit word. */
  readonly at: number;
  readonly size: 1 | 2 | 4 | 8;
  readonly from: FieldSource;
}

/**
 * The bytes that `controlBlock.outerPlan` lists, copied one by one to `at`. Nothing if no outer poll is open, or if
 * its bytes exceed `room`.
 */
export interface OuterCopy {
  readonly at: number;
  readonly room: number;
  /**
   * A register that must point into that Future; otherwise nothing is copied. The reason: a poll that was unwound is
   * never closed, and its Future may have been freed. Required with `OuterWords`.
   */
  readonly self?: string | undefined;
}

/**
 * Bytes that a reference and a number of elements describe, copied to `at`. Whole aligned words are loaded: each lies
 * on the page of a byte that is one of them. What is copied beyond the end has no meaning.
 */
export interface ExtentCopy {
  readonly at: number;
  readonly words: number;
  /** log2 of an element's bytes. */
  readonly shift: number;
  readonly from: ExtentPlace;
}

/** Two registers; or two words of one object that references lead to. */
type ExtentPlace =
  | { readonly kind: 'registers'; readonly pointer: string; readonly count: string }
  | (References & {
      readonly kind: 'object';
      readonly register: string;
      readonly pointer: number;
      readonly count: number;
    });

/**
 * Compares an integer with a constant. All conditions of a probe must hold, else the event costs only the comparison.
 * One behind a pointer that is null, or not aligned, does not hold.
 */
export interface Condition extends IntegerIn {
  readonly op: 'eq' | 'ne' | 'lt' | 'le' | 'gt' | 'ge';
  readonly value: bigint;
}

/** Makes this call the open outer poll until it returns. For one hart, or with `OuterWords`. Needs a hook. */
export interface Nesting {
  readonly self: string;
  /** Address of the list for `controlBlock.outerPlan`. */
  readonly plan: Addr;
}

/**
 * The way to see a function return: its return address is replaced, and the original is pushed on the target's own
 * stack. A function that takes arguments on the stack would not find them, so it must not be hooked.
 */
export interface ReturnHook {
  /** Address of the exit trampoline. */
  readonly exit: Addr;
  /** Registers whose entry values the exit needs, at most 4. */
  readonly keep: readonly string[];
}

/** An integer in the low bytes of a register, or in memory behind the pointer that the register holds. */
export interface IntegerIn {
  readonly register: string;
  readonly size: 1 | 2 | 4 | 8;
  readonly signed: boolean;
  readonly behind?: References & { readonly offset: number };
}

/** Pointers that lead from one to the next. As with a load, the program's own types must declare each a reference. */
interface References {
  /** Where the next one lies in what each one points to. */
  readonly through: readonly number[];
}

/**
 * What a trampoline counts in words of the target. It adds to each of them atomically. An integer behind a pointer
 * that is null, or not aligned, is not counted.
 */
export type Counted =
  /** One word: the calls. */
  | { readonly kind: 'calls' }
  /** A word for each bucket: the calls whose integer falls into it, see {@link bucketOf}. */
  | { readonly kind: 'buckets'; readonly of: IntegerIn }
  /** Three words: the calls, then the sum of their integers in 128 bits, the low word first. */
  | { readonly kind: 'sum'; readonly of: IntegerIn };

/** Counts the calls for which all of its conditions hold. Its words begin at a multiple of 8. */
export type Counter = Counted & { readonly at: Addr; readonly when: readonly Condition[] };

/** What a trampoline writes into a record. */
export interface RecordContents {
  readonly ring: RingGeometry;
  readonly fields: readonly RecordField[];
  readonly outerCopy: OuterCopy | undefined;
  readonly extents?: readonly ExtentCopy[] | undefined;
}

/**
 * Throws RangeError if a record does not fit its slot, or if the ring's sizes are invalid. `most`: log2 of the largest
 * sizes that the architecture's code can have.
 */
export function checkRecord(
  { ring, fields, outerCopy, extents = [] }: RecordContents,
  most: Pick<RingGeometry, 'slotShift' | 'segmentShift'>,
): void {
  const { slotShift, segmentShift, countShift } = ring;
  const slots = slotShift >= 3 && slotShift <= most.slotShift;
  const segments = segmentShift >= slotShift && segmentShift <= most.segmentShift;
  if (!(slots && segments && countShift >= 0 && countShift <= 6)) {
    const shape = `2^${countShift} segments of 2^${segmentShift} bytes with slots of 2^${slotShift}`;
    throw new RangeError(`A ring cannot be ${shape}`);
  }
  const pieces = fields.map(({ at, size }) => ({ at, size: size as number, align: size }));
  if (outerCopy !== undefined) pieces.push({ at: outerCopy.at, size: outerCopy.room, align: 1 });
  for (const { at, words } of extents) pieces.push({ at, size: 8 * words, align: 8 });
  for (const { at, size, align } of pieces) {
    if (!(at >= 8 && at % align === 0 && size >= 0 && at + size <= 2 ** slotShift))
      throw new RangeError(`${size} bytes at ${at} have no place in a slot of ${2 ** slotShift}`);
  }
}

/** Loads through one pointer, with one check. */
export interface LoadGroup {
  readonly base: LoadBase;
  readonly align: number;
  readonly loads: { readonly field: RecordField; readonly offset: number }[];
}

/** Throws RangeError for an alignment that is no power of two, or above `most`. */
export function loadGroups(fields: readonly RecordField[], most: number): readonly LoadGroup[] {
  const groups = new Map<string, LoadGroup>();
  for (const field of fields) {
    if (field.from.kind !== 'load') continue;
    const { base, align, offset } = field.from;
    if (!(align >= 1 && align <= most && Number.isInteger(Math.log2(align))))
      throw new RangeError(`An alignment of ${align} cannot be checked`);
    const key = `${base.kind === 'register' ? base.name : base.index} ${base.through?.join() ?? ''} ${align}`;
    const group = groups.get(key) ?? { base, align, loads: [] };
    groups.set(key, group);
    group.loads.push({ field, offset });
  }
  return [...groups.values()];
}

/** Whether a condition holds for any integer of its size, or for none; undefined if the integer decides. */
export function decided({ size, signed, op, value }: Condition): boolean | undefined {
  const held = signed ? BigInt.asIntN(8 * size, value) : BigInt.asUintN(8 * size, value);
  if (held === value) return undefined;
  // No integer of this size equals it: all are below, or above.
  return op === 'ne' || (value > 0n ? op === 'lt' || op === 'le' : op === 'gt' || op === 'ge');
}

/** The number of 64-bit words that it counts in. */
export function wordsOf({ kind }: Counted): number {
  return { calls: 1, buckets: bucketCount, sum: 3 }[kind];
}

/** Buckets of a histogram: below 0, 0, 1, 2-3, 4-7, ... up to 2^63. */
export const bucketCount = 66;

/** The bucket that an integer falls into. */
export function bucketOf(value: bigint): number {
  if (value < 0n) return 0;
  return value === 0n ? 1 : value.toString(2).length + 1;
}
