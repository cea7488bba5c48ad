/** Bits of an instruction, from the high one to the low one. */
export function field(word: number, high: number, low: number): number {
  return (word >>> low) & (2 ** (high - low + 1) - 1);
}

export function bit(word: number, at: number): boolean {
  return ((word >>> at) & 1) === 1;
}

/** General registers of an instruction that is not decoded; `writes` is undefined if it overwrites none. */
export interface Uses {
  readonly writes: number | undefined;
  readonly reads: readonly number[];
}
