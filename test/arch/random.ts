/** A stream of 32-bit numbers that is the same in every run (xorshift32, Marsaglia 2003); the seed must not be 0. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state;
  };
}

/** 64-bit values: half of them plain random, half of the kind that arithmetic goes wrong on. */
export function values(next: () => number): () => bigint {
  const wide = (): bigint => (BigInt(next()) << 32n) | BigInt(next());
  const edges = [
    0n,
    1n,
    2n,
    0x7fn,
    0x80n,
    0xffn,
    0x7fff_ffffn,
    0x8000_0000n,
    0xffff_ffffn,
    1n << 63n,
    (1n << 63n) - 1n,
    (1n << 64n) - 1n,
  ];
  return () => {
    const kind = next() >>> 28;
    if (kind < 8) return wide();
    if (kind < 13) return edges[next() % edges.length] as bigint;
    return kind < 15 ? BigInt(next() & 0xff) : BigInt.asUintN(64, BigInt(next() | 0));
  };
}
