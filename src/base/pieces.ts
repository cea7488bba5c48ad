import type { Addr } from './addr.js';
import { firstWhere } from './sorted.js';

/** Bytes of memory. */
export interface Bytes {
  readonly address: Addr;
  readonly length: number;
}

/** Whether an address is in one of many pieces that do not overlap: there may be tens of thousands. */
export function placesIn(pieces: readonly Bytes[]): (at: bigint) => boolean {
  const sorted = [...pieces].sort((a, b) => (a.address < b.address ? -1 : 1));
  return (at) => {
    const from = firstWhere(sorted.length, (index) => (sorted[index] as Bytes).address > at);
    const last = sorted[from - 1];
    return last !== undefined && at < last.address + BigInt(last.length);
  };
}
