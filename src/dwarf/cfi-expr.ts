// Expressions of call frame information: DWARF 5, section 6.4.2, "the following restrictions apply": no calls, no
// objects, no CFA, no addresses by index. What remains is the stack operations, registers and memory.
//
// Steps and stack are bounded.
import { type Addr, addr } from '../base/addr.js';
import { ByteReader } from '../base/byte-reader.js';
import { operate, ValueStack } from './expr-stack.js';
import { badExpression, generic } from './expr-values.js';
import { DW_OP } from './op-codes.js';

const MAX_STEPS = 10_000;

/** Where an expression's operands come from; undefined ends the evaluation. */
export interface CfiOperands {
  register(number: number): bigint | undefined;
  /** `size` bytes, 1 to 8, as a little-endian number. */
  memory(address: Addr, size: number): bigint | undefined;
}

/** The value that is left on top, or undefined if an operand is not available. Throws `DWARF_DAMAGED`. */
export function evaluateCfi(
  expression: Uint8Array,
  initial: bigint | undefined,
  operands: CfiOperands,
): bigint | undefined {
  const r = new ByteReader(expression, 'a DWARF expression');
  const stack = new ValueStack();
  if (initial !== undefined) stack.push(generic(initial));
  const pushRegister = (number: number): boolean => {
    const offset = r.sleb64();
    const value = operands.register(number);
    if (value !== undefined) stack.push(generic(value + offset));
    return value !== undefined;
  };
  for (let steps = 0; r.remaining > 0; steps++) {
    if (steps >= MAX_STEPS) throw badExpression(`it does not end within ${MAX_STEPS} steps`);
    const op = r.u8();
    if (operate(stack, op, r)) continue;
    if (op >= DW_OP.breg0 && op <= DW_OP.breg31) {
      if (!pushRegister(op - DW_OP.breg0)) return undefined;
      continue;
    }
    switch (op) {
      case DW_OP.bregx:
        if (!pushRegister(r.uleb())) return undefined;
        break;
      case DW_OP.addr:
        stack.push(generic(r.u64()));
        break;
      case DW_OP.deref:
      case DW_OP.deref_size: {
        const size = op === DW_OP.deref ? 8 : r.u8();
        if (size < 1 || size > 8) throw badExpression(`it reads ${size} bytes at once`);
        const value = operands.memory(addr(stack.pop().bits), size);
        if (value === undefined) return undefined;
        stack.push(generic(value));
        break;
      }
      case DW_OP.skip:
      case DW_OP.bra: {
        const delta = (r.u16() << 16) >> 16;
        if (op === DW_OP.bra && stack.pop().bits === 0n) break;
        const target = r.offset + delta;
        if (target < 0 || target > r.end) throw badExpression('it jumps out of itself');
        r.offset = target;
        break;
      }
      case DW_OP.nop:
        break;
      default:
        throw badExpression(`it holds the operation 0x${op.toString(16)}, which call frame information may not use`);
    }
  }
  return stack.pop().bits;
}
