/**
 * Where one stack ends and the next begins. A call whose return leaves the stack pointer at S lies at
 * `locationOf(S)`. The end of a stack belongs to it. The begin of the next is nobody's, because nothing has been
 * pushed there.
 */
export interface StackBounds {
  /** The highest bound at or below a location; -Infinity if none is known. */
  below(location: number): number;
  /** They were given from the start, not derived. */
  readonly isGiven: boolean;
  /** The bounds around a location are known. */
  isExact(location: number): boolean;
  /** Two calls, the one with the lower stack pointer first, are on different stacks. Returns whether that is new. */
  learn(lower: number, upper: number): boolean;
}

export function locationOf(stackPointer: number): number {
  return stackPointer - 8;
}

/** Every stack has this size and lies at a multiple of it. */
export class FixedBounds implements StackBounds {
  readonly isGiven = true;
  readonly #bytes: number;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  below(location: number): number {
    return Math.floor(location / this.#bytes) * this.#bytes;
  }

  isExact(): boolean {
    return true;
  }

  learn(): boolean {
    return false;
  }
}

/** A bound lies above `after`, and not above `upTo`. */
interface Proof {
  readonly after: number;
  readonly upTo: number;
}

/** The most proofs that are kept: as many stacks lie side by side. */
const mostProofs = 4096;
/** Stacks between two bounds that are known lie no further apart. */
const mostBetween = 1 << 16;

/** Bounds between calls that are proven to be on two stacks: as few as explain all of them, at round addresses. */
export class LearnedBounds implements StackBounds {
  readonly isGiven = false;
  /** None contains another: sorted by both ends. */
  #proofs: Proof[] = [];
  #bounds: number[] = [];

  below(location: number): number {
    return this.#bounds[this.#countUpTo(location) - 1] ?? Number.NEGATIVE_INFINITY;
  }

  isExact(location: number): boolean {
    const next = this.#countUpTo(location);
    const [low, high] = [this.#bounds[next - 1], this.#bounds[next]];
    return low !== undefined && high !== undefined && high - low <= mostBetween;
  }

  learn(lower: number, upper: number): boolean {
    const proof = { after: locationOf(lower), upTo: locationOf(upper) };
    if (proof.after >= proof.upTo || this.below(proof.upTo) > proof.after) return false;
    const around = ({ after, upTo }: Proof): boolean => after <= proof.after && upTo >= proof.upTo;
    this.#proofs = this.#proofs.filter((known) => !around(known));
    if (this.#proofs.length >= mostProofs) return false;
    this.#proofs.push(proof);
    this.#proofs.sort((a, b) => a.after - b.after);
    this.#bounds = fewest(this.#proofs);
    return true;
  }

  #countUpTo(location: number): number {
    let [low, high] = [0, this.#bounds.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#bounds[middle] as number) <= location) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The fewest bounds of which every proof has one. */
function fewest(proofs: readonly Proof[]): number[] {
  const bounds: number[] = [];
  let common: Proof | undefined;
  for (const { after, upTo } of proofs) {
    const both: Proof | undefined = common && {
      after: Math.max(common.after, after),
      upTo: Math.min(common.upTo, upTo),
    };
    if (both && both.after < both.upTo) {
      common = both;
      continue;
    }
    if (common) bounds.push(roundest(common));
    common = { after, upTo };
  }
  if (common) bounds.push(roundest(common));
  return bounds;
}

/** The number with the most zeros at its end: stacks begin at multiples of pages, or of their size. */
function roundest({ after, upTo }: Proof): number {
  for (let unit = 2 ** 56; unit > 8; unit /= 2) {
    const multiple = Math.floor(upTo / unit) * unit;
    if (multiple > after) return multiple;
  }
  return upTo;
}
