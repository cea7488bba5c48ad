/** Steps within a power of two: a percentile is at most 1/64 above the truth. */
const STEPS = 64;
const STEP_BITS = 6;

/**
 * How long things took, of any number of them in bounded memory. Below 64 ns each nanosecond is apart, above in steps
 * of 1/64 of a power of two.
 */
export class Durations {
  /** By bucket; grows to the longest one. */
  #counts: number[] = [];
  count = 0;
  sum = 0;
  min = Number.POSITIVE_INFINITY;
  max = 0;

  add(nanos: number): void {
    const bucket = bucketOf(nanos);
    while (this.#counts.length <= bucket) this.#counts.push(0);
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.count++;
    this.sum += nanos;
    if (nanos < this.min) this.min = nanos;
    if (nanos > this.max) this.max = nanos;
  }

  /** The least time that a share (0.5, 0.99) of them did not exceed, to 1/64. 0 if there is none. */
  percentile(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.count));
    let seen = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= wanted) return Math.max(this.min, Math.min(this.max, beginOf(bucket + 1) - 1));
    }
    return 0;
  }

  /** By power of two: `[0]` is 0 ns, `[n]` from 2^(n-1) to below 2^n. */
  powers(): number[] {
    const powers: number[] = [];
    for (const [bucket, count] of this.#counts.entries()) {
      if (count === 0) continue;
      const power = powerOf(beginOf(bucket));
      while (powers.length <= power) powers.push(0);
      powers[power] = (powers[power] as number) + count;
    }
    return powers;
  }
}

/** 0 for 0, n for 2^(n-1) to below 2^n. */
export function powerOf(nanos: number): number {
  return nanos < 1 ? 0 : Math.floor(Math.log2(nanos)) + 1;
}

function bucketOf(nanos: number): number {
  if (nanos < STEPS) return Math.max(0, Math.floor(nanos));
  if (nanos < 2 ** 31) {
    const power = 31 - Math.clz32(nanos);
    return STEPS * (power - STEP_BITS + 1) + ((nanos - (1 << power)) >> (power - STEP_BITS));
  }
  // Below 2^53, so Math.log2 is off by one at most at powers of two.
  let power = Math.floor(Math.log2(nanos));
  if (2 ** power > nanos) power--;
  else if (2 ** (power + 1) <= nanos) power++;
  const step = Math.floor((nanos - 2 ** power) / 2 ** (power - STEP_BITS));
  return STEPS * (power - STEP_BITS + 1) + step;
}

/** The least time of a bucket. */
function beginOf(bucket: number): number {
  if (bucket < STEPS) return bucket;
  const power = Math.floor(bucket / STEPS) + STEP_BITS - 1;
  return 2 ** power + (bucket % STEPS) * 2 ** (power - STEP_BITS);
}
