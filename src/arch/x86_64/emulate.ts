import { type Addr, addOffset } from '../../base/addr.js';
import type { EmulatedInstruction } from '../instructions.js';
import {
  arithmetic,
  branch,
  call,
  type EmulatedEffects,
  idle,
  lea,
  leave,
  move,
  pop,
  push,
  ret,
} from './emulated-effects.js';
import { type Encoding, type ModRm, parse } from './encoding.js';
import type { ArithmeticOp } from './flags.js';
import { type Operand, registerOperand, rmOperand, type Size } from './operand.js';

/**
 * Emulates an instruction by register and memory writes, from its bytes alone. Memory is supported only at rsp or
 * rbp. Covered: push, pop, mov, movzx, lea, add, sub, and, or, xor, cmp, test, call, ret, leave, direct jumps, nop
 * and endbr64. All else is left to a single-step, so that no device register is accessed through a debugger's own
 * access. The hit shows whether rbp is a frame pointer: an address outside the stack has no effects, so the caller
 * steps.
 *
 * With control-flow enforcement switched on, `call`, `ret` and `endbr64` also change a shadow stack and a tracker
 * that no debugger writes. A client must step there instead. No emulator has that enforcement; Linux may.
 */
export function emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined {
  const encoding = parse(code);
  if (encoding === undefined) return undefined;
  const next = addOffset(pc, encoding.length);
  const carried = isNop(encoding) ? idle('nop', next) : plain(encoding) ? carry(encoding, next) : undefined;
  return carried && { length: encoding.length, ...carried };
}

/** 90 and 0F 1F /0 with any prefixes but F3 (pause); REX turns 90 into an exchange. */
function isNop({ opcode, repeat, rex, modrm }: Encoding): boolean {
  return !repeat && ((opcode === 0x90 && !rex) || (opcode === 0x0f1f && modrm !== undefined && (modrm.reg & 7) === 0));
}

/** Free of prefixes that would change what the opcode does; F3 belongs to endbr64 and to `repz ret`. */
function plain({ operand16, segment, repeat, opcode }: Encoding): boolean {
  return !operand16 && !segment && (!repeat || opcode === 0xc3 || opcode === 0x0f1e);
}

function carry(encoding: Encoding, next: Addr): EmulatedEffects | undefined {
  const { opcode, modrm, wide, extension, immediate } = encoding;
  const size: Size = wide ? 8 : 4;
  const inOpcode = (opcode & 7) | extension;
  const target = addOffset(next, immediate);
  if (opcode < 0x40) return carryArithmeticGroup(encoding, next);
  if (opcode >= 0x50 && opcode <= 0x57) return push(inOpcode, next);
  if (opcode >= 0x58 && opcode <= 0x5f) return pop(inOpcode, next);
  if (opcode >= 0xb8 && opcode <= 0xbf) {
    const to: Operand = { kind: 'register', number: inOpcode, size };
    return move(wide ? 'movabs' : 'mov', to, { kind: 'constant', value: immediate, size }, next);
  }
  if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0x0f80 && opcode <= 0x0f8f))
    return branch(opcode & 15, target, next);
  switch (opcode) {
    case 0xa8:
    case 0xa9: {
      const width: Size = opcode === 0xa8 ? 1 : size;
      const accumulator: Operand = { kind: 'register', number: 0, size: width };
      return arithmetic('test', accumulator, { kind: 'constant', value: immediate, size: width }, next);
    }
    case 0xc2:
    case 0xc3:
      return ret(opcode === 0xc2 ? BigInt.asUintN(16, immediate) : undefined);
    case 0xc9:
      return leave(next);
    case 0xe8:
      return call(target, next);
    case 0xe9:
    case 0xeb:
      return idle(`jmp ${target.toString(16)}`, target);
    default:
      return modrm === undefined ? undefined : carryModRm(encoding, modrm, next);
  }
}

const groupOps: readonly (ArithmeticOp | undefined)[] = ['add', 'or', undefined, undefined, 'and', 'sub', 'xor', 'cmp'];

/** Opcodes 00 to 3F: bits 5:3 tell the operation; bit 0 the width, bits 2:1 the operands. */
function carryArithmeticGroup(encoding: Encoding, next: Addr): EmulatedEffects | undefined {
  const { opcode, modrm, immediate } = encoding;
  const op = groupOps[(opcode >> 3) & 7];
  const size = widthOf(encoding);
  if (op === undefined) return undefined;
  if (modrm === undefined) {
    const accumulator: Operand = { kind: 'register', number: 0, size };
    return arithmetic(op, accumulator, { kind: 'constant', value: immediate, size }, next);
  }
  const rm = rmOperand(modrm.rm, size, encoding);
  const register = registerOperand(modrm.reg, size, encoding);
  return (opcode & 2) === 0 ? arithmetic(op, rm, register, next) : arithmetic(op, register, rm, next);
}

/** Most opcodes come in pairs: the even one on bytes, the odd one on the operand size. */
function widthOf({ opcode, wide }: Encoding): Size {
  return (opcode & 1) === 0 ? 1 : wide ? 8 : 4;
}

function carryModRm(encoding: Encoding, modrm: ModRm, next: Addr): EmulatedEffects | undefined {
  const { opcode, immediate, wide } = encoding;
  const size = widthOf(encoding);
  const rm = rmOperand(modrm.rm, size, encoding);
  const register = registerOperand(modrm.reg, size, encoding);
  const constant: Operand = { kind: 'constant', value: immediate, size };
  switch (opcode) {
    case 0x80:
    case 0x81:
    case 0x83: {
      const op = groupOps[modrm.reg & 7];
      return op && arithmetic(op, rm, constant, next);
    }
    case 0x84:
    case 0x85:
      return arithmetic('test', rm, register, next);
    case 0x88:
    case 0x89:
      return move('mov', rm, register, next);
    case 0x8a:
    case 0x8b:
      return move('mov', register, rm, next);
    case 0x8d:
      return lea(encoding, modrm, next);
    case 0xc7:
      return (modrm.reg & 7) === 0 ? move('mov', rm, constant, next) : undefined;
    case 0x0f1e:
      return encoding.repeat && isEndbr64(modrm) ? idle('endbr64', next) : undefined;
    case 0x0fb6:
    case 0x0fb7: {
      const from = rmOperand(modrm.rm, opcode === 0x0fb6 ? 1 : 2, encoding);
      const to: Operand = { kind: 'register', number: modrm.reg, size: wide ? 8 : 4 };
      return move('movzx', to, from, next);
    }
    default:
      return undefined;
  }
}

function isEndbr64({ reg, rm }: ModRm): boolean {
  return reg === 7 && 'register' in rm && rm.register === 2;
}
