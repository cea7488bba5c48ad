import type { CompleteArchitecture } from '../architecture.js';
import { memoryAccess } from './access.js';
import { addressSpaces } from './address-space.js';
import { clocks } from './clocks.js';
import { lengthOf } from './decode.js';
import { emulate } from './emulate.js';
import { codeFlow } from './flow.js';
import { linux } from './linux.js';
import { powerOff } from './power-off.js';
import { privilege } from './privilege.js';
import { frames } from './prologue.js';
import { references } from './references.js';
import { dwarfRegister, floatArguments, generalRegisters, registerDefaults } from './registers.js';
import { reset } from './reset.js';
import { systemRegisters } from './system-registers.js';
import { probeCode } from './trampoline.js';

/** Of e_flags: 0 soft, 2 single, 4 double, 6 quad. */
const EF_FLOAT_ABI = 0x6;

/** 64-bit RISC-V, little-endian, with the calls and numbers of the RISC-V ELF psABI. */
export const riscv64: CompleteArchitecture = {
  name: 'riscv64',
  elfMachine: 243,
  gdbNames: ['riscv:rv64', 'riscv64'],
  kernelCommand: ['qemu-system-riscv64', '-M', 'virt', '-nographic'],
  pc: 'pc',
  sp: 'sp',
  generalRegisters,
  dwarfRegister,
  registerDefaults,
  arguments: ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'],
  results: ['a0', 'a1'],
  returnAddress: { in: 'register', name: 'ra' },
  stackPointerAfterReturn: (atEntry) => atEntry,
  aggregates: { maySplit: true, large: 'by-address' },
  floats: ({ flags }) => ({
    arguments: floatArguments,
    results: ['fa0', 'fa1'],
    widest: [0, 4, 8, 8][(flags & EF_FLOAT_ABI) >> 1] ?? 0,
    overflow: 'integer-registers',
    structs: 'by-member',
  }),
  irregularFunctions: [
    { name: /^__riscv_(save|restore)_\d+$/, reason: 'part of a prologue: called with another return register' },
  ],
  codeAlignment: 2,
  breakpointKind: (code) => (lengthOf(code[0] ?? 0xff) === 2 ? 2 : 4),
  // c.ebreak, ebreak.
  isBreakpoint: ([a, b, c, d]) => (a === 0x02 && b === 0x90) || (a === 0x73 && b === 0x00 && c === 0x10 && d === 0x00),
  // wfi.
  waits: ([a, b, c, d]) => a === 0x73 && b === 0x00 && c === 0x50 && d === 0x10,
  emulate,
  // Debug Specification: `mcontrol.timing` is 0, as debuggers set it.
  watchStops: 'before',
  memoryAccess,
  prepare: async () => {},
  frames,
  codeFlow,
  references,
  clocks,
  privilege,
  // FS, bits 13 and 14.
  floatUnit: { register: 'sstatus', isOff: (value) => (value & 0x6000n) === 0n },
  addressSpaces,
  probeCode,
  qemuMachines: ['virt'],
  reset,
  powerOff,
  systemRegisters,
  linux,
};
