import type { Confidence, HookFrame } from '../../arch/index.js';
import type { Addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { UnwindRow } from '../../base/unwind-row.js';
import type { CodeAddress } from '../../elf/index.js';
import type { CodeImage } from './code-image.js';

/** How a caller is found: by call frame information, by the frame pointer, or by the code of its function. */
export type UnwinderName = 'cfi' | 'fp' | 'prologue';

/** One activation of a function that is not over. */
export interface Frame {
  /** 0 is the innermost. */
  readonly level: number;
  /** The address where it goes on. */
  readonly pc: Addr;
  /** The program or library that has its code; undefined if no code is known there. */
  readonly image: CodeImage | undefined;
  /**
   * `pc` is the next instruction to run, as in the innermost frame and in an interrupted one; else it is behind a
   * call.
   */
  readonly exact: boolean;
  /** The known registers, with their values while this frame is on top. */
  readonly registers: FrameRegisters;
  /** The canonical frame address; undefined if the caller was not found. */
  readonly cfa: Addr | undefined;
  /** How its caller was found; undefined if it was not found. */
  readonly unwinder: UnwinderName | undefined;
  /** How far the frame itself can be trusted. A frame that was found through a guess is itself a guess. */
  readonly confidence: Confidence;
}

/** Registers of one frame, by DWARF number or by the stub's name. */
export interface FrameRegisters extends RegisterReader {
  numbered(number: number): bigint | undefined;
}

/** The original of a return address that a tracer has replaced; undefined for all others. */
export type Hooked = (returnAddress: bigint) => HookFrame | undefined;

/** Why a stack ends. The first five are the ends of a whole stack. */
export type EndReason =
  /** The ELF's entry point. */
  | 'entry'
  | 'zero-return-address'
  /** Call frame information says that there is no caller. */
  | 'undefined-return-address'
  /** The function set up a stack of its own: nobody called it. */
  | 'own-stack'
  /** A switch of stacks has jumped to the function, which begins a thread: nobody called it. */
  | 'jumped-to'
  /**
   * The function called another without saving its return address: it never returns, and its caller is recorded
   * nowhere.
   */
  | 'return-address-not-kept'
  | 'outside-code'
  /** The firmware has interrupted nothing, or the interrupted registers were not found. */
  | 'firmware'
  /** The hart runs another program than the ELF's. */
  | 'other-code'
  /** No unwinder knows the frame. */
  | 'no-unwinder'
  | 'unreadable-stack'
  /** The next frame would not be further out than this one. */
  | 'loop'
  | 'depth';

export interface End {
  readonly reason: EndReason;
  /** All existing frames were found. */
  readonly complete: boolean;
  /** The next pc, had the walk gone on; if that says more. */
  readonly pc?: Addr;
}

const complete: ReadonlySet<EndReason> = new Set<EndReason>([
  'entry',
  'zero-return-address',
  'undefined-return-address',
  'own-stack',
  'jumped-to',
]);

export function endOf(reason: EndReason, pc?: Addr): End {
  return { reason, complete: complete.has(reason), ...(pc === undefined ? {} : { pc }) };
}

/** The place of one frame, as an unwinder of its image needs it. */
export interface Place {
  readonly pc: CodeAddress;
  readonly exact: boolean;
}

/** What an unwinder knows about a place. */
export type Found =
  | { readonly kind: 'row'; readonly row: UnwindRow; readonly confidence: Confidence }
  | { readonly kind: 'end'; readonly reason: EndReason };

/** What all three unwinders are. Undefined: this unwinder does not know. */
export type Unwinder = (place: Place) => Found | undefined;

/** How to find the caller of one frame, and which unwinder said so. */
export interface Picked {
  readonly name: UnwinderName;
  readonly found: Found;
}
