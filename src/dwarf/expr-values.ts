// Values on the stack of a DWARF expression: DWARF 5, section 2.5.1. Generic values are 64 bits wide without a sign;
// typed ones (DW_OP.const_type, regval_type, deref_type, convert, reinterpret) have a base type's size and encoding.
import { RsptraceError } from '../base/errors.js';
import { DW_AT, DW_ATE, DW_TAG } from './constants.js';
import type { Unit } from './unit.js';

export interface BaseType {
  /** Bytes. */
  readonly size: number;
  readonly kind: 'signed' | 'unsigned' | 'float';
}

/** `bits` is always unsigned and no wider than the type (64 bits for the generic type, undefined). */
export interface Value {
  readonly bits: bigint;
  readonly type: BaseType | undefined;
}

export function generic(bits: bigint | number): Value {
  return { bits: BigInt.asUintN(64, BigInt(bits)), type: undefined };
}

export function typed(bits: bigint, type: BaseType | undefined): Value {
  return { bits: BigInt.asUintN((type?.size ?? 8) * 8, bits), type };
}

/** The base type at an offset inside the unit; 0 stands for the generic type. Throws `DWARF_DAMAGED`. */
export function baseTypeAt(unit: Unit, offset: number): BaseType | undefined {
  if (offset === 0) return undefined;
  const die = unit.debug.die(unit.offset + offset);
  const size = die?.number(DW_AT.byte_size);
  if (die?.tag !== DW_TAG.base_type || size === undefined || size < 1 || size > 16) {
    throw badExpression(`there is no base type at offset 0x${offset.toString(16)} of the unit`);
  }
  const encoding = die.number(DW_AT.encoding);
  if (encoding === DW_ATE.float && (size === 4 || size === 8)) return { size, kind: 'float' };
  return { size, kind: encoding === DW_ATE.signed || encoding === DW_ATE.signed_char ? 'signed' : 'unsigned' };
}

export function badExpression(what: string): RsptraceError {
  return new RsptraceError('DWARF_DAMAGED', `a DWARF expression is damaged: ${what}`);
}

/** As a signed number, as the operators that care about the sign (div, shra, comparisons) see a generic value. */
export function signed(v: Value): bigint {
  if (v.type?.kind === 'unsigned') return v.bits;
  return BigInt.asIntN((v.type?.size ?? 8) * 8, v.bits);
}

const scratch = new DataView(new ArrayBuffer(8));

function toFloat(v: Value): number {
  if (v.type?.size === 4) {
    scratch.setUint32(0, Number(v.bits));
    return scratch.getFloat32(0);
  }
  scratch.setBigUint64(0, v.bits);
  return scratch.getFloat64(0);
}

function fromFloat(value: number, type: BaseType): Value {
  if (type.size === 4) {
    scratch.setFloat32(0, value);
    return { bits: BigInt(scratch.getUint32(0)), type };
  }
  scratch.setFloat64(0, value);
  return { bits: scratch.getBigUint64(0), type };
}

/** The value in another type, as a C cast converts it. */
export function convert(v: Value, type: BaseType | undefined): Value {
  if (v.type?.kind === 'float') {
    const value = toFloat(v);
    if (type?.kind === 'float') return fromFloat(value, type);
    return typed(Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n, type);
  }
  // A generic value has no sign, but converts as a signed one (what gcc's and clang's expressions rely on is the same
  // bits).
  const value = signed(v);
  return type?.kind === 'float' ? fromFloat(Number(value), type) : typed(value, type);
}

type Arithmetic = 'plus' | 'minus' | 'mul' | 'div' | 'mod';

/** Both operands are of one type. Division by zero throws `DWARF_DAMAGED`. */
export function arithmetic(op: Arithmetic, a: Value, b: Value): Value {
  if (a.type?.kind === 'float' && b.type?.kind === 'float') {
    const x = toFloat(a);
    const y = toFloat(b);
    const result = { plus: x + y, minus: x - y, mul: x * y, div: x / y, mod: x % y }[op];
    return fromFloat(result, a.type);
  }
  if ((op === 'div' || op === 'mod') && b.bits === 0n) throw badExpression('it divides by zero');
  switch (op) {
    case 'plus':
      return typed(a.bits + b.bits, a.type);
    case 'minus':
      return typed(a.bits - b.bits, a.type);
    case 'mul':
      return typed(a.bits * b.bits, a.type);
    case 'div':
      return typed(signed(a) / signed(b), a.type);
    // Of generic values, modulo is unsigned where division is signed (DWARF 5, section 2.5.1.4).
    case 'mod':
      return typed(a.type?.kind === 'signed' ? signed(a) % signed(b) : a.bits % b.bits, a.type);
  }
}

/** -1, 0 or 1; NaN compares as equal to nothing and gives 2. */
export function compare(a: Value, b: Value): -1 | 0 | 1 | 2 {
  const float = a.type?.kind === 'float';
  const x = float ? toFloat(a) : signed(a);
  const y = float ? toFloat(b) : signed(b);
  if (x < y) return -1;
  if (x > y) return 1;
  return x === y ? 0 : 2;
}
