/**
 * Intel SDM volume 1, section 3.4.3.1 "Status Flags", and what each operation of volume 2 does to them. The manual
 * leaves AF undefined after logical operations. Processors and QEMU clear it, and so does this code.
 */
export type ArithmeticOp = 'add' | 'or' | 'and' | 'sub' | 'xor' | 'cmp' | 'test';

const CF = 1n << 0n;
const PF = 1n << 2n;
const AF = 1n << 4n;
const ZF = 1n << 6n;
const SF = 1n << 7n;
const OF = 1n << 11n;
const STATUS = CF | PF | AF | ZF | SF | OF;

interface Outcome {
  readonly result: bigint;
  readonly eflags: bigint;
}

/** The result and the new eflags of an operation on two unsigned values of `bits` width. */
export function operate(op: ArithmeticOp, a: bigint, b: bigint, bits: number, eflags: bigint): Outcome {
  const sign = 1n << BigInt(bits - 1);
  const wrap = (value: bigint): bigint => BigInt.asUintN(bits, value);
  let result: bigint;
  let flags = 0n;
  switch (op) {
    case 'add':
      result = wrap(a + b);
      if (result < a) flags |= CF;
      if (((a ^ result) & (b ^ result) & sign) !== 0n) flags |= OF;
      break;
    case 'sub':
    case 'cmp':
      result = wrap(a - b);
      if (a < b) flags |= CF;
      if (((a ^ b) & (a ^ result) & sign) !== 0n) flags |= OF;
      break;
    case 'or':
      result = a | b;
      break;
    case 'xor':
      result = a ^ b;
      break;
    default:
      result = a & b;
  }
  if ((op === 'add' || op === 'sub' || op === 'cmp') && ((a ^ b ^ result) & 16n) !== 0n) flags |= AF;
  if (result === 0n) flags |= ZF;
  if ((result & sign) !== 0n) flags |= SF;
  if (evenParity(Number(result & 0xffn))) flags |= PF;
  return { result, eflags: (eflags & ~STATUS) | flags };
}

function evenParity(byte: number): boolean {
  const folded = byte ^ (byte >> 4);
  return ((0x6996 >> (folded & 15)) & 1) === 0;
}

/** Condition names in encoding order: even ones test, odd ones negate (volume 2, appendix B.1.4.7). */
export const conditions = [
  ...(['o', 'no', 'b', 'ae', 'e', 'ne', 'be', 'a'] as const),
  ...(['s', 'ns', 'p', 'np', 'l', 'ge', 'le', 'g'] as const),
];
export type Condition = (typeof conditions)[number];

/** Whether condition 0 to 15 holds. */
export function holds(condition: number, eflags: bigint): boolean {
  const set = (flag: bigint): boolean => (eflags & flag) !== 0n;
  const less = set(SF) !== set(OF);
  const tests = [set(OF), set(CF), set(ZF), set(CF) || set(ZF), set(SF), set(PF), less, less || set(ZF)];
  return tests[condition >> 1] !== ((condition & 1) === 1);
}
