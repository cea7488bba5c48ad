import type { Confidence } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { UnwindRow } from '../base/unwind-row.js';
import type { CodeAddress } from '../elf/index.js';
import type { CodeImage } from './code-image.js';

/** How a frame is left: by call frame information, by the frame pointer, by what its function's code does. */
export type UnwinderName = 'cfi' | 'fp' | 'prologue';

/** One activation of a function that is not over. */
export interface Frame {
  /** 0 is the innermost. */
  readonly level: number;
  /** Where it goes on. */
  readonly pc: Addr;
  /** The program, or the library, that its code is in; undefined where no code is known. */
  readonly image: CodeImage | undefined;
  /** `pc` is the next instruction to run, in the innermost frame and in one that was interrupted; else it stands behind a call. */
  readonly exact: boolean;
  /** The registers as they are while this frame is on top, as far as they are known. */
  readonly registers: FrameRegisters;
  /** The canonical frame address; undefined in a frame that could not be left. */
  readonly cfa: Addr | undefined;
  /** By what its caller was found; undefined in a frame that could not be left. */
  readonly unwinder: UnwinderName | undefined;
  /** How far the frame itself can be trusted: what was found through a guess is no better than one. */
  readonly confidence: Confidence;
}

/** Registers of one frame, by DWARF number or by the stub's name. */
export interface FrameRegisters extends RegisterReader {
  numbered(number: number): bigint | undefined;
}

/** What a tracer has put between a frame and its caller by replacing a return address. */
export interface HookFrame {
  /** Where the original return address lies, in bytes from the stack pointer that the frame's own return leaves. */
  readonly offset: number;
  /** Bytes of stack that are given back before the caller goes on. */
  readonly size: number;
}

/** What stands behind a return address that a tracer has put in place of the original; undefined for all others. */
export type Hooked = (returnAddress: bigint) => HookFrame | undefined;

/** Why a stack ends where it does. The first four are ends that a whole stack has. */
export type EndReason =
  /** The ELF's entry point. */
  | 'entry'
  | 'zero-return-address'
  /** Call frame information says that there is no caller. */
  | 'undefined-return-address'
  /** The function set up a stack of its own: nobody called it. */
  | 'own-stack'
  /** The function called another without keeping its return address: it never returns, and its caller is not recorded anywhere. */
  | 'return-address-not-kept'
  | 'outside-code'
  /** The firmware has interrupted nothing, or keeps what it has interrupted where it is not found. */
  | 'firmware'
  /** The hart runs another program than the ELF's. */
  | 'other-code'
  /** No unwinder can tell the frame. */
  | 'no-unwinder'
  | 'unreadable-stack'
  /** The next frame would not be further out than this one. */
  | 'loop'
  | 'depth';

export interface End {
  readonly reason: EndReason;
  /** All frames that there are were found. */
  readonly complete: boolean;
  /** What would have been the next pc, where that says more. */
  readonly pc?: Addr;
}

const complete: ReadonlySet<EndReason> = new Set<EndReason>([
  'entry',
  'zero-return-address',
  'undefined-return-address',
  'own-stack',
]);

export function endOf(reason: EndReason, pc?: Addr): End {
  return { reason, complete: complete.has(reason), ...(pc === undefined ? {} : { pc }) };
}

/** Where one frame stands, as an unwinder of its image needs it. */
export interface Place {
  readonly pc: CodeAddress;
  readonly exact: boolean;
}

/** What an unwinder knows of a place. */
export type Found =
  | { readonly kind: 'row'; readonly row: UnwindRow; readonly confidence: Confidence }
  | { readonly kind: 'end'; readonly reason: EndReason };

/** The one interface of all three. Undefined: this one cannot tell. */
export interface Unwinder {
  readonly name: UnwinderName;
  find(place: Place): Found | undefined;
}
