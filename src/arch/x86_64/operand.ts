import { type Addr, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { bytesOf, isStackAddress, noMemory, unsignedOf } from '../effects.js';
import type { Effects } from '../instructions.js';
import type { Encoding, Memory, ModRm } from './encoding.js';
import { name, RBP, RSP } from './registers.js';

export type Size = 1 | 2 | 4 | 8;

/** An instruction's operand: a register, memory of the stack, or a constant. */
export type Operand =
  | { readonly kind: 'register'; readonly number: number; readonly size: Size }
  | { readonly kind: 'stack'; readonly memory: StackMemory; readonly size: Size }
  | { readonly kind: 'constant'; readonly value: bigint; readonly size: Size };

interface StackMemory extends Memory {
  readonly base: typeof RSP | typeof RBP;
}

/** A register operand; undefined for ah, ch, dh and bh, which are numbers 4 to 7 in byte instructions without REX. */
export function registerOperand(number: number, size: Size, encoding: Encoding): Operand | undefined {
  return size === 1 && !encoding.rex && number > 3 ? undefined : { kind: 'register', number, size };
}

/** The r/m operand; undefined for memory that is not `[rsp + d]` or `[rbp + d]`. */
export function rmOperand(rm: ModRm['rm'], size: Size, encoding: Encoding): Operand | undefined {
  if ('register' in rm) return registerOperand(rm.register, size, encoding);
  const { base, index } = rm;
  if ((base !== RSP && base !== RBP) || index !== undefined) return undefined;
  return { kind: 'stack', memory: { ...rm, base }, size };
}

/** The operand's value, unsigned, in its size; undefined if a register is not known or memory was not read. */
export function valueIn(
  operand: Operand,
  registers: RegisterReader,
  loaded: Uint8Array | undefined,
): bigint | undefined {
  switch (operand.kind) {
    case 'constant':
      return BigInt.asUintN(8 * operand.size, operand.value);
    case 'register': {
      const value = registers.register(name(operand.number));
      return value === undefined ? undefined : BigInt.asUintN(8 * operand.size, value);
    }
    case 'stack':
      return loaded?.length === operand.size ? unsignedOf(loaded) : undefined;
  }
}

/** Writes a value of the operand's size: 4 bytes clear a register's upper half, 1 and 2 keep the rest of it. */
export function store(operand: Operand, value: bigint, registers: RegisterReader): Effects | undefined {
  if (operand.kind === 'constant') return undefined;
  if (operand.kind === 'stack') {
    const address = stackAddress(operand.memory, registers);
    if (address === undefined) return undefined;
    return { registers: [], memory: [{ address, bytes: bytesOf(value, operand.size) }] };
  }
  const register = name(operand.number);
  if (operand.size >= 4) return { registers: [{ name: register, value }], memory: noMemory };
  const old = registers.register(register);
  if (old === undefined) return undefined;
  const rest = (old >> BigInt(8 * operand.size)) << BigInt(8 * operand.size);
  return { registers: [{ name: register, value: rest | value }], memory: noMemory };
}

/** Its address; undefined if a register is not known, or if rbp holds no address of the stack. */
export function stackAddress(memory: StackMemory, registers: RegisterReader): Addr | undefined {
  const sp = registers.register('rsp');
  const base = registers.register(name(memory.base));
  if (sp === undefined || base === undefined) return undefined;
  const address = addr(base + BigInt(memory.displacement));
  return memory.base === RSP || isStackAddress(address, sp) ? address : undefined;
}

/** The registers needed to read or store the operand. */
export function namesOf(operand: Operand): string[] {
  if (operand.kind === 'constant') return [];
  return operand.kind === 'register' ? [name(operand.number)] : ['rsp', name(operand.memory.base)];
}
