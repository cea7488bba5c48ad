/** An absolute address in the target: an unsigned 64-bit value. Made only by {@link addr}. */
export type Addr = bigint & { readonly __addr: true };

/** Makes an address; a negative or wider value wraps to 64 bits, as the target's own arithmetic would. */
export function addr(value: bigint | number): Addr {
  return BigInt.asUintN(64, BigInt(value)) as Addr;
}

/** `base + offset` in 64-bit arithmetic. */
export function addOffset(base: Addr, offset: number | bigint): Addr {
  return addr(base + BigInt(offset));
}

/** An address as people and JSON read it: `0x80200000`. */
export function hex(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

const wide = new BigUint64Array(1);
const halves = new Uint32Array(wide.buffer);

/** The low 32 bits, for hashes: by far faster than bigint arithmetic (little-endian hosts, as Node's all are). */
export function lowHalf(value: bigint): number {
  wide[0] = value;
  return halves[0] as number;
}
