// Arm Architecture Reference Manual for A-profile (DDI 0487), J1.3 "Shared pseudocode": AddWithCarry, ShiftReg,
// ExtendReg, ConditionHolds.
import type { Shift } from './decode.js';

/** NZCV in the lowest four bits. */
type Flags = number;

export function shifted(value: bigint, shift: Shift, amount: number, wide: boolean): bigint {
  const bits = wide ? 64 : 32;
  const by = BigInt(amount);
  const low = BigInt.asUintN(bits, value);
  switch (shift) {
    case 0:
      return BigInt.asUintN(bits, low << by);
    case 1:
      return low >> by;
    case 2:
      return BigInt.asUintN(bits, BigInt.asIntN(bits, low) >> by);
    case 3:
      return BigInt.asUintN(bits, (low >> by) | (low << BigInt(bits - amount)));
  }
}

/** `option`: uxtb, uxth, uxtw, uxtx, and the same with signs. */
export function extended(value: bigint, option: number, amount: number): bigint {
  const bits = 8 << (option & 3);
  const part = (option & 4) === 0 ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value);
  return BigInt.asUintN(64, part << BigInt(amount));
}

/** a + b, or a - b as a + ~b + 1. */
export function added(
  a: bigint,
  b: bigint,
  op: 'add' | 'sub',
  wide: boolean,
): { readonly value: bigint; readonly flags: Flags } {
  const bits = wide ? 64 : 32;
  const [x, y] = [BigInt.asUintN(bits, a), BigInt.asUintN(bits, op === 'add' ? b : ~b)];
  const carry = op === 'add' ? 0n : 1n;
  const sum = x + y + carry;
  const value = BigInt.asUintN(bits, sum);
  const signed = BigInt.asIntN(bits, x) + BigInt.asIntN(bits, y) + carry;
  const c = sum === value ? 0 : 2;
  const v = signed === BigInt.asIntN(bits, value) ? 0 : 1;
  return { value, flags: signs(value, bits) | c | v };
}

/** N and Z of a result. */
export function signs(value: bigint, bits: number): Flags {
  return (value >> BigInt(bits - 1) === 1n ? 8 : 0) | (value === 0n ? 4 : 0);
}

export function holds(condition: number, flags: Flags): boolean {
  const [n, z, c, v] = [(flags & 8) !== 0, (flags & 4) !== 0, (flags & 2) !== 0, (flags & 1) !== 0];
  const base = [z, c, n, v, c && !z, n === v, n === v && !z, true][condition >> 1] as boolean;
  return (condition & 1) === 1 && condition !== 15 ? !base : base;
}
