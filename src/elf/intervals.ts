import { F64Column, U32Column } from '../base/growable.js';
import { type CodeAddress, lastNotAbove } from './code-address.js';

/** Stands for "no range"; never the value of a range. */
const NOTHING = 0xffff_ffff;

/**
 * Finds the range that contains an address. Ranges may nest or overlap; the innermost (the last to begin) wins.
 *
 *   ranges   A [---------------)         pieces  A |  B |C| B | A  | nothing
 *            B     [--------)
 *            C        [-)
 *
 * They are cut into pieces that do not overlap, at most two for each range. So a lookup is one binary search, however
 * the ranges of a damaged file lie.
 */
export class IntervalIndex {
  readonly #start: Float64Array;
  readonly #value: Uint32Array;

  constructor(ranges: IntervalList) {
    const starts = ranges.starts.rows();
    const ends = ranges.ends.rows();
    const values = ranges.values.rows();
    // If two begin together, the wider one first.
    const compare = (a: number, b: number): number =>
      (starts[a] as number) - (starts[b] as number) || (ends[b] as number) - (ends[a] as number);
    const order = new Uint32Array(starts.length);
    let sorted = true;
    for (let i = 0; i < order.length; i++) {
      order[i] = i;
      sorted &&= i === 0 || compare(i - 1, i) <= 0;
    }
    if (!sorted) order.sort((a, b) => compare(a, b) || a - b);
    const pieces = new Pieces();
    /** The ranges around the present place, the innermost last; some of those below it may have ended. */
    const open: number[] = [];
    let at = Number.NEGATIVE_INFINITY;
    /** Gives everything from `at` to `to` to the ranges that are open there. */
    const advance = (to: number): void => {
      for (let top = open[open.length - 1]; top !== undefined && at < to; top = open[open.length - 1]) {
        const end = ends[top] as number;
        if (end > at) {
          pieces.add(at, values[top] as number);
          at = Math.min(end, to);
        }
        if (end <= at) open.pop();
      }
      if (at < to) pieces.add(at, NOTHING);
      at = to;
    };
    let last = -1;
    for (const row of order) {
      // Of equal ranges the first one added wins.
      if (last >= 0 && compare(last, row) === 0) continue;
      last = row;
      advance(starts[row] as number);
      open.push(row);
    }
    if (open.length > 0) advance(Number.POSITIVE_INFINITY);
    this.#start = pieces.starts.rows().slice();
    this.#value = pieces.values.rows().slice();
  }

  /** The value of the innermost range that holds the address, or -1. */
  find(address: CodeAddress): number {
    const value = this.#value[lastNotAbove(this.#start, this.#start.length, address)];
    return value === undefined || value === NOTHING ? -1 : value;
  }
}

class Pieces {
  readonly starts = new F64Column();
  readonly values = new U32Column();

  add(start: number, value: number): void {
    const last = this.values.length - 1;
    if (last >= 0 && this.values.at(last) === value) return;
    this.starts.push(start);
    this.values.push(value);
  }
}

/** Collects ranges for an {@link IntervalIndex}. */
export class IntervalList {
  readonly starts = new F64Column();
  readonly ends = new F64Column();
  readonly values = new U32Column();

  /** Empty, reversed and unusable ranges are left out. */
  add(start: CodeAddress, end: CodeAddress, value: number): void {
    if (!(end > start)) return;
    this.starts.push(start);
    this.ends.push(end);
    this.values.push(value);
  }
}
