import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Refusal } from '../../base/refusal.js';
import type { Step } from './code-path.js';

/**
 * Machine code that records events inside the target. A probed function's entry is patched to jump to a trampoline,
 * which writes records into a ring. Each architecture has one implementation. What follows is the contract between
 * that code and the client that drains the ring.
 *
 * Claims are byte offsets in an endless order of segments. K and the sizes of segments and slots are powers of two.
 * `HEAD` counts the bytes that were ever claimed. The client gives a segment its memory by writing the table's entry,
 * and then moves `LIMIT` past it:
 *
 *      again:
 *      claim  = HEAD
 *      if claim >= LIMIT: wait, again                  the client moves LIMIT when it has read a segment
 *      record = SEGMENTS[(claim >> segmentShift) & (K - 1)] + (claim & (segment - 1))
 *      if not compare-and-swap HEAD, claim, claim + slot: again
 *      ... fields ...
 *      record[0] = claim                               the commit: last, after a store barrier
 *
 * The loads happen in this order. HEAD never comes back to an earlier value. So if the exchange succeeds, no other
 * writer claimed in between, and the entry still belongs to this claim. A dropped event has claimed nothing, and no
 * claim is given up. Every claim below HEAD is also below LIMIT, and is written sooner or later. Writers do not
 * depend on where LIMIT is, or how far it moves at once.
 *
 * A slot whose first word is not its claim is not committed yet, because its writer was interrupted. Until it is
 * committed, its segment keeps its memory, and the ring goes on with other memory. So no record is torn, and nothing
 * waits for a task that sleeps.
 */
export const controlBlock = {
  /** Bytes claimed ever. On a cache line of its own. */
  head: 0,
  /** A number that the client changes, some times a second, as long as it lives. */
  beat: 16,
  /** {@link waited} may come so far: a process's writers wait no longer. A client that is gone allows no more. */
  allowed: 24,
  /** A process's writers give up if `beat` has not changed for so many ticks. */
  patience: 32,
  /** Ticks that writers have waited for room, all together. On HEAD's line, because it changes rarely. */
  waited: 56,
  /** Claims below this may be written. */
  limit: 64,
  /**
   * Not zero: nobody drains, so a writer drops its event at once when the ring is full. The wait routine sets it when
   * `beat` stands still.
   */
  unattended: 72,
  /** Records that were dropped, without a claim. */
  dropped: 80,
  /**
   * How often the wait routine passes its breakpoint, then gives up if `beat` has not changed meanwhile; never 0.
   * Not in a process.
   */
  spins: 88,
  /** The Future whose poll is open (see `Nesting`), or 0. */
  outer: 96,
  /** Address of the list of what to copy out of it: u32 count, then `count` u32 byte offsets, then its size as u64. */
  outerPlan: 104,
  /** How often `limit` is polled before each pass; in a process once. */
  looks: 112,
  /** The address of each segment's memory: K addresses. */
  segments: 128,
  /** Bytes of the control block, with 64 entries. */
  size: 640,
} as const;

/**
 * How often a full ring is polled between two passes of the breakpoint, if none is inserted: the target gets its room
 * in another way.
 */
export const looksAtOnce = 1000;

export interface RingGeometry {
  readonly control: Addr;
  /** Where the wait routine starts. */
  readonly wait: Addr;
  /** log2 of a slot's bytes. */
  readonly slotShift: number;
  readonly segmentShift: number;
  /** log2 of K, the number of entries in the table: at most 6. */
  readonly countShift: number;
  /** Where the words of the open outer poll are. Undefined: in the control block, for one hart only. */
  readonly outer?: OuterWords | undefined;
}

/**
 * Two words in a thread's own block, at this offset from fs's base: the `outer` and `outerPlan` of the control block.
 */
export interface OuterWords {
  readonly fs: number;
  /** Where all lists for the second word are. A dead thread may have left another value in a block that is reused. */
  readonly plans: { readonly at: Addr; readonly bytes: number };
}

/** The source of a record's field. `kept` words exist at an exit only: the values of those registers at the entry. */
export type FieldSource =
  | { readonly kind: 'register'; readonly name: string }
  /**
   * The low 64 bits of one of {@link ProbeCode.floats}. `mayBeOff`: all-ones where the hart's floating-point unit is off.
   */
  | { readonly kind: 'float'; readonly name: string; readonly mayBeOff: boolean }
  /** At an entry the value before the trampoline; at an exit the value after the function's return. */
  | { readonly kind: 'stack-pointer' }
  | { readonly kind: 'return-address' }
  | { readonly kind: 'kept'; readonly index: number }
  | { readonly kind: 'constant'; readonly value: bigint }
  | { readonly kind: 'time'; readonly counter: string }
  /**
   * Which hart or thread it is. `how` is one of the architecture's ways:
   *
   *   riscv  `mhartid` (M-mode only) | `tp` | `at-tp`: the 32 bits at tp + `offset`
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
  /** The address of the Future whose poll is open in this thread, or 0: the first of {@link OuterWords}. */
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
    | { readonly kind: 'apic' };
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
   * never closed, and its Future may have been freed. Required with {@link OuterWords}.
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
export type ExtentPlace =
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

/** Makes this call the open outer poll until it returns. For one hart, or with {@link OuterWords}. Needs a hook. */
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
export interface References {
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

interface Trampoline {
  /** Where the code will be. Its length does not depend on this. */
  readonly at: Addr;
  readonly ring: RingGeometry;
  readonly fields: readonly RecordField[];
  /** Not inside of a function. */
  readonly extents?: readonly ExtentCopy[];
}

export interface EntryTrampoline extends Trampoline {
  readonly displaced: Displaced;
  readonly when: readonly Condition[];
  readonly hook: ReturnHook | undefined;
  readonly nesting: Nesting | undefined;
  readonly outerCopy: OuterCopy | undefined;
  /** With any, it only counts: no record, no hook. */
  readonly counters: readonly Counter[];
  /** How control comes here: by the patch itself, or through the hop at this address, which has saved a register. */
  readonly via: 'patch' | { readonly hop: Addr };
}

export interface ExitTrampoline extends Trampoline {
  readonly keep: readonly string[];
  readonly nesting: boolean;
}

/**
 * Replaces an exit of a function whose return address must stay unchanged. It runs the displaced instructions, then
 * writes a record and returns. Before a tail jump it hooks the return instead, because the jump's target returns for
 * both.
 */
export interface EndTrampoline extends Trampoline {
  readonly end: FunctionExit;
  /** The exit trampoline for a tail jump. */
  readonly exit: Addr | undefined;
  /** Control comes through a hop, which has saved a register. */
  readonly hopped: boolean;
}

/** A register's value and a number. */
export interface RegisterPlace {
  readonly register: string;
  readonly offset: number;
}

/** A pointer by a register: its value, or a word behind what it points to; and a number. */
export interface PointerPlace extends RegisterPlace {
  /** Where that word lies, in bytes from what the register points to. It is in the function's own frame. */
  readonly through?: number | undefined;
}

/**
 * Pointers that code notes where a block begins, and takes where it ends. Each is known by the number of its block and
 * by the frame of the function around it. So threads, recursion and interrupts do not mix them up. An entry is two
 * words, and an entry of another frame is overwritten:
 *
 *     key   frame ^ number << 48 ^ pointer       0: nothing is noted
 *     pointer
 *
 * A torn entry fits no frame, because both words are checked together.
 */
export interface FrameNotes {
  readonly at: Addr;
  /** log2 of the number of entries: at most 7. */
  readonly countShift: number;
}

/** A block's number, below 2^15, and the frame of its function: the same value wherever it begins and ends. */
export interface FrameNote {
  readonly of: number;
  readonly frame: RegisterPlace;
}

/** Bytes of an entry of {@link FrameNotes}. */
export const frameNoteBytes = 16;

/**
 * Runs the displaced instructions of a place inside a function, and writes a record between them. Nothing of the
 * program's state changes, flags included, and the stack below the stack pointer is not touched (a red zone).
 */
export interface InnerTrampoline extends Trampoline {
  readonly displaced: DisplacedInside;
  readonly notes: FrameNotes;
  /** Pointers that are taken first. They are the record's `kept` words; 0 if nothing was noted. */
  readonly taken: readonly FrameNote[];
  /** Pointers that are noted last. */
  readonly noted: readonly (FrameNote & { readonly pointer: PointerPlace })[];
  readonly via: EntryTrampoline['via'];
}

/**
 * How far the patch can jump, and its cost for the function. `near` keeps every register; `far` destroys a scratch
 * register at the entry.
 */
export type PatchKind = 'near' | 'far';

/** Instructions that were taken out of a function's start, ready to be run elsewhere. */
export interface Displaced {
  readonly kind: PatchKind;
  readonly start: Addr;
  /** Bytes of whole instructions, at least `patchLength`. */
  readonly length: number;
  /** Bytes that the jump overwrites. */
  readonly patchLength: number;
  /** The register that a far patch destroys, if it is not the usual one. */
  readonly through?: string | undefined;
  /** The instructions as text, for `--dry-run`. */
  readonly text: readonly string[];
  /**
   * Why the function's return must not be hooked, in words for the user: it loops to its first instruction, or
   * returns in another way.
   */
  readonly hookRefused?: string | undefined;
  /**
   * Their code for the address `at`, with the jump back behind it; the length is the same everywhere. Throws
   * RangeError if a target of it is out of reach.
   */
  relocate(at: Addr): Uint8Array;
}

/** A patch inside a function. */
export interface InnerPatch {
  readonly kind: PatchKind;
  /** A register whose value is needed neither at its start nor behind it, and that it does not use. */
  readonly free: string | undefined;
}

/** Instructions out of the middle of a function. */
export interface DisplacedInside extends Displaced {
  /** Those before the place that is probed, as code at `at`; {@link relocate} has the others. */
  before(at: Addr): Uint8Array;
  /** These as text. */
  readonly textBefore: readonly string[];
}

/** One of the instructions by which a function is left, and what a jump in its place displaces. */
export interface FunctionExit {
  readonly kind: PatchKind;
  /** The address of the jump. */
  readonly start: Addr;
  readonly patchLength: number;
  /** Bytes from there on that control must not enter elsewhere: the jump's, and those up to the exit's end. */
  readonly length: number;
  /** Where a tail jump goes; undefined if the function returns. */
  readonly tail: Addr | undefined;
  /** The instructions before the last one, as code at `at`; the length is the same everywhere. */
  before(at: Addr): Uint8Array;
  /** The tail jump as code at `at`; empty for a return. */
  leave(at: Addr): Uint8Array;
}

export interface ExitOptions {
  readonly kind: PatchKind;
  /** Bytes at the function's start that are already patched. */
  readonly from: number;
  /** Whether a function begins there that surely has no arguments on the stack. */
  readonly inRegisters: (target: Addr) => boolean;
}

export interface Hop {
  bytes(displaced: Displaced): number;
  encode(displaced: Displaced, at: Addr, to: Addr): Uint8Array;
  /** Bytes at a hop's beginning that show where it leads. */
  readonly headBytes: number;
  /** The beginning alone: a hop that no code comes back to. */
  head(at: Addr, to: Addr): Uint8Array;
  /** Where a hop at `at` leads; undefined for other code. */
  target(code: Uint8Array, at: Addr): Addr | undefined;
}

/** Code that counts a counter of unknown rate against a timer of known rate. It runs once at a stop, on one hart. */
export interface CounterCalibration {
  /** Ticks of the timer per second. */
  readonly referenceHz: number;
  /** Where the machine has the timer; undefined if it has none. Asked through the stub's own commands. */
  reference(monitor: (command: string) => Promise<string | undefined>): Promise<number | undefined>;
  /** `reference`: what {@link reference} has found. */
  code(at: Addr, reference: number): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Registers that it changes, to be restored. */
  readonly changes: readonly string[];
  /** The value that a register must have before it runs, if any must. */
  begin(register: { readonly name: string; readonly value: bigint }): bigint | undefined;
  /** At the breakpoint: the counter's present value, and how far both have counted. */
  result(
    registers: RegisterReader,
  ): { readonly counter: number; readonly elapsed: number; readonly reference: number } | undefined;
}

/** Code that counts the counter against the clock of the kernel that a process runs on. */
export interface ClockSamples {
  /** Reaches its breakpoint after some milliseconds, with samples at `samples`. */
  code(at: Addr, samples: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Bytes of the samples. */
  readonly size: number;
  /**
   * The counter and the kernel's monotonic clock in nanoseconds, at two moments; undefined if the samples are not
   * plausible.
   */
  result(samples: Uint8Array): readonly [first: ClockSample, last: ClockSample] | undefined;
}

export interface ClockSample {
  readonly ticks: bigint;
  readonly nanos: bigint;
}

/** What trampolines in a process of Linux need in addition. */
export interface ProcessCode {
  /** How threads are told apart. */
  readonly thread: HartSource;
  /**
   * Like {@link ProbeCode.wait}, but it measures its time: it keeps to `allowed` and `patience`. It makes no system
   * call, because the process may come under a filter of them at any time.
   */
  readonly wait: ProbeCode['wait'];
  /** .eh_frame for exit trampolines' addresses that are return addresses, each with its `returnOffset`. */
  unwindTable(exits: ReadonlyMap<bigint, { readonly offset: number }>): Uint8Array;
  /** The most bytes of it. */
  unwindTableBytes(exits: number): number;
  /**
   * Calls the C function whose address is in the register `function`, saves vector registers at `save`, and reaches
   * its breakpoint.
   */
  readonly call: {
    readonly function: string;
    /** Registers of the first parameters. */
    readonly parameters: readonly string[];
    /** Bytes at `save`, whose address is a multiple of 64. They must be zero at first. */
    readonly saveBytes: number;
    code(at: Addr, save: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  };
  readonly clock: ClockSamples;
}

/** Instructions that the copy of an {@link OuterCopy} takes. */
export interface CopySteps {
  /** The copy comes before the record's time is read, not after. */
  readonly beforeTime: boolean;
  /** While no outer poll is open. */
  readonly closed: number;
  /** With an empty list; and the additional ones for each byte that is listed. */
  readonly listed: number;
  readonly each: number;
}

export interface ProbeCode {
  /** Patch kinds, the preferred one first, and the reach of each in bytes from the patched instruction. */
  readonly patches: readonly { readonly kind: PatchKind; readonly bytes: number; readonly reach: number }[];
  /**
   * Takes the first instructions out of a function whose whole code is given. Refused, in words for the user, for
   * three reasons. A branch of the function enters the patched bytes, the function is too short, or an instruction
   * cannot be run elsewhere.
   */
  displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal;
  /**
   * How many of these bytes behind a function only align the next one. {@link displace} takes them with a short
   * function's code. Undefined if functions are not aligned.
   */
  readonly padding?: (bytes: Uint8Array) => number;
  /**
   * Takes all of these instructions out of the middle of a function, where control enters at the first one only.
   * `place` is the offset of the one that is probed. Refused, in words for the user, if they do not fit the patch or
   * one cannot be run elsewhere.
   */
  displaceInside(code: Uint8Array, start: Addr, place: number, how: InnerPatch): DisplacedInside | Refusal;
  /**
   * Whether a jump or branch of this function's code leads to its first instruction. If so, reaching that instruction
   * is not always a call.
   */
  loopsToStart(code: Uint8Array, start: Addr): boolean;
  /**
   * Every place where a function is left, with room for a jump there; the function's whole code is given. Refused, in
   * words for the user, for three reasons. Not all places are known (indirect jumps), a branch enters the bytes of
   * such a jump, or an instruction cannot be run elsewhere.
   */
  ends(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal;
  /** The jump to write: `patchLength` bytes. Throws RangeError if `to` is out of reach. */
  patch(displaced: Displaced | FunctionExit, to: Addr): Uint8Array;
  /**
   * Whether a function was compiled to be patched with a call that destroys the scratch register, so that the
   * register is unused at its entry. Such a function begins with nops (-fpatchable-function-entry). Undefined if no
   * patch destroys a register.
   */
  readonly entryIsPatchable?: (code: Uint8Array) => boolean;
  /** Where a function's start that rsptrace has patched jumps to; undefined for other code. */
  patchTarget(code: Uint8Array, start: Addr): Addr | undefined;
  /**
   * For a near patch whose trampoline is out of reach. The hop is in reach: it saves a register on the stack and
   * jumps to the trampoline. Behind it is the code that the trampoline comes back to: the displaced instructions and
   * the jump into the function. Undefined if no hop is needed.
   */
  readonly hop: Hop | undefined;
  /**
   * Throws RangeError for what this architecture cannot do (a register or counter it lacks) and for addresses out of
   * reach.
   */
  entry(trampoline: EntryTrampoline): Uint8Array;
  exit(trampoline: ExitTrampoline): Uint8Array;
  end(trampoline: EndTrampoline): Uint8Array;
  /** `place`: the offset in the code at which everything is as it is at the place that is probed. */
  inner(trampoline: InnerTrampoline): { readonly code: Uint8Array; readonly place: number };
  /**
   * What a full ring jumps to. If the ring is read at stops, a breakpoint is inserted at `breakpoint`, whose
   * instruction does nothing. It is reached when `looks` polls found no room, and then again, because one drain may
   * free nothing while another hart's record is uncommitted. `counter`: what `waited` counts in, if records have it.
   */
  wait(
    at: Addr,
    ring: Omit<RingGeometry, 'wait'>,
    counter?: string,
  ): { readonly code: Uint8Array; readonly breakpoint: Addr };
  /**
   * How often the wait routine passes its breakpoint in about a second on an emulator, with {@link looksAtOnce} polls
   * before each.
   */
  readonly spinsPerSecond: number;
  /** Floating-point registers that a record may have. */
  readonly floats: readonly string[];
  /** The counter for records' times, as {@link FieldSource} names it. */
  readonly counter: string;
  /**
   * How the harts of a machine can be told apart during the whole life of the program; refused in words for the user.
   */
  hartSource(guest: HartsOfGuest): HartSource | Refusal;
  /** How to find the rate of {@link counter}; undefined if the platform reports it. */
  readonly calibration?: CounterCalibration;
  /** Undefined if processes are not supported. */
  readonly process?: ProcessCode;
  /**
   * Bytes of stack between the stack pointer at the exit trampoline's first instruction and the original return
   * address.
   */
  hookedReturnOffset(keep: number, nesting: boolean): number;
  /** Bytes of stack that the exit trampoline frees in addition to the function's own return. */
  hookFrameBytes(keep: number, nesting: boolean): number;
  /** Code that can replace an exit trampoline and records nothing; it gets results of the two functions above. */
  bareExit(returnOffset: number, frameBytes: number): Uint8Array;
  /** The same as compilers write it. */
  likeBareExit(returnOffset: number, frameBytes: number): Uint8Array;
  /** The instruction at an offset of code located at `start`, for `usualPath`; undefined behind its end. */
  step(code: Uint8Array, start: Addr, offset: number): Step | undefined;
  readonly outerCopySteps: CopySteps;
  /** Every instruction of code located at `start`, as text. Bytes that do not decode appear as data. */
  disassemble(code: Uint8Array, start: Addr): readonly AssemblyLine[];
}

/** One instruction as text: `addi sp,sp,-16` on RISC-V (no aliases), Intel syntax on x86. */
export interface AssemblyLine {
  readonly address: Addr;
  readonly bytes: Uint8Array;
  readonly text: string;
}
