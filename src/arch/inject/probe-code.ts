import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Refusal } from '../../base/refusal.js';
import type { Step } from './code-path.js';

/**
 * Machine code that notes events inside the target: trampolines to which a probed function's entry is patched to jump, and which write
 * records into a ring. One implementation an architecture; what follows is the contract between that code and the client that drains.
 *
 * Claims are byte offsets in an endless order of segments; K, the segments' and the slots' sizes are powers of two. `HEAD` counts
 * the bytes that were ever claimed. The client gives a segment its memory by writing the table's entry, and then moves `LIMIT` past it:
 *
 *      again:
 *      claim  = HEAD
 *      if claim >= LIMIT: wait, again                  the client moves LIMIT when it has read a segment
 *      record = SEGMENTS[(claim >> segmentShift) & (K - 1)] + (claim & (segment - 1))
 *      if not compare-and-swap HEAD, claim, claim + slot: again
 *      ... fields ...
 *      record[0] = claim                               the commit: last, after a store barrier
 *
 * The loads happen in this order. HEAD never comes back to a value that it had, so where the exchange succeeds nobody claimed in between,
 * and the entry is still that of this claim. An event that is dropped has claimed nothing, and no claim is given up: every claim below
 * HEAD is below LIMIT too, and is written sooner or later. Where LIMIT is, and how far it moves at once, does not matter to writers.
 *
 * Where calls can pend, the two lowest bits of `HEAD` tell of the one record that is written ahead of its claim, see {@link PendingCall}.
 *
 * A slot whose first word is not its claim is not written yet: its writer was interrupted. Its segment keeps its memory until it is;
 * the ring goes on with other memory. So nothing is torn, and nothing waits for a task that sleeps.
 */
export const controlBlock = {
  /** Bytes claimed ever. On a cache line of its own. */
  head: 0,
  /** Claims below this may be written. */
  limit: 64,
  /** Not zero: nobody drains; a full ring drops at once. The wait routine sets it when it gives up. */
  unattended: 72,
  /** Records that were dropped, without a claim. */
  dropped: 80,
  /** How often the wait routine passes its breakpoint before it gives up; never 0. */
  spins: 88,
  /** The Future whose poll is open (see `Nesting`), or 0. */
  outer: 96,
  /** Address of what to copy out of it: u32 count, then `count` u32 byte offsets, then its size as u64. */
  outerPlan: 104,
  /** How often it looks at `limit` each time before; one that sleeps between looks does so once. */
  looks: 112,
  /** The counter's value when a call was last seen to end that was pending then; 0: never. */
  ended: 120,
  /** Where the memory of each segment is: K addresses. */
  segments: 128,
  /** Bytes of the whole, with 64 entries. */
  size: 640,
} as const;

/** Looks at a full ring between two passes of the breakpoint where none is there: the target waits for its room some other way. */
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
  /** For one hart only. Undefined: no call pends. */
  readonly pending?: PendingCall | undefined;
  /** Where the words of the open outer poll are; undefined: in the control block, for one hart only. */
  readonly outer?: OuterWords | undefined;
}

/** Two words in a thread's own block, so many bytes above fs's base: what the control block has as `outer` and `outerPlan`. */
export interface OuterWords {
  readonly fs: number;
  /** Where all lists for the second one lie. A dead thread may have left another one in a block that is used again. */
  readonly plans: { readonly at: Addr; readonly bytes: number };
}

/**
 * The entry of one call is written to memory of its own, without a claim. A call that ends while its entry is still there, and soon enough, was never told of;
 * every writer that finds one there has it moved to the ring first, since it happened first. All of it is decided by exchanges of `HEAD`, whose
 * lowest bits say what the memory holds, so that no interrupt can come between:
 *
 *      entry:  HEAD = claim               -> claim | locked           else: claims a slot like any other
 *              ... the record's fields ...
 *      again:  reads HEAD, then the time; [0] = the stack pointer before the call
 *              HEAD = claim | locked      -> claim | pending          else: somebody has written meanwhile: again
 *      exit:   HEAD = claim | pending, [0] is its own, and the time is short
 *                                         -> claim                    else: claims a slot like any other
 *      claim:  HEAD = claim | pending     -> claim + slot | locked    copies the record to that slot, HEAD -= locked; again for itself
 *              HEAD = claim, or | locked  -> + slot
 */
export interface PendingCall {
  /** Memory of one slot. */
  readonly record: Addr;
  /** Where the routine starts that moves it to the ring. */
  readonly flush: Addr;
}

/** Bits of `HEAD`. */
export const headFlag = { pending: 1, locked: 2 } as const;

/** What a field of a record is taken from. `kept` words exist at an exit only: what the entry had in those registers. */
export type FieldSource =
  | { readonly kind: 'register'; readonly name: string }
  /** At an entry the one before the trampoline; at an exit the one that the function's return leaves. */
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
   * Memory at a pointer: all-ones where the pointer is null or not a multiple of `align`. Only pointers that are references by the
   * program's own types may be given: a wild load faults in the target.
   */
  | { readonly kind: 'load'; readonly base: LoadBase; readonly offset: number; readonly align: number }
  /** A word of the control block. `outer` is that of the poll around this call, at the entry as at the exit. */
  | { readonly kind: 'control'; readonly offset: number }
  /** The address of the Future whose poll is open in this thread, or 0: the first of {@link OuterWords}. */
  | { readonly kind: 'outer' };

/** The word by which a trampoline tells its hart, and where the client finds the same word. */
export type HartSource = FieldSource & {
  readonly kind: 'hart';
  /** Where the client reads that word of a stopped hart; undefined where it cannot. */
  readonly outside?:
    | { readonly kind: 'register'; readonly name: string }
    /** The number that Linux gave the CPU whose hart's number is in the register. */
    | { readonly kind: 'linux-cpu'; readonly hartRegister: string }
    /** The number of the processor's APIC. */
    | { readonly kind: 'apic' };
};

/** What has to be known of a guest to choose a {@link HartSource}. */
export interface HartsOfGuest {
  readonly count: number;
  /** Only of a Linux kernel: the offset of the CPU's number in a task; undefined where neither BTF nor DWARF has it. */
  readonly cpuInTask?: (() => number | undefined) | undefined;
}

export type LoadBase =
  | { readonly kind: 'register'; readonly name: string }
  | { readonly kind: 'kept'; readonly index: number };

export interface RecordField {
  /** Byte offset in the record, a multiple of `size`; the first 8 bytes are the commit word. */
  readonly at: number;
  readonly size: 1 | 2 | 4 | 8;
  readonly from: FieldSource;
}

/** The bytes that `controlBlock.outerPlan` lists, copied one by one to `at`; nothing where no outer poll is open or it has more than `room`. */
export interface OuterCopy {
  readonly at: number;
  readonly room: number;
  /**
   * The register that must point into that Future, else nothing is copied: a poll that was unwound is never closed, and its Future may
   * be gone. Wanted with {@link OuterWords}.
   */
  readonly self?: string | undefined;
}

/** An integer in a register compared with a constant; all of a probe's must hold, else the event costs only the compare. */
export interface Condition {
  readonly register: string;
  readonly size: 1 | 2 | 4 | 8;
  readonly signed: boolean;
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
 * The way to see a function return: its return address is replaced, and the original is pushed on the target's own stack. A function that
 * takes arguments on the stack would not find them, and must not be hooked.
 */
export interface ReturnHook {
  /** Address of the exit trampoline. */
  readonly exit: Addr;
  /** Registers at the entry that the exit wants, at most 4. */
  readonly keep: readonly string[];
}

/** An integer in the low bytes of a register. */
export interface IntegerIn {
  readonly register: string;
  readonly size: 1 | 2 | 4 | 8;
  readonly signed: boolean;
}

/** A trampoline that only counts, atomically: no record, no hook. */
export interface Counter {
  /** A u64, or, with `by`, the first of {@link bucketCount}. */
  readonly at: Addr;
  /** Tells which of them, see {@link bucketOf}. */
  readonly by: IntegerIn | undefined;
}

/** Buckets of a histogram: below 0, 0, 1, 2-3, 4-7, ... up to 2^63. */
export const bucketCount = 66;

/** The bucket that an integer falls into. */
export function bucketOf(value: bigint): number {
  if (value < 0n) return 0;
  return value === 0n ? 1 : value.toString(2).length + 1;
}

interface Trampoline {
  /** Where the code will lie. Its length does not depend on this. */
  readonly at: Addr;
  readonly ring: RingGeometry;
  readonly fields: readonly RecordField[];
}

export interface EntryTrampoline extends Trampoline {
  readonly displaced: Displaced;
  readonly when: readonly Condition[];
  readonly hook: ReturnHook | undefined;
  readonly nesting: Nesting | undefined;
  readonly outerCopy: OuterCopy | undefined;
  readonly count: Counter | undefined;
  /** The call pends where it can, see {@link PendingCall}: it needs a hook, and its exit `below`. */
  readonly pends?: boolean;
  /** How control comes here: by the patch itself, or through the hop at this address, which has saved a register. */
  readonly via: 'patch' | { readonly hop: Addr };
}

export interface ExitTrampoline extends Trampoline {
  readonly keep: readonly string[];
  readonly nesting: boolean;
  /** A call that still pends and has lasted less than so many ticks is not told of. Its entry's record has the time where this one has it. */
  readonly below?: bigint | undefined;
}

/**
 * What stands in for an end of a function whose return address must stay where it is. It carries out the displaced instructions, then
 * writes a record and returns; before a tail jump it hooks the return instead: what is jumped to returns for both.
 */
export interface EndTrampoline extends Trampoline {
  readonly end: FunctionExit;
  /** The exit trampoline for a tail jump. */
  readonly exit: Addr | undefined;
  /** Control comes through a hop, which has saved a register. */
  readonly hopped: boolean;
}

/** How far the patch can jump and what it costs the function. `near` keeps every register; `far` destroys a scratch register at the entry. */
export type PatchKind = 'near' | 'far';

/** Instructions that were taken out of a function's start, ready to be carried out elsewhere. */
export interface Displaced {
  readonly kind: PatchKind;
  readonly start: Addr;
  /** Bytes of whole instructions, at least `patchLength`. */
  readonly length: number;
  /** Bytes that the jump overwrites. */
  readonly patchLength: number;
  /** The instructions as text, for `--dry-run`. */
  readonly text: readonly string[];
  /** Why the function's return must not be hooked, in words for a person: it loops to its first instruction, or returns in another way. */
  readonly hookRefused?: string | undefined;
  /**
   * Their code when it stands at `at`, with the jump back behind it; the length is the same everywhere. Throws RangeError where
   * something that it leads to is out of reach.
   */
  relocate(at: Addr): Uint8Array;
}

/** One of the instructions by which a function is left, and what a jump that stands there displaces. */
export interface FunctionExit {
  readonly kind: PatchKind;
  /** Where the jump stands. */
  readonly start: Addr;
  readonly patchLength: number;
  /** Where a tail jump goes; undefined where the function returns. */
  readonly tail: Addr | undefined;
  /** The instructions before the last one, as code at `at`; the length is the same everywhere. */
  before(at: Addr): Uint8Array;
  /** The tail jump as code at `at`; empty for a return. */
  leave(at: Addr): Uint8Array;
}

export interface ExitOptions {
  readonly kind: PatchKind;
  /** Bytes at the function's start that are taken already. */
  readonly from: number;
  /** A function begins there that surely has no arguments on the stack. */
  readonly inRegisters: (target: Addr) => boolean;
}

export interface Hop {
  bytes(displaced: Displaced): number;
  encode(displaced: Displaced, at: Addr, to: Addr): Uint8Array;
  /** Bytes of a hop's beginning that tell where it leads. */
  readonly headBytes: number;
  /** The beginning alone: a hop that nothing comes back to. */
  head(at: Addr, to: Addr): Uint8Array;
  /** Where a hop that stands at `at` leads; undefined for other code. */
  target(code: Uint8Array, at: Addr): Addr | undefined;
}

/** Code that counts a counter of unknown rate against a timer of a known one, run once at a stop with one hart. */
export interface CounterCalibration {
  /** Ticks a second of the timer. */
  readonly referenceHz: number;
  /** Whether the machine has the timer, asked through the stub's own commands. */
  present(monitor: (command: string) => Promise<string | undefined>): Promise<boolean>;
  code(at: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Registers that it changes, to be put back. */
  readonly changes: readonly string[];
  /** What a register must be set to before it runs, where it must be. */
  begin(register: { readonly name: string; readonly value: bigint }): bigint | undefined;
  /** At the breakpoint: the counter now, and how far both have come. */
  result(
    registers: RegisterReader,
  ): { readonly counter: number; readonly elapsed: number; readonly reference: number } | undefined;
}

/** Code that counts the counter against the clock of the kernel that a process runs on. */
export interface ClockSamples {
  /** Comes to its breakpoint after some milliseconds, with samples at `samples`. */
  code(at: Addr, samples: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  /** Bytes of the samples. */
  readonly size: number;
  /** The counter and the kernel's monotonic clock in nanoseconds, at two moments; undefined where the samples make no sense. */
  result(samples: Uint8Array): readonly [first: ClockSample, last: ClockSample] | undefined;
}

export interface ClockSample {
  readonly ticks: bigint;
  readonly nanos: bigint;
}

/** What trampolines in a process of Linux need besides. */
export interface ProcessCode {
  /** How threads are told apart. */
  readonly thread: HartSource;
  /** As {@link ProbeCode.wait}, but it sleeps between two looks: who drains wants the processor. */
  wait(at: Addr, ring: Omit<RingGeometry, 'wait'>): { readonly code: Uint8Array; readonly breakpoint: Addr };
  /** How often it sleeps before it gives up: some seconds, so that a client that is starved of time is not given up. */
  readonly spins: number;
  /** What can stand in an exit trampoline's place and notes nothing; the original return address is so many bytes above the stack pointer. */
  bareExit(returnOffset: number): Uint8Array;
  /** .eh_frame for exit trampolines' addresses where they are return addresses, each with its `returnOffset`. */
  unwindTable(exits: ReadonlyMap<bigint, { readonly offset: number }>): Uint8Array;
  /** What that takes at most. */
  unwindTableBytes(exits: number): number;
  /** Calls the C function whose address is in the register `function`, with vector registers saved at `save`, and comes to its breakpoint. */
  readonly call: {
    readonly function: string;
    /** Registers of the first parameters. */
    readonly parameters: readonly string[];
    /** Bytes at `save`, which is a multiple of 64 and was zero at first. */
    readonly saveBytes: number;
    code(at: Addr, save: Addr): { readonly bytes: Uint8Array; readonly breakpoint: Addr };
  };
  readonly clock: ClockSamples;
}

/** Instructions that the copy of an {@link OuterCopy} takes. */
export interface CopySteps {
  /** It comes before the record's time is read, not after. */
  readonly beforeTime: boolean;
  /** While no outer poll is open. */
  readonly closed: number;
  /** With an empty list, and more for each byte that is listed. */
  readonly listed: number;
  readonly each: number;
}

export interface ProbeCode {
  /** Patch kinds, the one to be preferred first, and how far each reaches in bytes from the patched instruction. */
  readonly patches: readonly { readonly kind: PatchKind; readonly bytes: number; readonly reach: number }[];
  /**
   * Takes the first instructions out of a function whose whole code is given. Refused, in words for a person, where a branch of the function
   * enters the patched bytes, where it is too short, or where an instruction cannot be carried out elsewhere.
   */
  displace(code: Uint8Array, start: Addr, kind: PatchKind): Displaced | Refusal;
  /** A jump or branch of this function's code leads to its first instruction, so that to come there is not always a call. */
  loopsToStart(code: Uint8Array, start: Addr): boolean;
  /**
   * Every place where a function is left whose whole code is given, with room for a jump there. Refused, in words for a person, where not all are
   * known (indirect jumps), where a branch of the function enters the bytes of such a jump, or where something cannot be carried out elsewhere.
   */
  ends(code: Uint8Array, start: Addr, options: ExitOptions): readonly FunctionExit[] | Refusal;
  /** The jump to write: `patchLength` bytes. Throws RangeError where `to` is out of reach. */
  patch(displaced: Displaced | FunctionExit, to: Addr): Uint8Array;
  /**
   * Whether a function was compiled to be patched with a call that destroys the scratch register (-fpatchable-function-entry: it begins with
   * nops), so that nothing lives there at its entry. Undefined where no patch destroys a register.
   */
  readonly entryIsPatchable?: (code: Uint8Array) => boolean;
  /** Where a function's start that was patched by us jumps to; undefined for other code. */
  patchTarget(code: Uint8Array, start: Addr): Addr | undefined;
  /**
   * For a near patch whose trampoline is out of reach: code in reach that saves a register on the stack and jumps to the trampoline, and
   * behind it what the trampoline comes back to: the displaced instructions and the jump into the function. Undefined where none is needed.
   */
  readonly hop: Hop | undefined;
  /** Throws RangeError for what this architecture cannot do (a register or counter it lacks) and for addresses out of reach. */
  entry(trampoline: EntryTrampoline): Uint8Array;
  exit(trampoline: ExitTrampoline): Uint8Array;
  end(trampoline: EndTrampoline): Uint8Array;
  /**
   * What a full ring jumps to. Where the ring is read at stops a breakpoint goes on `breakpoint`, whose instruction does nothing: it is passed
   * when `looks` looks found no room, and then again, since one drain may not make any while another hart's record is not written.
   */
  wait(at: Addr, ring: Omit<RingGeometry, 'wait'>): { readonly code: Uint8Array; readonly breakpoint: Addr };
  /** What moves a pending call's entry to the ring. Throws RangeError where none can pend in this one. */
  flush(at: Addr, ring: Omit<RingGeometry, 'wait'>): Uint8Array;
  /** Passes of the wait routine's breakpoint in about a second, on an emulator, with {@link looksAtOnce} before each. */
  readonly spinsPerSecond: number;
  /** The counter that records have for their time, as {@link FieldSource} names it. */
  readonly counter: string;
  /** How the harts of a machine can be told apart, all through the program's life; refused in words for a person. */
  hartSource(guest: HartsOfGuest): HartSource | Refusal;
  /** How to find the rate of {@link counter}; undefined where the platform tells it. */
  readonly calibration?: CounterCalibration;
  /** Undefined where processes are not supported. */
  readonly process?: ProcessCode;
  /** Bytes of stack between the stack pointer at the exit trampoline's first instruction and the original return address. */
  hookedReturnOffset(keep: number): number;
  /** Bytes of stack that the exit trampoline gives back on top of what the function's own return does. */
  hookFrameBytes(keep: number, nesting: boolean): number;
  /** The instruction at an offset of code that stands at `start`, for `usualPath`; undefined behind its end. */
  step(code: Uint8Array, start: Addr, offset: number): Step | undefined;
  readonly outerCopySteps: CopySteps;
  /** Every instruction of code that stands at `start`, for a person. What does not decode appears as data. */
  disassemble(code: Uint8Array, start: Addr): readonly AssemblyLine[];
}

/** One instruction as text: `addi sp,sp,-16` on RISC-V (no aliases), Intel syntax on x86. */
export interface AssemblyLine {
  readonly address: Addr;
  readonly bytes: Uint8Array;
  readonly text: string;
}
