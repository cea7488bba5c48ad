import type { Architecture } from '../architecture.js';
import { memoryAccess } from './access.js';
import { addressSpaces } from './address-space.js';
import { lengthOf } from './decode.js';
import { emulate } from './emulate.js';
import { belowFirmware } from './firmware.js';
import { injectedCall } from './injected-call.js';
import { frames } from './prologue.js';
import { dwarfRegister } from './registers.js';
import { probeCode } from './trampoline.js';

/** 64-bit RISC-V, little-endian, as the RISC-V ELF psABI calls and numbers things. */
export const riscv64: Architecture = {
  name: 'riscv64',
  elfMachine: 243,
  gdbNames: ['riscv:rv64', 'riscv64'],
  pc: 'pc',
  sp: 'sp',
  trapRegisters: ['sepc', 'mepc'],
  watchStops: 'before',
  arguments: ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'],
  results: ['a0', 'a1'],
  returnAddress: { in: 'register', name: 'ra' },
  dwarfRegister,
  breakpointKind: (code) => (lengthOf(code[0] ?? 0xff) === 2 ? 2 : 4),
  isBreakpoint: ([a, b, c, d]) => (a === 0x02 && b === 0x90) || (a === 0x73 && b === 0x00 && c === 0x10 && d === 0x00),
  stackPointerAfterReturn: (atEntry) => atEntry,
  emulate,
  memoryAccess,
  frames,
  probeCode,
  injectedCall,
  addressSpaces,
  belowFirmware,
  prepare: async () => {},
};
