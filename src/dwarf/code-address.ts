import { type Addr, addr } from '../base/addr.js';

/**
 * An absolute address inside this folder's tables: the 64-bit address read as a signed number, which keeps kernel addresses
 * (`0xffffffff80000000` is -0x80000000) exact in a double, sortable in a Float64Array, and free of bigint. Canonical addresses
 * of every CPU served lie within +-2^53; one that does not is {@link NO_ADDRESS}, which no range contains.
 */
export type CodeAddress = number;

export const NO_ADDRESS: CodeAddress = Number.NaN;

export function toCode(address: bigint): CodeAddress {
  const signed = Number(BigInt.asIntN(64, address));
  return Number.isSafeInteger(signed) ? signed : NO_ADDRESS;
}

/** The reverse of {@link toCode}; never called with NO_ADDRESS. */
export function fromCode(code: CodeAddress): Addr {
  return addr(BigInt(code));
}

/** Two little-endian words as a code address. */
export function codeOf(low: number, high: number): CodeAddress {
  const value = (high | 0) * 0x1_0000_0000 + (low >>> 0);
  return Number.isSafeInteger(value) ? value : NO_ADDRESS;
}

/** The index of the last of `count` sorted values that is not above `wanted`; -1 when all are. */
export function lastNotAbove(sorted: { readonly [index: number]: number }, count: number, wanted: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
