import { type Addr, addOffset, addr } from '../../base/addr.js';
import { littleEndian, littleEndianBytes } from '../../base/little-endian.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { afterLoad, type EmulatedEffects, fromRegisters, isStackAddress, noMemory } from '../effects.js';
import type { Effects, EmulatedInstruction, MemoryAccess } from '../instructions.js';
import { decode, type Instruction, type Shift, type Test } from './decode.js';
import type { Memory } from './decode-memory.js';
import { FP, LR, nameOf, SP, ZR } from './registers.js';

// Arm Architecture Reference Manual for A-profile (DDI 0487), J1.3 "Shared pseudocode": AddWithCarry, ShiftReg,
// ExtendReg, ConditionHolds.
/** NZCV in the lowest four bits. */
type Flags = number;

function shifted(value: bigint, shift: Shift, amount: number, wide: boolean): bigint {
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
function extended(value: bigint, option: number, amount: number): bigint {
  const bits = 8 << (option & 3);
  const part = (option & 4) === 0 ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value);
  return BigInt.asUintN(64, part << BigInt(amount));
}

/** a + b, or a - b as a + ~b + 1. */
function added(
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
function signs(value: bigint, bits: number): Flags {
  return (value >> BigInt(bits - 1) === 1n ? 8 : 0) | (value === 0n ? 4 : 0);
}

function holds(condition: number, flags: Flags): boolean {
  const [n, z, c, v] = [(flags & 8) !== 0, (flags & 4) !== 0, (flags & 2) !== 0, (flags & 1) !== 0];
  const base = [z, c, n, v, c && !z, n === v, n === v && !z, true][condition >> 1] as boolean;
  return (condition & 1) === 1 && condition !== 15 ? !base : base;
}

/**
 * Emulates an instruction by register and memory writes. Covered: addition, logic, moves, addresses, jumps and
 * branches, and loads and stores of the stack. Left to a single-step: the rest, and accesses by registers other than
 * sp and x29, because a device register must not be accessed with another width or twice. A bti is stepped, too: what
 * it checks is in PSTATE.
 */
export function emulate(code: Uint8Array, pc: Addr): EmulatedInstruction | undefined {
  const instruction = decode(code);
  const carried = instruction && carry(instruction, pc);
  return carried && { length: 4, ...carried };
}

type Form<F extends Instruction['form']> = Extract<Instruction, { form: F }>;

function carry(instruction: Instruction, pc: Addr): EmulatedEffects | undefined {
  const next = addOffset(pc, 4);
  switch (instruction.form) {
    case 'add-immediate': {
      const { imm, rn, op } = instruction;
      return from([stack(rn)], ([a = 0n]) => arithmetic(instruction, a, BigInt(imm), op, next));
    }
    case 'add': {
      const { rn, rm, shift, amount, wide, op } = instruction;
      return from([rn, rm], ([a = 0n, b = 0n]) =>
        arithmetic(instruction, a, shifted(b, shift, amount, wide), op, next),
      );
    }
    case 'add-extended': {
      const { rn, rm, option, amount, op } = instruction;
      return from([stack(rn), rm], ([a = 0n, b = 0n]) =>
        arithmetic(instruction, a, extended(b, option, amount), op, next),
      );
    }
    case 'logical': {
      const { rn, rm, shift, amount, wide, invert } = instruction;
      return from([rn, rm], ([a = 0n, b = 0n]) => {
        const second = shifted(b, shift, amount, wide);
        return logical(instruction, a, invert ? ~second : second, next);
      });
    }
    case 'logical-immediate':
      return from([instruction.rn], ([a = 0n]) => logical(instruction, a, instruction.imm, next));
    case 'move-wide':
      return from([instruction.rd], ([old = 0n]) => write(instruction.rd, moved(instruction, old), next));
    case 'address': {
      const base = instruction.isPage ? addr(pc & ~0xfffn) : pc;
      return from([], () => write(instruction.rd, addOffset(base, instruction.imm), next));
    }
    case 'jump': {
      const target = addOffset(pc, instruction.imm);
      return from([], () => write(instruction.link ? LR : ZR, next, target));
    }
    case 'jump-register': {
      const { op, rn, isSigned } = instruction;
      return isSigned ? undefined : from([rn], ([to = 0n]) => write(op === 'blr' ? LR : ZR, next, to));
    }
    case 'branch':
      return branch(instruction.test, addOffset(pc, instruction.imm), next);
    case 'memory':
      return access(instruction, next);
    case 'hint':
      // nop.
      return instruction.imm === 0 ? from([], () => write(ZR, 0n, next)) : undefined;
    default:
      return undefined;
  }
}

/** sp among the sources of {@link from}, where 31 is xzr. */
const stackSource = 32;

function stack(number: number): number {
  return number === SP ? stackSource : number;
}

/** Effects that follow from source registers. */
function from(sources: readonly number[], effects: (values: readonly bigint[]) => Effects): EmulatedEffects {
  const names = sources.map((source) => (source === stackSource ? nameOf(SP) : named(source)));
  return fromRegisters(names, (values, registers) => flagged(effects(values), registers));
}

/** Undefined for xzr. */
function named(number: number): string | undefined {
  return number === ZR ? undefined : nameOf(number);
}

/** Where 31 is xzr. */
function write(rd: number, value: bigint, pc: bigint): Effects {
  return { registers: rd === ZR ? [{ name: 'pc', value: pc }] : set(rd, value, pc), memory: noMemory };
}

function set(rd: number, value: bigint, pc: bigint): Effects['registers'] {
  return [
    { name: nameOf(rd), value },
    { name: 'pc', value: pc },
  ];
}

type Result = Effects & { readonly flags?: number };

/** New condition flags become a write of cpsr; undefined if it is not known. */
function flagged(effects: Result, registers: RegisterReader): Effects | undefined {
  if (effects.flags === undefined) return effects;
  const cpsr = registers.register('cpsr');
  if (cpsr === undefined) return undefined;
  const value = (cpsr & 0x0fff_ffffn) | (BigInt(effects.flags) << 28n);
  return { registers: [...effects.registers, { name: 'cpsr', value }], memory: effects.memory };
}

type Computed = { readonly form: string; readonly rd: number; readonly flags: boolean; readonly wide: boolean };

function arithmetic(instruction: Computed, a: bigint, b: bigint, op: 'add' | 'sub', next: Addr): Result {
  const { form, rd, flags, wide } = instruction;
  const sum = added(a, b, op, wide);
  if (flags) return { ...write(rd, sum.value, next), flags: sum.flags };
  return form === 'add' ? write(rd, sum.value, next) : { registers: set(rd, sum.value, next), memory: noMemory };
}

function logical(instruction: Form<'logical' | 'logical-immediate'>, a: bigint, b: bigint, next: Addr): Result {
  const { form, op, rd, flags, wide } = instruction;
  const bits = wide ? 64 : 32;
  const value = BigInt.asUintN(bits, op === 'and' ? a & b : op === 'orr' ? a | b : a ^ b);
  if (flags) return { ...write(rd, value, next), flags: signs(value, bits) };
  return form === 'logical' ? write(rd, value, next) : { registers: set(rd, value, next), memory: noMemory };
}

function moved({ op, imm, shift, wide }: Form<'move-wide'>, old: bigint): bigint {
  const part = BigInt(imm) << BigInt(shift);
  const value = op === 'movk' ? (old & ~(0xffffn << BigInt(shift))) | part : op === 'movn' ? ~part : part;
  return BigInt.asUintN(wide ? 64 : 32, value);
}

function branch(test: Test, target: Addr, next: Addr): EmulatedEffects {
  if (test.kind === 'condition') {
    return fromRegisters(['cpsr'], ([cpsr = 0n]) =>
      write(ZR, 0n, holds(test.condition, Number((cpsr >> 28n) & 15n)) ? target : next),
    );
  }
  return from([test.rt], ([value = 0n]) => write(ZR, 0n, isTaken(test, value) ? target : next));
}

function isTaken(test: Exclude<Test, { kind: 'condition' }>, value: bigint): boolean {
  if (test.kind === 'bit') return (((value >> BigInt(test.bit)) & 1n) === 1n) === test.is;
  return (BigInt.asUintN(test.wide ? 64 : 32, value) === 0n) === test.is;
}

/** Where an access by sp or x29 goes, and what it leaves in that register; undefined if that is not on the stack. */
function placed({ rn, offset, mode }: Memory, registers: RegisterReader) {
  const [sp, base] = [registers.register(nameOf(SP)), registers.register(nameOf(rn ?? SP))];
  if (sp === undefined || base === undefined || offset === undefined || rn === undefined) return undefined;
  const moved = addr(BigInt.asUintN(64, base + BigInt(offset)));
  const address = mode === 'post' ? addr(base) : moved;
  if (rn !== SP && !isStackAddress(address, sp)) return undefined;
  return { address, after: mode === 'offset' ? [] : [{ name: nameOf(rn), value: moved }] };
}

/** Loads and stores of one or two general registers on the stack. */
function access(memory: Memory, next: Addr): EmulatedEffects | undefined {
  const { rn, rt, rt2, size, signed, isVector, offset, exclusive, status, rm, tags } = memory;
  const isPlain = !isVector && !tags && exclusive === undefined && status === undefined && rm === undefined && size > 0;
  if (!isPlain || (rn !== SP && rn !== FP) || offset === undefined) return undefined;
  const targets = rt2 === undefined ? [rt] : [rt, rt2];
  const moved = { name: 'pc', value: next };
  if (memory.access === 'store') {
    return fromRegisters(targets.map(named), (values, registers) => {
      const place = placed(memory, registers);
      const bytes = Uint8Array.from(values.flatMap((value) => [...littleEndianBytes(value, size)]));
      return place && { registers: [...place.after, moved], memory: [{ address: place.address, bytes }] };
    });
  }
  if (memory.access !== 'load') return undefined;
  return afterLoad(
    (registers) => placed(memory, registers),
    size * targets.length,
    (loaded, { after }) => {
      const written = targets.flatMap((target, index) => {
        const value = littleEndian(loaded.subarray(index * size, (index + 1) * size));
        const whole = signed === undefined ? value : BigInt.asUintN(8 * signed, BigInt.asIntN(8 * size, value));
        return target === ZR ? [] : [{ name: nameOf(target), value: whole }];
      });
      return { registers: [...written, ...after, moved], memory: noMemory };
    },
  );
}

/** What watchpoints see. Undefined for any other instruction, and if a register that it needs is not known. */
export function memoryAccess(code: Uint8Array, registers: RegisterReader): MemoryAccess | undefined {
  const memory = decode(code);
  if (memory?.form !== 'memory' || memory.access === 'prefetch' || memory.rn === undefined) return undefined;
  const base = registers.register(nameOf(memory.rn));
  if (base === undefined || memory.size === 0) return undefined;
  const offset = memory.mode === 'post' ? 0n : indexed(memory, registers);
  if (offset === undefined) return undefined;
  return {
    address: addr(BigInt.asUintN(64, base + offset)),
    length: memory.size * (memory.rt2 === undefined ? 1 : 2),
    reads: memory.access !== 'store',
    writes: memory.access !== 'load',
  };
}

function indexed({ offset, rm, word, size }: Form<'memory'>, registers: RegisterReader): bigint | undefined {
  if (offset !== undefined) return BigInt(offset);
  const index = rm === undefined ? undefined : rm === ZR ? 0n : registers.register(nameOf(rm));
  // Option in bits 15:13; bit 12: shifted by the size.
  const shift = ((word >>> 12) & 1) === 1 ? Math.log2(size) : 0;
  return index === undefined ? undefined : extended(index, (word >>> 13) & 7, shift);
}
