// The operations of DWARF expressions that need only the stack: DWARF 5, sections 2.5.1.1 (literals), 2.5.1.3 (stack
// operations, without the dereferences) and 2.5.1.4 (arithmetic and logic).
import type { ByteReader } from '../base/byte-reader.js';
import { arithmetic, badExpression, compare, convert, generic, signed, typed, type Value } from './expr-values.js';
import { DW_OP } from './op-codes.js';

const MAX_STACK = 1024;

export class ValueStack {
  readonly #values: Value[] = [];

  get isEmpty(): boolean {
    return this.#values.length === 0;
  }

  push(value: Value): void {
    if (this.#values.length >= MAX_STACK) throw badExpression('its stack grows past all bounds');
    this.#values.push(value);
  }

  pop(): Value {
    const value = this.#values.pop();
    if (value === undefined) throw badExpression('it takes more from its stack than there is');
    return value;
  }

  /** The value `depth` below the top. */
  pick(depth: number): Value {
    const value = this.#values[this.#values.length - 1 - depth];
    if (value === undefined) throw badExpression('it takes more from its stack than there is');
    return value;
  }
}

/** Runs an operation on the stack; false if it needs more than the stack. */
export function operate(stack: ValueStack, op: number, r: ByteReader): boolean {
  const literal = literalOf(op, r);
  if (literal !== undefined) {
    stack.push(generic(literal));
    return true;
  }
  return move(stack, op, r) || calculate(stack, op, r);
}

/** Section 2.5.1.1. */
function literalOf(op: number, r: ByteReader): bigint | number | undefined {
  if (op >= DW_OP.lit0 && op <= DW_OP.lit31) return op - DW_OP.lit0;
  switch (op) {
    case DW_OP.const1u:
      return r.u8();
    case DW_OP.const1s:
      return r.i8();
    case DW_OP.const2u:
      return r.u16();
    case DW_OP.const2s:
      return (r.u16() << 16) >> 16;
    case DW_OP.const4u:
      return r.u32();
    case DW_OP.const4s:
      return r.i32();
    case DW_OP.const8u:
    case DW_OP.const8s:
      return r.u64();
    case DW_OP.constu:
      return r.uleb64();
    case DW_OP.consts:
      return r.sleb64();
    default:
      return undefined;
  }
}

/** Section 2.5.1.3. */
function move(stack: ValueStack, op: number, r: ByteReader): boolean {
  switch (op) {
    case DW_OP.dup:
      stack.push(stack.pick(0));
      return true;
    case DW_OP.drop:
      stack.pop();
      return true;
    case DW_OP.over:
      stack.push(stack.pick(1));
      return true;
    case DW_OP.pick:
      stack.push(stack.pick(r.u8()));
      return true;
    case DW_OP.swap: {
      const [b, a] = [stack.pop(), stack.pop()];
      stack.push(b);
      stack.push(a);
      return true;
    }
    case DW_OP.rot: {
      const [c, b, a] = [stack.pop(), stack.pop(), stack.pop()];
      stack.push(c);
      stack.push(a);
      stack.push(b);
      return true;
    }
    default:
      return false;
  }
}

/** Section 2.5.1.4, and the comparisons of 2.5.1.5. */
function calculate(stack: ValueStack, op: number, r: ByteReader): boolean {
  switch (op) {
    case DW_OP.plus_uconst:
      stack.push(generic(stack.pop().bits + r.uleb64()));
      return true;
    case DW_OP.abs:
    case DW_OP.neg: {
      const a = stack.pop();
      const zero = convert(generic(0), a.type);
      stack.push(op === DW_OP.abs && compare(a, zero) >= 0 ? a : arithmetic('minus', zero, a));
      return true;
    }
    case DW_OP.not: {
      const a = stack.pop();
      stack.push(typed(~a.bits, a.type));
      return true;
    }
  }
  const binary = BINARY[op];
  if (!binary) return false;
  const [b, a] = [stack.pop(), stack.pop()];
  stack.push(binary(a, b));
  return true;
}

const bitwise =
  (combine: (a: bigint, b: bigint) => bigint) =>
  (a: Value, b: Value): Value =>
    typed(combine(a.bits, b.bits), a.type);

/** `value` of the value that is shifted. Wider shifts than 128 bits leave nothing of any type. */
const shift =
  (value: (v: Value) => bigint, left: boolean) =>
  (a: Value, { bits }: Value): Value => {
    const by = bits > 128n ? 128n : bits;
    return typed(left ? value(a) << by : value(a) >> by, a.type);
  };

const relation =
  (...holds: readonly (-1 | 0 | 1 | 2)[]) =>
  (a: Value, b: Value): Value =>
    generic(holds.includes(compare(a, b)) ? 1 : 0);

const bitsOf = ({ bits }: Value): bigint => bits;

/** Operations on the two topmost values; `b` is on top. An order of 2: a NaN is among them. */
const BINARY: Readonly<Record<number, (a: Value, b: Value) => Value>> = {
  [DW_OP.plus]: (a, b) => arithmetic('plus', a, b),
  [DW_OP.minus]: (a, b) => arithmetic('minus', a, b),
  [DW_OP.mul]: (a, b) => arithmetic('mul', a, b),
  [DW_OP.div]: (a, b) => arithmetic('div', a, b),
  [DW_OP.mod]: (a, b) => arithmetic('mod', a, b),
  [DW_OP.and]: bitwise((a, b) => a & b),
  [DW_OP.or]: bitwise((a, b) => a | b),
  [DW_OP.xor]: bitwise((a, b) => a ^ b),
  [DW_OP.shl]: shift(bitsOf, true),
  [DW_OP.shr]: shift(bitsOf, false),
  [DW_OP.shra]: shift(signed, false),
  [DW_OP.eq]: relation(0),
  [DW_OP.ne]: relation(-1, 1, 2),
  [DW_OP.lt]: relation(-1),
  [DW_OP.le]: relation(-1, 0),
  [DW_OP.gt]: relation(1),
  [DW_OP.ge]: relation(0, 1),
};
