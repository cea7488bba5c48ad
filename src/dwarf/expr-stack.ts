// The operations of DWARF expressions that need only the stack: DWARF 5, sections 2.5.1.1 (literals), 2.5.1.3 (stack
// operations, without the dereferences) and 2.5.1.4 (arithmetic and logic).
import type { ByteReader } from '../base/byte-reader.js';
import {
  type Arithmetic,
  arithmetic,
  badExpression,
  compare,
  convert,
  generic,
  signed,
  typed,
  type Value,
} from './expr-values.js';
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
  if (op >= DW_OP.lit0 && op <= DW_OP.lit31) {
    stack.push(generic(op - DW_OP.lit0));
    return true;
  }
  switch (op) {
    case DW_OP.const1u:
      stack.push(generic(r.u8()));
      return true;
    case DW_OP.const1s:
      stack.push(generic(r.i8()));
      return true;
    case DW_OP.const2u:
      stack.push(generic(r.u16()));
      return true;
    case DW_OP.const2s:
      stack.push(generic((r.u16() << 16) >> 16));
      return true;
    case DW_OP.const4u:
      stack.push(generic(r.u32()));
      return true;
    case DW_OP.const4s:
      stack.push(generic(r.i32()));
      return true;
    case DW_OP.const8u:
    case DW_OP.const8s:
      stack.push(generic(r.u64()));
      return true;
    case DW_OP.constu:
      stack.push(generic(r.uleb64()));
      return true;
    case DW_OP.consts:
      stack.push(generic(r.sleb64()));
      return true;
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
    case DW_OP.plus_uconst:
      stack.push(generic(stack.pop().bits + r.uleb64()));
      return true;
    case DW_OP.plus:
    case DW_OP.minus:
    case DW_OP.mul:
    case DW_OP.div:
    case DW_OP.mod: {
      const [b, a] = [stack.pop(), stack.pop()];
      stack.push(arithmetic(ARITHMETIC[op] as Arithmetic, a, b));
      return true;
    }
    case DW_OP.and:
    case DW_OP.or:
    case DW_OP.xor: {
      const [b, a] = [stack.pop(), stack.pop()];
      const bits = op === DW_OP.and ? a.bits & b.bits : op === DW_OP.or ? a.bits | b.bits : a.bits ^ b.bits;
      stack.push(typed(bits, a.type));
      return true;
    }
    case DW_OP.shl:
    case DW_OP.shr:
    case DW_OP.shra: {
      const [by, a] = [stack.pop().bits, stack.pop()];
      const shift = by > 128n ? 128n : by;
      const value = op === DW_OP.shl ? a.bits << shift : (op === DW_OP.shr ? a.bits : signed(a)) >> shift;
      stack.push(typed(value, a.type));
      return true;
    }
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
    case DW_OP.eq:
    case DW_OP.ne:
    case DW_OP.lt:
    case DW_OP.le:
    case DW_OP.gt:
    case DW_OP.ge: {
      const [b, a] = [stack.pop(), stack.pop()];
      stack.push(generic(holds(op, compare(a, b)) ? 1 : 0));
      return true;
    }
    default:
      return false;
  }
}

const ARITHMETIC: Readonly<Record<number, Arithmetic>> = {
  [DW_OP.plus]: 'plus',
  [DW_OP.minus]: 'minus',
  [DW_OP.mul]: 'mul',
  [DW_OP.div]: 'div',
  [DW_OP.mod]: 'mod',
};

function holds(op: number, order: -1 | 0 | 1 | 2): boolean {
  switch (op) {
    case DW_OP.eq:
      return order === 0;
    case DW_OP.ne:
      return order !== 0;
    case DW_OP.lt:
      return order === -1;
    case DW_OP.le:
      return order === -1 || order === 0;
    case DW_OP.gt:
      return order === 1;
    default:
      return order === 0 || order === 1;
  }
}
