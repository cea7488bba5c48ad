import { type Addr, addOffset, addr } from '../../base/addr.js';
import { littleEndian, littleEndianBytes } from '../../base/little-endian.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { afterLoad, type EmulatedEffects, fromRegisters, isStackAddress, noMemory } from '../effects.js';
import type { Effects, EmulatedInstruction } from '../instructions.js';
import { decode, type Instruction, type Operand } from './decode.js';
import { type ArithmeticOp, conditions, holds, operate } from './flags.js';
import { wholeRegisters } from './registers.js';

/**
 * Emulates an instruction by register and memory writes. Memory is supported only at rsp or rbp. Covered: push, pushfq,
 * pop, mov, movzx, lea, add, sub, and, or, xor, cmp, test, leave, direct jumps, nop and endbr64. All else is left to a
 * single-step, so that no device register is accessed through a debugger's own access. The hit shows whether rbp is a
 * frame pointer: an address outside the stack has no effects, so the caller steps. The decoder must be loaded
 * (`prepare`).
 *
 * `call` and `ret` are stepped, too: a process of Linux may have a shadow stack, which no debugger writes.
 */
export function emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined {
  const instruction = decode(code, pc);
  if (instruction === undefined || !isPlain(instruction, code)) return undefined;
  const { length } = instruction;
  const emulated = emulated64(instruction, addOffset(pc, length));
  return emulated && { length, ...emulated };
}

/** Intel SDM volume 2, 2.1.1: all but REX, which counts directly before the opcode alone. */
const prefixes = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
const isRex = (byte = 0): boolean => byte >> 4 === 4;

/**
 * As the manual has it, and free of prefixes that would change what the opcode does; F3 belongs to endbr64.
 */
function isPlain({ op }: Instruction, code: Uint8Array): boolean {
  const start = code.findIndex((byte) => !prefixes.includes(byte) && !isRex(byte));
  const before = code.subarray(0, isRex(code[start - 1]) ? start - 1 : start);
  const idle = op === 'nop' ? [0x66, 0x2e] : op === 'endbr64' ? [0xf3] : [];
  const [opcode = 0, modrm = 0] = code.subarray(start);
  // Only /0 is test in the manual.
  const isUnknown = (opcode | 1) === 0xf7 && (modrm & 0x38) !== 0;
  return !isUnknown && before.every((byte) => idle.includes(byte));
}

const arithmeticOps: ReadonlySet<string> = new Set<ArithmeticOp>(['add', 'or', 'and', 'sub', 'xor', 'cmp', 'test']);
const isArithmetic = (op: string): op is ArithmeticOp => arithmeticOps.has(op);

function emulated64({ op, operands, flow, target }: Instruction, next: Addr): EmulatedEffects | undefined {
  const [first, second] = operands;
  const to = placeOf(first);
  if (flow === 'branch') return branch(op, target, next);
  if (isArithmetic(op)) return arithmetic(op, to, placeOf(second), next);
  switch (op) {
    case 'nop':
      return idle(next);
    case 'endbr64':
      return fromRegisters([], (_, registers) => (isTracked(registers) ? undefined : goOn(next)));
    case 'jmp':
      return target === undefined ? undefined : idle(target);
    case 'push':
      return to?.kind === 'register' ? pushed(to.name, next) : undefined;
    case 'pushfq':
      // A step sets TF, which would be pushed too: the program's popfq would trap.
      return pushed('eflags', next, unpushed);
    case 'pop':
      return to?.kind === 'register' ? popped(to.name, next) : undefined;
    case 'leave':
      return leave(next);
    case 'mov':
    case 'movabs':
    case 'movzx':
      return move(to, placeOf(second), next);
    case 'lea':
      return to?.kind === 'register' ? addressOf(to, second, next) : undefined;
    default:
      return undefined;
  }
}

/** What an operand stands for: a general register's part, memory of the stack, or a constant. `size` is in bytes. */
type Place =
  | { readonly kind: 'register'; readonly name: string; readonly size: number }
  | { readonly kind: 'stack'; readonly base: 'rsp' | 'rbp'; readonly offset: number; readonly size: number }
  | { readonly kind: 'constant'; readonly value: bigint; readonly size: 8 };

/** Undefined for memory elsewhere, and for registers that are not general ones, or their second bytes. */
function placeOf(operand: Operand | undefined): Place | undefined {
  switch (operand?.kind) {
    case 'register': {
      const name = wholeRegisters.get(operand.name);
      return name === undefined ? undefined : { kind: 'register', name, size: operand.size };
    }
    case 'immediate':
      return { kind: 'constant', value: operand.value, size: 8 };
    case 'memory': {
      const { base, index, displacement: offset, size } = operand;
      const isStack = (base === 'rsp' || base === 'rbp') && index === undefined;
      return isStack ? { kind: 'stack', base, offset, size } : undefined;
    }
    default:
      return undefined;
  }
}

/** Undefined if a register is not known, or if rbp holds no address of the stack. */
function stackAddress({ base, offset }: Place & { kind: 'stack' }, registers: RegisterReader): Addr | undefined {
  const sp = registers.register('rsp');
  const from = registers.register(base);
  if (sp === undefined || from === undefined) return undefined;
  const address = addr(from + BigInt(offset));
  return base === 'rsp' || isStackAddress(address, sp) ? address : undefined;
}

/** The value, unsigned, in `size` bytes; undefined if a register is not known or memory was not read. */
function valueIn(
  place: Place,
  size: number,
  registers: RegisterReader,
  loaded: Uint8Array | undefined,
): bigint | undefined {
  switch (place.kind) {
    case 'constant':
      return BigInt.asUintN(8 * size, place.value);
    case 'register': {
      const value = registers.register(place.name);
      return value === undefined ? undefined : BigInt.asUintN(8 * place.size, value);
    }
    case 'stack':
      if (stackAddress(place, registers) === undefined) return undefined;
      return loaded?.length === place.size ? littleEndian(loaded) : undefined;
  }
}

/** Writes a value of the place's size: 4 bytes clear a register's upper half, 1 and 2 keep the rest of it. */
function store(place: Place, value: bigint, registers: RegisterReader): Effects | undefined {
  if (place.kind === 'constant') return undefined;
  if (place.kind === 'stack') {
    const address = stackAddress(place, registers);
    return address && { registers: [], memory: [{ address, bytes: littleEndianBytes(value, place.size) }] };
  }
  const { name, size } = place;
  if (size >= 4) return { registers: [{ name, value }], memory: noMemory };
  const old = registers.register(name);
  if (old === undefined) return undefined;
  const rest = (old >> BigInt(8 * size)) << BigInt(8 * size);
  return { registers: [{ name, value: rest | value }], memory: noMemory };
}

const moved = (pc: bigint): { name: string; value: bigint } => ({ name: 'rip', value: pc });

const goOn = (pc: Addr): Effects => ({ registers: [moved(pc)], memory: noMemory });

/** The only effect: execution goes on at `pc`. */
function idle(pc: Addr): EmulatedEffects {
  const effects = goOn(pc);
  return { effects: () => effects };
}

/** CR4.CET: where branches are tracked, the processor must see their landing pad. */
function isTracked(registers: RegisterReader): boolean {
  return ((registers.register('cr4') ?? 0n) & (1n << 23n)) !== 0n;
}

/** The part of an instruction that first reads what lies on the stack. */
function loading(...places: readonly Place[]): Pick<EmulatedInstruction, 'load'> {
  const source = places.find((place) => place.kind === 'stack');
  if (source?.kind !== 'stack') return {};
  const placeOf = (registers: RegisterReader): { readonly address: Addr } | undefined => {
    const address = stackAddress(source, registers);
    return address === undefined ? undefined : { address };
  };
  return { load: afterLoad(placeOf, source.size, () => undefined).load };
}

function move(to: Place | undefined, from: Place | undefined, next: Addr): EmulatedEffects | undefined {
  if (to === undefined || from === undefined) return undefined;
  return {
    ...loading(from),
    effects: (registers, loaded) => {
      const value = valueIn(from, to.size, registers, loaded);
      const stored = value === undefined ? undefined : store(to, value, registers);
      return stored && { registers: [...stored.registers, moved(next)], memory: stored.memory };
    },
  };
}

/**
 * cmp and test may read memory, and so may a second operand. An operation that would write memory is left to a step.
 */
function arithmetic(
  op: ArithmeticOp,
  a: Place | undefined,
  b: Place | undefined,
  next: Addr,
): EmulatedEffects | undefined {
  const writes = op !== 'cmp' && op !== 'test';
  if (a === undefined || b === undefined || (writes && a.kind === 'stack')) return undefined;
  return {
    ...loading(a, b),
    effects: (registers, loaded) => {
      const eflags = registers.register('eflags');
      const [left, right] = [a, b].map((place) => valueIn(place, a.size, registers, loaded));
      if (eflags === undefined || left === undefined || right === undefined) return undefined;
      const outcome = operate(op, left, right, 8 * a.size, eflags);
      const stored = writes ? store(a, outcome.result, registers) : undefined;
      if (writes && stored === undefined) return undefined;
      const flags = { name: 'eflags', value: outcome.eflags };
      return { registers: [...(stored?.registers ?? []), flags, moved(next)], memory: noMemory };
    },
  };
}

function addressOf(to: Place & { kind: 'register' }, of: Operand | undefined, next: Addr): EmulatedEffects | undefined {
  if (of?.kind !== 'memory') return undefined;
  const { base, index, scale, displacement } = of;
  const origin = BigInt(displacement) + (base === 'rip' ? next : 0n);
  const term = (registers: RegisterReader, name: string | undefined): bigint | undefined =>
    name === undefined || name === 'rip' ? 0n : registers.register(name);
  return {
    effects: (registers) => {
      const left = term(registers, base);
      const right = term(registers, index);
      if (left === undefined || right === undefined) return undefined;
      const value = BigInt.asUintN(8 * to.size, origin + left + right * BigInt(scale));
      return { registers: [{ name: to.name, value }, moved(next)], memory: noMemory };
    },
  };
}

function branch(op: string, target: Addr | undefined, next: Addr): EmulatedEffects | undefined {
  const condition = conditions.findIndex((name) => op === `j${name}`);
  if (condition < 0 || target === undefined) return undefined;
  return fromRegisters(['eflags'], ([eflags = 0n]) => {
    return { registers: [moved(holds(condition, eflags) ? target : next)], memory: noMemory };
  });
}

/** What lies at the stack pointer. */
function atTop(registers: RegisterReader): { readonly address: Addr } | undefined {
  const sp = registers.register('rsp');
  return sp === undefined ? undefined : { address: addr(sp) };
}

/** RF and VM, which PUSHF clears in the image (Intel SDM volume 2). */
const unpushed = 0x3_0000n;

function pushed(from: string, next: Addr, without = 0n): EmulatedEffects {
  return fromRegisters(['rsp', from], ([sp = 0n, value = 0n]) => {
    const address = addr(sp - 8n);
    const memory = [{ address, bytes: littleEndianBytes(value & ~without, 8) }];
    return { registers: [{ name: 'rsp', value: address }, moved(next)], memory };
  });
}

/** `pop rsp` keeps the loaded value, not the moved pointer. */
function popped(name: string, next: Addr): EmulatedEffects {
  return afterLoad(atTop, 8, (loaded, { address }) => {
    const value = { name, value: littleEndian(loaded) };
    const list = name === 'rsp' ? [value] : [{ name: 'rsp', value: addr(address + 8n) }, value];
    return { registers: [...list, moved(next)], memory: noMemory };
  });
}

/** `mov rsp,rbp`, then `pop rbp`: by this instruction's purpose rbp is a frame pointer here. */
function leave(next: Addr): EmulatedEffects {
  const atBase = (registers: RegisterReader): { readonly address: Addr } | undefined => {
    const value = registers.register('rbp');
    return value === undefined ? undefined : { address: addr(value) };
  };
  return afterLoad(atBase, 8, (loaded, { address }) => {
    const rbp = { name: 'rbp', value: littleEndian(loaded) };
    return { registers: [{ name: 'rsp', value: addr(address + 8n) }, rbp, moved(next)], memory: noMemory };
  });
}
