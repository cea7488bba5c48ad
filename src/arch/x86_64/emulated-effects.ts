import { type Addr, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { bytesOf, noLoad, noMemory, unsignedOf } from '../effects.js';
import type { Effects, EmulatedInstruction } from '../instructions.js';
import { hex, memoryText, operandText } from './disassembly.js';
import type { Encoding, ModRm } from './encoding.js';
import { type ArithmeticOp, conditions, holds, operate } from './flags.js';
import { namesOf, type Operand, type Size, stackAddress, store, valueIn } from './operand.js';
import { name, RSP } from './registers.js';

/** How each kind of instruction is emulated; `resume` says which bytes are which kind. */
export type EmulatedEffects = Omit<EmulatedInstruction, 'length'>;

const moved = (pc: bigint): { name: string; value: bigint } => ({ name: 'rip', value: pc });

/** The only effect: execution goes on at `pc`. */
export function idle(text: string, pc: Addr): EmulatedEffects {
  const effects: Effects = { registers: [moved(pc)], memory: noMemory };
  return { text, reads: [], effects: () => effects };
}

/** The part of an instruction that first reads `source`, if `source` is on the stack. */
function loading(...sources: readonly Operand[]): Pick<EmulatedInstruction, 'load'> {
  const source = sources.find((operand) => operand.kind === 'stack');
  if (source?.kind !== 'stack') return {};
  return {
    load: (registers) => {
      const address = stackAddress(source.memory, registers);
      return address === undefined ? noLoad : { address, length: source.size };
    },
  };
}

export function move(
  op: string,
  to: Operand | undefined,
  from: Operand | undefined,
  next: Addr,
): EmulatedEffects | undefined {
  if (to === undefined || from === undefined) return undefined;
  return {
    text: `${op} ${operandText(to)},${operandText(from)}`,
    reads: [...new Set([...namesOf(from), ...(to.kind === 'register' && to.size >= 4 ? [] : namesOf(to))])],
    ...loading(from),
    effects: (registers, loaded) => {
      if (from.kind === 'stack' && stackAddress(from.memory, registers) === undefined) return undefined;
      const value = valueIn(from, registers, loaded);
      const stored = value === undefined ? undefined : store(to, value, registers);
      return stored && { registers: [...stored.registers, moved(next)], memory: stored.memory };
    },
  };
}

/**
 * cmp and test may read memory, and so may a second operand. An operation that would write memory is left to a step.
 */
export function arithmetic(
  op: ArithmeticOp,
  a: Operand | undefined,
  b: Operand | undefined,
  next: Addr,
): EmulatedEffects | undefined {
  const writes = op !== 'cmp' && op !== 'test';
  if (a === undefined || b === undefined || (writes && a.kind === 'stack')) return undefined;
  return {
    text: `${op} ${operandText(a)},${operandText(b)}`,
    reads: [...new Set([...namesOf(a), ...namesOf(b), 'eflags'])],
    ...loading(a, b),
    effects: (registers, loaded) => {
      const eflags = registers.register('eflags');
      for (const operand of [a, b]) {
        if (operand.kind === 'stack' && stackAddress(operand.memory, registers) === undefined) return undefined;
      }
      const left = valueIn(a, registers, loaded);
      const right = valueIn(b, registers, loaded);
      if (eflags === undefined || left === undefined || right === undefined) return undefined;
      const outcome = operate(op, left, right, 8 * a.size, eflags);
      const stored = writes ? store(a, outcome.result, registers) : undefined;
      if (writes && stored === undefined) return undefined;
      const flags = { name: 'eflags', value: outcome.eflags };
      return { registers: [...(stored?.registers ?? []), flags, moved(next)], memory: noMemory };
    },
  };
}

export function lea({ wide }: Encoding, { reg, rm }: ModRm, next: Addr): EmulatedEffects | undefined {
  if ('register' in rm) return undefined;
  const { base, index, scale, displacement } = rm;
  const size: Size = wide ? 8 : 4;
  const to: Operand = { kind: 'register', number: reg, size };
  const origin = BigInt(displacement) + (base === 'rip' ? next : 0n);
  const term = (registers: RegisterReader, number: number | undefined): bigint | undefined =>
    number === undefined ? 0n : registers.register(name(number));
  const first = base === 'rip' ? undefined : base;
  return {
    text: `lea ${operandText(to)},${memoryText(rm)}`,
    reads: [first, index].filter((number) => number !== undefined).map(name),
    effects: (registers) => {
      const left = term(registers, first);
      const right = term(registers, index);
      if (left === undefined || right === undefined) return undefined;
      const value = BigInt.asUintN(8 * size, origin + left + right * BigInt(scale));
      return { registers: [{ name: name(reg), value }, moved(next)], memory: noMemory };
    },
  };
}

export function branch(condition: number, target: Addr, next: Addr): EmulatedEffects {
  return {
    text: `j${conditions[condition]} ${target.toString(16)}`,
    reads: ['eflags'],
    effects: (registers) => {
      const eflags = registers.register('eflags');
      if (eflags === undefined) return undefined;
      return { registers: [moved(holds(condition, eflags) ? target : next)], memory: noMemory };
    },
  };
}

/** The stack pointer plus `offset`. */
function stackPointer(registers: RegisterReader, offset: bigint): Addr | undefined {
  const sp = registers.register('rsp');
  return sp === undefined ? undefined : addr(sp + offset);
}

const loadTop: NonNullable<EmulatedInstruction['load']> = (registers) => {
  const address = stackPointer(registers, 0n);
  return address === undefined ? noLoad : { address, length: 8 };
};

export function push(number: number, next: Addr): EmulatedEffects {
  return pushed(
    `push ${name(number)}`,
    [...new Set(['rsp', name(number)])],
    (registers) => registers.register(name(number)),
    next,
  );
}

export function call(target: Addr, next: Addr): EmulatedEffects {
  return pushed(`call ${target.toString(16)}`, ['rsp'], () => next, target);
}

function pushed(
  text: string,
  reads: string[],
  valueFrom: (registers: RegisterReader) => bigint | undefined,
  pc: Addr,
): EmulatedEffects {
  return {
    text,
    reads,
    effects: (registers) => {
      const address = stackPointer(registers, -8n);
      const value = valueFrom(registers);
      if (address === undefined || value === undefined) return undefined;
      return {
        registers: [{ name: 'rsp', value: address }, moved(pc)],
        memory: [{ address, bytes: bytesOf(value, 8) }],
      };
    },
  };
}

/** `pop rsp` keeps the loaded value, not the moved pointer. */
export function pop(number: number, next: Addr): EmulatedEffects {
  return {
    text: `pop ${name(number)}`,
    reads: ['rsp'],
    load: loadTop,
    effects: (registers, loaded) => {
      const sp = stackPointer(registers, 8n);
      if (sp === undefined || loaded?.length !== 8) return undefined;
      const popped = { name: name(number), value: unsignedOf(loaded) };
      const list = number === RSP ? [popped] : [{ name: 'rsp', value: sp }, popped];
      return { registers: [...list, moved(next)], memory: noMemory };
    },
  };
}

export function ret(extra: bigint | undefined): EmulatedEffects {
  return {
    text: extra === undefined ? 'ret' : `ret ${hex(extra)}`,
    reads: ['rsp'],
    load: loadTop,
    effects: (registers, loaded) => {
      const sp = stackPointer(registers, 8n + (extra ?? 0n));
      if (sp === undefined || loaded?.length !== 8) return undefined;
      return { registers: [{ name: 'rsp', value: sp }, moved(unsignedOf(loaded))], memory: noMemory };
    },
  };
}

/** `mov rsp,rbp`, then `pop rbp`: by this instruction's purpose rbp is a frame pointer here. */
export function leave(next: Addr): EmulatedEffects {
  const base = (registers: RegisterReader): bigint | undefined => registers.register('rbp');
  return {
    text: 'leave',
    reads: ['rbp'],
    load: (registers) => {
      const address = base(registers);
      return address === undefined ? noLoad : { address: addr(address), length: 8 };
    },
    effects: (registers, loaded) => {
      const address = base(registers);
      if (address === undefined || loaded?.length !== 8) return undefined;
      return {
        registers: [
          { name: 'rsp', value: addr(address + 8n) },
          { name: 'rbp', value: unsignedOf(loaded) },
          moved(next),
        ],
        memory: noMemory,
      };
    },
  };
}
