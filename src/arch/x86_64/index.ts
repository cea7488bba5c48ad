import type { Architecture } from '../architecture.js';
import { addressSpaces } from './address-space.js';
import { prepare } from './decode.js';
import { emulate } from './emulate.js';
import { injectedCall } from './injected-call.js';
import { frames } from './prologue.js';
import { dwarfRegister } from './registers.js';
import { probeCode } from './trampoline.js';

/** x86 in 64-bit mode, as the System V ABI's AMD64 supplement calls and numbers things. */
export const x86_64: Architecture = {
  name: 'x86_64',
  elfMachine: 62,
  gdbNames: ['i386:x86-64', 'x86_64', 'x86-64'],
  pc: 'rip',
  sp: 'rsp',
  trapRegisters: [],
  watchStops: 'after',
  arguments: ['rdi', 'rsi', 'rdx', 'rcx', 'r8', 'r9'],
  results: ['rax', 'rdx'],
  returnAddress: { in: 'stack', offset: 0 },
  dwarfRegister,
  breakpointKind: () => 1,
  isBreakpoint: (code) => code[0] === 0xcc,
  stackPointerAfterReturn: (atEntry) => BigInt.asUintN(64, atEntry + 8n),
  emulate,
  frames,
  probeCode,
  injectedCall,
  addressSpaces,
  prepare,
};
