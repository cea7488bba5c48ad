/** The buckets of a histogram, as docs/probes.md has them: below 0, 0, 1, 2-3, 4-7, ... */
export const limits: readonly { readonly from: bigint; readonly below: bigint }[] = [
  { from: -(1n << 64n), below: 0n },
  { from: 0n, below: 1n },
  ...Array.from({ length: 64 }, (_, power) => ({ from: 1n << BigInt(power), below: 1n << BigInt(power + 1) })),
];
