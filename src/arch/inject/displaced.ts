import type { Addr } from '../../base/addr.js';

/**
 * How far the patch can jump, and its cost for the function. `near` keeps every register; `far` destroys a scratch
 * register at the entry.
 */
export type PatchKind = 'near' | 'far';

/** Instructions that were taken out of a function's start, ready to be run elsewhere. */
export interface Displaced {
  readonly kind: PatchKind;
  /** Of the patch: the function's start, or behind a landing pad that stays there. */
  readonly start: Addr;
  /** Bytes of whole instructions, at least `patchLength`. */
  readonly length: number;
  /** Bytes that the jump overwrites. */
  readonly patchLength: number;
  /** The register that a far patch destroys, if it is not the usual one. */
  readonly through?: string | undefined;
  /**
   * The instruction before the patch, which is kept as a landing pad, has signed the return address. Whoever wants that
   * as it was at the entry undoes it first; {@link relocate} begins with it again.
   */
  readonly signs?: 'paciasp' | 'pacibsp' | undefined;
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
