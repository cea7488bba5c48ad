/**
 * What integer operations compute. Values are unsigned 64-bit numbers; those that end in `w` have results of 32 bits,
 * which lie sign-extended in a register. RISC-V: The Instruction Set Manual, volume I, RV64I and M; division by zero and
 * overflow do not trap, they give the results of the manual's table for M. LoongArch: Reference Manual, volume 1, 2.2.1
 * (`maskeqz`: 0 where b is 0).
 */
type Binary = (a: bigint, b: bigint) => bigint;

const u64 = (value: bigint): bigint => BigInt.asUintN(64, value);
const s64 = (value: bigint): bigint => BigInt.asIntN(64, value);
const u32 = (value: bigint): bigint => BigInt.asUintN(32, value);
const s32 = (value: bigint): bigint => BigInt.asIntN(32, value);
/** A 32-bit result as it lies in a register: sign-extended. */
const word = (value: bigint): bigint => u64(s32(value));
const flag = (value: boolean): bigint => (value ? 1n : 0n);

const divide: Binary = (a, b) => (b === 0n ? -1n : a / b);
const remainder: Binary = (a, b) => (b === 0n ? a : a % b);

export const compute = {
  add: (a, b) => u64(a + b),
  sub: (a, b) => u64(a - b),
  sll: (a, b) => u64(a << (b & 63n)),
  slt: (a, b) => flag(s64(a) < s64(b)),
  sltu: (a, b) => flag(a < b),
  xor: (a, b) => a ^ b,
  srl: (a, b) => a >> (b & 63n),
  sra: (a, b) => u64(s64(a) >> (b & 63n)),
  or: (a, b) => a | b,
  and: (a, b) => a & b,
  addw: (a, b) => word(a + b),
  subw: (a, b) => word(a - b),
  sllw: (a, b) => word(a << (b & 31n)),
  srlw: (a, b) => word(u32(a) >> (b & 31n)),
  sraw: (a, b) => word(s32(a) >> (b & 31n)),
  mul: (a, b) => u64(a * b),
  mulh: (a, b) => u64((s64(a) * s64(b)) >> 64n),
  mulhsu: (a, b) => u64((s64(a) * b) >> 64n),
  mulhu: (a, b) => (a * b) >> 64n,
  mulw: (a, b) => word(a * b),
  div: (a, b) => u64(divide(s64(a), s64(b))),
  divu: (a, b) => u64(divide(a, b)),
  rem: (a, b) => u64(remainder(s64(a), s64(b))),
  remu: (a, b) => remainder(a, b),
  divw: (a, b) => word(divide(s32(a), s32(b))),
  divuw: (a, b) => word(divide(u32(a), u32(b))),
  remw: (a, b) => word(remainder(s32(a), s32(b))),
  remuw: (a, b) => word(remainder(u32(a), u32(b))),
  nor: (a, b) => u64(~(a | b)),
  orn: (a, b) => u64(a | ~b),
  andn: (a, b) => u64(a & ~b),
  maskeqz: (a, b) => (b === 0n ? 0n : a),
  masknez: (a, b) => (b === 0n ? a : 0n),
} satisfies Readonly<Record<string, Binary>>;

export type IntegerOp = keyof typeof compute;

/** Whether a branch is taken that compares two registers. */
export const taken = {
  beq: (a, b) => a === b,
  bne: (a, b) => a !== b,
  blt: (a, b) => s64(a) < s64(b),
  bge: (a, b) => s64(a) >= s64(b),
  bltu: (a, b) => a < b,
  bgeu: (a, b) => a >= b,
} satisfies Readonly<Record<string, (a: bigint, b: bigint) => boolean>>;

export type BranchOp = keyof typeof taken;
