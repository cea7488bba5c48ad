import { type Addr, addr, distance, highHalf, lowHalf } from '../base/addr.js';

/**
 * An address inside one ELF's tables, as a number: exact in a double, sortable in a Float64Array, and free of bigint.
 * The ELF's {@link CodeSpace} gives each address its number; numbers of different ELFs are not related. An address
 * far from all of the ELF's own is {@link NO_ADDRESS}, which no range contains.
 */
export type CodeAddress = number;

export const NO_ADDRESS: CodeAddress = Number.NaN;

/**
 * Addresses this close to 0 from either side are their own numbers, read as signed: `0xffffffff80000000` is
 * -0x80000000.
 */
const SELF = 2 ** 52;
/**
 * Numbers of one window. It begins {@link MARGIN} below the part that it is for, and the part is no longer than
 * {@link LENGTH}.
 */
const WINDOW = 2 ** 45;
const MARGIN = 2 ** 41;
const LENGTH = 2 ** 44;
/** Numbers between 2^52 and 2^53, less one that keeps the first away from addresses that are their own numbers. */
const MAX_WINDOWS = SELF / WINDOW - 1;
/** Distances up to this never lead from one window into another. */
const NEAR = 2 ** 40;
const HALF = 0x1_0000_0000;

/** Addresses far from 0, as a kernel under five-level paging or Sv57 has them, and the numbers they have. */
interface Window {
  readonly address: Addr;
  readonly code: CodeAddress;
}

/**
 * The numbers of one ELF's addresses. Within +-2^52 an address is its own number. Each part of the ELF outside that
 * range has a window of numbers. Order and distance hold inside each part, wherever it lies in the 64 bits.
 *
 *     addresses   0 ...... 2^52 ........ 0xff10_0000_8000_0000 ........ 2^64
 *     numbers     as they are    |  2^52 + 2^45 ...  |        as they are, negative
 */
export class CodeSpace {
  readonly #windows: readonly Window[];
  readonly #biasLow: number;
  readonly #biasHigh: number;

  /**
   * `parts`: where the ELF is loaded. `bias`: the difference from its own addresses to those. Parts past the
   * hundredth have no numbers.
   */
  constructor(parts: readonly { readonly address: bigint; readonly size: number }[], bias: bigint) {
    this.#biasLow = lowHalf(bias);
    this.#biasHigh = highHalf(bias);
    const windows: Window[] = [];
    const far = parts.filter(({ address, size }) => {
      const from = distance(0n, address);
      return !isSelf(from - MARGIN) || !isSelf(from + Math.min(size, LENGTH) + MARGIN);
    });
    far.sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
    for (const { address, size } of far) {
      const last = windows.at(-1);
      const from = last === undefined ? Number.POSITIVE_INFINITY : distance(last.address, address);
      if (from >= 0 && from + Math.min(size, LENGTH) <= MARGIN + LENGTH) continue;
      if (windows.length >= MAX_WINDOWS) break;
      windows.push({ address: addr(address - BigInt(MARGIN)), code: SELF + WINDOW * (windows.length + 1) });
    }
    this.#windows = windows;
  }

  /** What a number has more than the ELF's own address; undefined if that depends on the part that this lies in. */
  get shift(): number | undefined {
    const shift = signedWord(this.#biasLow, this.#biasHigh);
    return this.#windows.length === 0 && isSelf(shift) ? shift : undefined;
  }

  /** The number of an address in memory. */
  toCode(address: bigint): CodeAddress {
    return this.ofMemory(lowHalf(address), highHalf(address));
  }

  /** The address in memory of a number; never called with NO_ADDRESS. */
  fromCode(code: CodeAddress): Addr {
    if (code < SELF) return addr(BigInt(code));
    const window = this.#windows[Math.floor((code - SELF) / WINDOW) - 1];
    return window === undefined ? addr(BigInt(code)) : addr(window.address + BigInt(code - window.code));
  }

  /** The number of an address of the file, given in two little-endian words. */
  ofFile(low: number, high: number): CodeAddress {
    const sum = (low >>> 0) + this.#biasLow;
    return this.ofMemory(sum % HALF, high + this.#biasHigh + (sum >= HALF ? 1 : 0));
  }

  /** The number at a distance from another; the distance is signed, in two little-endian words. */
  plus(code: CodeAddress, low: number, high: number): CodeAddress {
    const by = signedWord(low, high);
    if (by > -NEAR && by < NEAR) return code + by;
    if (Number.isNaN(code)) return NO_ADDRESS;
    return this.toCode(this.fromCode(code) + (BigInt(high | 0) << 32n) + BigInt(low >>> 0));
  }

  /** The number of an address in memory, in two little-endian words. */
  ofMemory(low: number, high: number): CodeAddress {
    for (const { address, code } of this.#windows) {
      const inside = ((high - highHalf(address)) | 0) * HALF + (low - lowHalf(address));
      if (inside >= 0 && inside < WINDOW) return code + inside;
    }
    const signed = (high | 0) * HALF + low;
    return isSelf(signed) ? signed : NO_ADDRESS;
  }
}

function isSelf(signed: number): boolean {
  return signed >= -SELF && signed < SELF;
}

/** Two little-endian words as a signed number, of a length or a distance; NaN beyond +-2^53. */
export function signedWord(low: number, high: number): number {
  const value = (high | 0) * HALF + (low >>> 0);
  return Number.isSafeInteger(value) ? value : Number.NaN;
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
