import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { UnwindRow } from '../../base/unwind-row.js';
import type { HookFrame } from '../inject/framed-code.js';
import type { StackSwitch } from './stack-switch.js';

/** A stretch of code: a function, or one part of it. */
export interface CodeRange {
  readonly start: Addr;
  readonly bytes: Uint8Array;
}

/**
 * How far a row can be trusted. `sure`: every way to the instruction agrees, or the compiler says so. `likely`: no
 * way to it is known (a jump table), or ways disagree; its function's usual frame is assumed. `guess`: only its
 * neighbourhood speaks for it.
 */
export type Confidence = 'sure' | 'likely' | 'guess';

/** What code analysis knows about the frame at one instruction. */
export type FrameAt =
  | {
      readonly kind: 'row';
      readonly row: UnwindRow;
      readonly confidence: Confidence;
      /**
       * The frame pointer register points at this frame, and the caller's frame pointer is saved at its conventional
       * place.
       */
      readonly framePointer: boolean;
    }
  /** The code has set up a stack itself: it was entered by a reset or a jump, and nobody called it. */
  | { readonly kind: 'bottom' }
  /** The stack pointer cannot be followed. */
  | { readonly kind: 'unknown' };

/** The frames of one function, from its code alone. */
export interface FunctionFrames {
  /**
   * The frame when the instruction at `pc` is about to run; undefined if the analysis has no instruction that begins
   * there.
   */
  at(pc: Addr): FrameAt | undefined;
  /** The frame in the middle of a call that returns to `pc`. */
  behindCall(pc: Addr): FrameAt | undefined;
  /** What the code does with the frame of its caller. */
  callersFrame(): CallersFrame;
}

/**
 * A caller puts the arguments that registers have no room for at the end of its frame, and below them, on x86-64, the
 * return address.
 */
export interface CallersFrame {
  /** The code may read, write or pass on an address there, from where the stack pointer was at the entry. */
  readonly isUsed: boolean;
  /** The code reads, keeps or replaces its own return address, otherwise than to return. */
  readonly readsReturn: boolean;
  /** Where jumps out of the function lead, as calls that come last: what is there finds the same frame. */
  readonly jumps: readonly Addr[];
  /** A jump may lead anywhere. */
  readonly jumpsAnywhere: boolean;
}

/** Where control goes in a function: a node an instruction, the first one first. */
export interface ControlFlow {
  readonly steps: readonly { readonly address: Addr }[];
  readonly next: readonly (readonly number[])[];
  /** False for what only an exception leads to. */
  isReached(node: number): boolean;
}

/** A value: that of a register plus an offset. */
export interface Held {
  readonly register: number;
  readonly offset: number;
  /** The offset is added to the word so many bytes behind what the register points to, and not to the register. */
  readonly through?: number;
}

/** Where the code of a function has the values that it was called with. */
export interface EntryValues {
  /**
   * Where the code has at `pc`, whatever way led there, what `register` held at the entry: by registers first, then by
   * words of the frame.
   */
  at(pc: Addr, register: number): readonly Held[];
}

/** Registers and conventions of one architecture, as unwinding needs them. Registers have their DWARF numbers. */
export interface FrameModel {
  /** Registers with a number below this are the integer registers. */
  readonly registerCount: number;
  readonly stackPointer: number;
  readonly framePointer: number;
  /** The register that calls put the return address into, or the column that stands for it in memory. */
  readonly returnAddress: number;
  /** Integer registers that a function preserves. */
  readonly preserved: readonly number[];
  /** Integer registers that no function changes: constants, and those that belong to a thread or a program. */
  readonly fixed: readonly number[];
  /** Registers beyond the integer ones that rows may refer to: DWARF number to target-description name. */
  readonly special: ReadonlyMap<number, string>;
  /**
   * Where levels have special registers of their own: those of the level that a hart is at, by the names of the lowest
   * one.
   */
  readonly ofLevel?: (registers: RegisterReader) => RegisterReader;
  /** The address that a return address stands for, where processors may have signed it (pointer authentication). */
  readonly unsigned?: (address: bigint, register: (number: number) => bigint | undefined) => bigint;
  /** CFA at a function's first instruction, from the stack pointer. */
  readonly cfaAtEntry: number;
  /**
   * A frame whose frame pointer is up: the CFA computed from it; return address and caller's frame pointer are saved
   * below the CFA.
   */
  readonly framePointerRow: UnwindRow;
  /** A function's first instruction. */
  readonly entryRow: UnwindRow;
  /**
   * What reads code. Without it stacks are walked by call frame information, and elsewhere by frame pointers, as a
   * guess: nothing says then whether a function keeps one.
   */
  readonly code?: CodeReading;
}

/** One whose code is read. */
export type CodeFrameModel = FrameModel & { readonly code: CodeReading };

/** What the instructions of an architecture say of frames. */
export interface CodeReading {
  /**
   * Follows a function's code from its first instruction, `ranges[0].start`. Other ranges are parts that the compiler
   * moved away. Call `prepare` of the architecture first.
   * @param rest of a handler: the code at an address that this one jumps to, if it may return from a trap
   */
  analyse(ranges: readonly CodeRange[], rest?: (to: Addr) => readonly CodeRange[]): FunctionFrames;
  /** Follows values along a function's control flow. Ranges are as those of `analyse`. */
  follow(ranges: readonly CodeRange[], flow: ControlFlow): EntryValues;
  /** Whether an instruction that ends where these bytes end may be a call: else no call returns there. */
  endsInCall(code: CodeRange): boolean;
  /**
   * What code does that only frees some stack and returns to an address that lies there; undefined for other code.
   * Tracers leave such code behind as what calls return to.
   */
  shortReturn(code: CodeRange): HookFrame | undefined;
  /** False if code surely has no return from a trap. Costs little: it looks for the bytes alone. */
  mayReturnFromTrap(code: Uint8Array): boolean;
  /** Offsets of bytes that look like an instruction that loads another stack pointer: more than there are. */
  seekStackSwitches(code: Uint8Array): readonly number[];
  /** What a function does that returns on another stack; undefined for any other. Call `prepare` first. */
  stackSwitch(code: CodeRange): StackSwitch | undefined;
}
