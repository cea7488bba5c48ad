/**
 * One fast pass over a program's whole text. It decodes no more than it must, so it may find references that are none.
 * It misses none, except short branches where `shortInto` is there.
 */
export interface CodeReferences {
  scan(code: Uint8Array, options: ScanOptions): void;
  /** Where a function's code leads outside of itself: more than there is, nothing missing. */
  leave(code: Uint8Array, at: number): Leaving;
  /** False if a function surely does not read its own return address. Undefined: nothing is known at so little cost. */
  readonly mayReadReturn?: (code: Uint8Array) => boolean;
  /**
   * Offsets at which bytes look like a branch into those from `low` to below `high`, too short for {@link scan}. Only
   * decoding says whether they are one. Undefined: the scan finds all.
   */
  readonly shortInto?: (code: Uint8Array, low: number, high: number) => readonly number[];
}

export interface Leaving {
  readonly jumps: readonly number[];
  readonly calls: readonly number[];
  /** Words of memory that have the address instead, as those of imported functions do. */
  readonly jumpsThrough: readonly number[];
  readonly callsThrough: readonly number[];
}

/** Where direct jumps and calls of a function's code lead outside of it. `to`: from its first byte; it lies at `at`. */
export function leavingBy(
  targets: readonly { readonly to: number; readonly link: boolean }[],
  code: Uint8Array,
  at: number,
): Leaving {
  const out = targets.filter(({ to }) => to < 0 || to >= code.length);
  const leading = (link: boolean): number[] => out.flatMap((one) => (one.link === link ? [at + one.to] : []));
  return { jumps: leading(false), calls: leading(true), jumpsThrough: [], callsThrough: [] };
}

export interface ScanOptions {
  /** Its first byte's address, as a number in which distances are exact. */
  readonly at: number;
  /** All text: what lies outside of it is of no interest to `holds`. */
  readonly text: { readonly low: number; readonly high: number };
  /** Offsets of instructions that surely begin there, in order. */
  readonly starts: Iterable<number>;
  /** It is linked to fixed addresses, so that a constant may be one. */
  readonly isFixed: boolean;
  /** A jump, branch or call leads there. */
  readonly leads: (to: number) => void;
  /** An instruction makes this address. */
  readonly names: (address: number) => void;
  /** These bits of an instruction may be an address. */
  readonly holds: (address: number) => void;
}
