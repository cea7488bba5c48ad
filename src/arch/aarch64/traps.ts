// Arm Architecture Reference Manual for A-profile, D1.3 "Exceptions": VBAR_EL1 and the table behind it, ESR_EL1,
// ELR_EL1, FAR_EL1, SPSR_EL1, those of EL2, ERET. Arguments of system calls as Linux has them (man 2 syscall).
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Trap, TrapEntry, TrapExit, TrapKind, TrapModel, TrapSetter } from '../traps.js';
import { levelOf, ofEachLevel, regimeOf } from './privilege.js';

/** `msr vbar_el1, x0`; with one bit more `msr vbar_el2, x0`. */
const SETS = 0xd518_c000;
const OF_EL2 = 0x4_0000;
const ERET = 0xd69f_03e0;
const bytesOfEntry = 0x80;
/** Of four each: from this level with SP_EL0, with its own stack pointer, from a lower one in AArch64, in AArch32. */
const causes = ['synchronous', 'irq', 'fiq', 'serror'] as const;

/** ESR_EL1 31:26. */
const classes: Readonly<Record<number, readonly [TrapKind, string]>> = {
  0: ['trap', 'unknown_instruction'],
  7: ['trap', 'floating_point_off'],
  14: ['trap', 'illegal_state'],
  22: ['trap', 'hvc'],
  23: ['trap', 'smc'],
  24: ['trap', 'system_register'],
  32: ['fault', 'instruction_abort'],
  33: ['fault', 'instruction_abort'],
  34: ['trap', 'pc_misaligned'],
  36: ['fault', 'data_abort'],
  37: ['fault', 'data_abort'],
  38: ['trap', 'sp_misaligned'],
  44: ['trap', 'floating_point'],
  48: ['trap', 'breakpoint'],
  49: ['trap', 'breakpoint'],
  60: ['trap', 'brk'],
};
const call = 21;

export const traps: TrapModel = {
  registers: [...ofEachLevel('ESR_EL1', 'ELR_EL1', 'FAR_EL1', 'SPSR_EL1'), 'SP_EL0', 'SP_EL1'],
  seek(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let offset = 0; offset + 4 <= code.length; offset += 4) {
      const word = view.getUint32(offset, true);
      if (word === ERET || isSetter(word)) found.push(offset);
    }
    return found;
  },
  find(code, start) {
    const setters: TrapSetter[] = [];
    const exits: TrapExit[] = [];
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    for (let offset = 0; offset + 4 <= code.length; offset += 4) {
      const word = view.getUint32(offset, true);
      const address = addOffset(start, offset);
      if (isSetter(word)) setters.push(setterAt(address, `x${word & 0x1f}`));
      else if (word === ERET) exits.push({ address, reads: () => [], to: interrupted });
    }
    return { setters, exits };
  },
  isExit: (code) => code.length >= 4 && new DataView(code.buffer, code.byteOffset).getUint32(0, true) === ERET,
  current(registers) {
    const base = regimeOf(registers).register('VBAR_EL1');
    return base ? entriesOf(base) : [];
  },
  result: 'x0',
};

function isSetter(word: number): boolean {
  return (word & ~0x1f & ~OF_EL2) >>> 0 === SETS;
}

function setterAt(address: Addr, register: string): TrapSetter {
  return {
    address,
    reads: () => [],
    sets(registers) {
      const base = registers.register(register);
      return base === undefined ? [] : entriesOf(base);
    },
  };
}

function entriesOf(base: bigint): readonly TrapEntry[] {
  return Array.from({ length: 16 }, (_, index) => ({
    address: addOffset(addr(base), index * bytesOfEntry),
    reads: () => [],
    trap: (registers) => trapOf(causes[index % 4] as (typeof causes)[number], registers),
  }));
}

/**
 * A kernel that has no programs of AArch32 has no valid state there: it is taken for the user's. So is what a
 * hypervisor's guest runs.
 */
function interrupted(registers: RegisterReader): Trap['from'] | undefined {
  const regime = regimeOf(registers);
  const [pc, status] = ['ELR_EL1', 'SPSR_EL1'].map((name) => regime.register(name));
  if (pc === undefined || status === undefined) return undefined;
  const from = levelOf(status) ?? 0;
  const isUser = from < (regime.level ?? 1);
  const stackPointer = registers.register(isUser ? `SP_EL${from}` : 'sp');
  return stackPointer === undefined ? undefined : { pc: addr(pc), stackPointer, isUser };
}

function trapOf(cause: (typeof causes)[number], registers: RegisterReader): Trap | undefined {
  const from = interrupted(registers);
  const regime = regimeOf(registers);
  const syndrome = regime.register('ESR_EL1');
  if (!from || syndrome === undefined) return undefined;
  if (cause === 'irq' || cause === 'fiq') return { kind: 'irq', name: cause, from };
  if (cause === 'serror') return { kind: 'trap', name: cause, from };
  const number = Number((syndrome >> 26n) & 0x3fn);
  if (number === call) {
    const values = ['x0', 'x1', 'x2', 'x3', 'x4', 'x5'].map((name) => registers.register(name) ?? 0n);
    return { kind: 'syscall', name: undefined, number: registers.register('x8'), arguments: values, from };
  }
  const [kind, name] = classes[number] ?? ['trap', `class_${number}`];
  return { kind, name, from, ...(kind === 'fault' && { address: regime.register('FAR_EL1') }) };
}
