/** An absolute address in the target: an unsigned 64-bit value. Made only by {@link addr}. */
export type Addr = bigint & { readonly __addr: true };

/** Makes an address; a negative or wider value wraps to 64 bits, as the target's own arithmetic would. */
export function addr(value: bigint | number): Addr {
  return BigInt.asUintN(64, BigInt(value)) as Addr;
}

/** Where a pointer leads of which so many bits count: the highest of these is repeated above. */
export function pointsTo(pointer: Addr, bits: number | undefined): Addr {
  return bits === undefined ? pointer : addr(BigInt.asIntN(bits, pointer));
}

/** `base + offset` in 64-bit arithmetic. A number costs one new bigint, and none if it is 0. */
export function addOffset(base: Addr, offset: number | bigint): Addr {
  if (offset === 0) return base;
  if (typeof offset === 'bigint' || !Number.isInteger(offset) || Math.abs(offset) > 2 ** 52)
    return addr(base + BigInt(offset));
  wide[0] = base;
  const low = (halves[0] as number) + offset;
  // What is stored is taken modulo 2^32.
  halves[0] = low;
  halves[1] = (halves[1] as number) + Math.floor(low / 2 ** 32);
  return wide[0] as Addr;
}

/** An address in the form for users and JSON: `0x80200000`. */
export function hex(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

const wide = new BigUint64Array(2);
const halves = new Uint32Array(wide.buffer);
const octets = new Uint8Array(wide.buffer);

/** The low 32 bits, for hashes: by far faster than bigint arithmetic (little-endian hosts, as Node's all are). */
export function lowHalf(value: bigint): number {
  wide[0] = value;
  return halves[0] as number;
}

/** The high 32 of 64 bits, as fast. */
export function highHalf(value: bigint): number {
  wide[0] = value;
  return halves[1] as number;
}

/** The 64-bit value of its halves, each unsigned: by far faster than shifting bigints. */
export function fromHalves(low: number, high: number): bigint {
  halves[0] = low;
  halves[1] = high;
  return wide[0] as bigint;
}

/** Writes the low bytes of a value into `bytes`, from `offset` on, little-endian; at most eight. */
export function putLow(value: bigint, bytes: Uint8Array, offset: number, size: number): void {
  wide[0] = value;
  for (let i = 0; i < size; i++) bytes[offset + i] = octets[i] as number;
}

/**
 * `to - from` in the target's 64-bit arithmetic, as a signed number: exact within +-2^53, rounded beyond. Makes no
 * bigint, so it costs little more than an addition.
 */
export function distance(from: bigint, to: bigint): number {
  wide[0] = from;
  wide[1] = to;
  const low = (halves[2] as number) - (halves[0] as number);
  const high = ((halves[3] as number) - (halves[1] as number) - (low < 0 ? 1 : 0)) | 0;
  return high * 0x1_0000_0000 + (low < 0 ? low + 0x1_0000_0000 : low);
}
