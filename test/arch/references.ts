// Four words that point to each other or not, and what a trampoline must find behind a register that points to them.
import type { Condition, IntegerIn } from '../../src/arch/index.js';

type Behind = NonNullable<IntegerIn['behind']>;

/** Ways from the first of the words to the last two, which hold numbers: at once, by the second word, by both. */
export function references(size: number): Behind[] {
  return [
    { through: [], offset: 16 },
    { through: [], offset: 32 - 2 * size },
    { through: [0], offset: 8 },
    { through: [8], offset: 8 },
    { through: [8], offset: 0 },
    { through: [0, 0], offset: 16 - 2 * size },
  ];
}

/** The words, and what the register holds: sometimes null, sometimes not aligned. */
export function pointsOf(
  at: bigint,
  pick: <T>(list: readonly T[]) => T,
  value: () => bigint,
): { readonly first: bigint; readonly words: readonly bigint[] } {
  const to = (address: bigint): bigint => pick([address, address, address, address, 0n, address + 1n]);
  return {
    first: to(at),
    words: [to(at + 8n), to(at + 16n), BigInt.asUintN(64, value()), BigInt.asUintN(64, value())],
  };
}

/** The number there; undefined where a pointer on the way is null or not aligned. */
export function readBehind(
  { size, signed, behind = { through: [], offset: 0 } }: IntegerIn,
  first: bigint,
  words: readonly bigint[],
  at = first,
): bigint | undefined {
  const read = (address: bigint, bytes: number): bigint => {
    const all = words.reduce((sum, word, index) => sum | (word << BigInt(64 * index)), 0n);
    return BigInt.asUintN(8 * bytes, all >> (8n * (address - at)));
  };
  let pointer = first;
  for (const hop of behind.through) {
    if (pointer === 0n || pointer % 8n !== 0n) return undefined;
    pointer = read(pointer + BigInt(hop), 8);
  }
  if (pointer === 0n || pointer % BigInt(size) !== 0n) return undefined;
  const bits = read(pointer + BigInt(behind.offset), size);
  return signed ? BigInt.asIntN(8 * size, bits) : bits;
}

export function holds({ op, value }: Condition, left: bigint): boolean {
  const { eq, ne, lt, le, gt, ge } = {
    eq: left === value,
    ne: left !== value,
    lt: left < value,
    le: left <= value,
    gt: left > value,
    ge: left >= value,
  };
  return { eq, ne, lt, le, gt, ge }[op];
}
