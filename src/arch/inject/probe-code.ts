import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { Step } from './code-path.js';
import type { Displaced, DisplacedInside, ExitOptions, FunctionExit, Hop, InnerPatch, PatchKind } from './displaced.js';
import type { CounterCalibration, ProcessCode } from './process-code.js';
import type { HartSource, HartsOfGuest } from './record-parts.js';
import type { RingGeometry } from './ring-contract.js';
import type { EndTrampoline, EntryTrampoline, ExitTrampoline, InnerTrampoline } from './trampolines.js';

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
   * free nothing while another hart's record is uncommitted. `isTimed`: records read the counter, in which `waited`
   * counts.
   */
  wait(
    at: Addr,
    ring: Omit<RingGeometry, 'wait'>,
    isTimed: boolean,
  ): { readonly code: Uint8Array; readonly breakpoint: Addr };
  /**
   * How often the wait routine passes its breakpoint in about a second on an emulator, with {@link looksAtOnce} polls
   * before each.
   */
  readonly spinsPerSecond: number;
  /**
   * Why the code is for emulators alone, in words for the user: another machine would need more than that it is
   * written. Undefined if it needs no more.
   */
  readonly onlyEmulated?: string;
  /** Floating-point registers that a record may have. */
  readonly floats: readonly string[];
  /**
   * How the harts of a machine can be told apart during the whole life of the program; refused in words for the user.
   */
  hartSource(guest: HartsOfGuest): HartSource | Refusal;
  /** How to find the rate of the counter that records read; undefined if the platform reports it. */
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
