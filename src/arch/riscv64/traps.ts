// RISC-V Privileged Architecture: stvec, scause ("Supervisor Cause Register"), sepc, stval, sstatus.SPP, SRET; the same
// of machine mode. Arguments of system calls as all kernels have them that follow Linux (man 2 syscall).
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { Trap, TrapEntry, TrapExit, TrapKind, TrapModel, TrapSetter } from '../traps.js';
import { decode } from './decode.js';
import { integerName } from './registers.js';

interface Level {
  readonly vector: number;
  readonly returns: string;
  readonly names: { readonly tvec: string; readonly cause: string; readonly epc: string; readonly tval: string };
  /** The interrupts that have an entry of their own in vectored mode. */
  readonly interrupts: readonly number[];
  readonly status: string;
  isUser(status: bigint): boolean;
}

const supervisor: Level = {
  vector: 0x105,
  returns: 'sret',
  names: { tvec: 'stvec', cause: 'scause', epc: 'sepc', tval: 'stval' },
  interrupts: [1, 5, 9],
  status: 'sstatus',
  isUser: (status) => (status & (1n << 8n)) === 0n,
};

const machine: Level = {
  vector: 0x305,
  returns: 'mret',
  names: { tvec: 'mtvec', cause: 'mcause', epc: 'mepc', tval: 'mtval' },
  interrupts: [1, 3, 5, 7, 9, 11],
  status: 'mstatus',
  isUser: (status) => ((status >> 11n) & 3n) === 0n,
};

const levels = [supervisor, machine];
const INTERRUPT = 1n << 63n;
const SYSTEM = 0x73;
const SRET = 0x1020_0073;
const MRET = 0x3020_0073;

const interrupts: Readonly<Record<number, string>> = {
  ...{ 1: 'supervisor_software', 3: 'machine_software', 5: 'supervisor_timer', 7: 'machine_timer' },
  ...{ 9: 'supervisor_external', 11: 'machine_external', 13: 'counter_overflow' },
};

const exceptions: Readonly<Record<number, readonly [TrapKind, string]>> = {
  0: ['trap', 'instruction_misaligned'],
  1: ['fault', 'instruction_access'],
  2: ['trap', 'illegal_instruction'],
  3: ['trap', 'breakpoint'],
  4: ['trap', 'load_misaligned'],
  5: ['fault', 'load_access'],
  6: ['trap', 'store_misaligned'],
  7: ['fault', 'store_access'],
  9: ['trap', 'call_from_supervisor'],
  11: ['trap', 'call_from_machine'],
  12: ['fault', 'instruction_page'],
  13: ['fault', 'load_page'],
  15: ['fault', 'store_page'],
};
const callFromUser = 8;

export const traps: TrapModel = {
  registers: levels.flatMap(({ names: { cause, epc, tval }, status }) => [cause, epc, tval, status]),
  seek(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    const found: number[] = [];
    for (let offset = 0; offset + 4 <= code.length; offset += 2)
      if ((view.getUint8(offset) & 0x7f) === SYSTEM && isWanted(view.getUint32(offset, true))) found.push(offset);
    return found;
  },
  find(code, start) {
    const setters: TrapSetter[] = [];
    const exits: TrapExit[] = [];
    for (let offset = 0; offset < code.length; ) {
      const instruction = decode(code, offset);
      if (!instruction) break;
      const address = addOffset(start, offset);
      if (instruction.form === 'csr' && instruction.op === 'csrrw') {
        const level = levels.find(({ vector }) => vector === instruction.csr);
        if (level) setters.push(setterAt(address, level, integerName(instruction.source)));
      } else if (instruction.form === 'system') {
        const level = levels.find(({ returns }) => returns === instruction.op);
        if (level) exits.push(exitAt(address, level));
      }
      offset += instruction.length;
    }
    return { setters, exits };
  },
  isExit: (code) => code.length >= 4 && isReturn(new DataView(code.buffer, code.byteOffset).getUint32(0, true)),
  current(registers) {
    return levels.flatMap((level) => {
      const value = registers.register(level.names.tvec);
      return value ? entriesOf(level, value) : [];
    });
  },
  result: 'a0',
};

function isReturn(word: number): boolean {
  return word === SRET || word === MRET;
}

function isWanted(word: number): boolean {
  return isReturn(word) || ((word & 0x7000) === 0x1000 && levels.some(({ vector }) => vector === word >>> 20));
}

function setterAt(address: Addr, level: Level, register: string): TrapSetter {
  return {
    address,
    reads: () => [],
    sets(registers) {
      const value = registers.register(register);
      return value === undefined ? [] : entriesOf(level, value);
    },
  };
}

/** 1:0 mode: 0 direct, 1 vectored: the interrupt with the number N enters 4 N behind the base. */
function entriesOf(level: Level, value: bigint): readonly TrapEntry[] {
  const base = addr(value & ~3n);
  const places = (value & 3n) === 1n ? level.interrupts.map((number) => addOffset(base, 4 * number)) : [];
  return [base, ...places].map((address) => ({
    address,
    reads: () => [],
    trap: (registers) => trapOf(level, registers),
  }));
}

function exitAt(address: Addr, level: Level): TrapExit {
  return { address, reads: () => [], to: (registers) => interrupted(level, registers) };
}

function interrupted({ names, status, isUser }: Level, registers: RegisterReader): Trap['from'] | undefined {
  const [pc, stackPointer, bits] = [names.epc, 'sp', status].map((name) => registers.register(name));
  if (pc === undefined || stackPointer === undefined || bits === undefined) return undefined;
  return { pc: addr(pc), stackPointer, isUser: isUser(bits) };
}

function trapOf(level: Level, registers: RegisterReader): Trap | undefined {
  const cause = registers.register(level.names.cause);
  const from = interrupted(level, registers);
  if (cause === undefined || !from) return undefined;
  const number = Number(cause & ~INTERRUPT & 0xffffn);
  if ((cause & INTERRUPT) !== 0n) return { kind: 'irq', name: interrupts[number] ?? `interrupt_${number}`, from };
  if (number === callFromUser) {
    const values = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5'].map((name) => registers.register(name) ?? 0n);
    return { kind: 'syscall', name: undefined, number: registers.register('a7'), arguments: values, from };
  }
  const [kind, name] = exceptions[number] ?? ['trap', `exception_${number}`];
  return { kind, name, from, ...(kind === 'fault' && { address: registers.register(level.names.tval) }) };
}
