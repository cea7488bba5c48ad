/** Bits of an instruction, from the high one to the low one. */
export function field(word: number, high: number, low: number): number {
  return (word >>> low) & (2 ** (high - low + 1) - 1);
}

export function bit(word: number, at: number): boolean {
  return ((word >>> at) & 1) === 1;
}

/** A field as a signed number. */
export function signedField(word: number, high: number, low: number): number {
  return (word << (31 - high)) >> (31 - high + low);
}

/** The four bytes of an instruction at an offset; undefined beyond the bytes. */
export function wordAt(code: Uint8Array, offset: number): number | undefined {
  if (offset < 0 || offset + 4 > code.length) return undefined;
  return new DataView(code.buffer, code.byteOffset, code.byteLength).getUint32(offset, true);
}
