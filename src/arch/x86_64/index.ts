import type { CompleteArchitecture } from '../architecture.js';
import { addressSpaces } from './address-space.js';
import { prepare } from './decode.js';
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

/** x86 in 64-bit mode, with the calls and numbers of the System V ABI's AMD64 supplement. */
export const x86_64: CompleteArchitecture = {
  name: 'x86_64',
  elfMachine: 62,
  gdbNames: ['i386:x86-64', 'x86_64', 'x86-64'],
  kernelCommand: ['qemu-system-x86_64', '-nographic', '-no-reboot', '-device', 'isa-debug-exit,iobase=0xf4,iosize=4'],
  pc: 'rip',
  sp: 'rsp',
  generalRegisters,
  dwarfRegister,
  registerDefaults,
  arguments: ['rdi', 'rsi', 'rdx', 'rcx', 'r8', 'r9'],
  results: ['rax', 'rdx'],
  returnAddress: { in: 'stack', offset: 0 },
  stackPointerAfterReturn: (atEntry) => BigInt.asUintN(64, atEntry + 8n),
  aggregates: { maySplit: false, large: 'on-stack' },
  // Nothing in an ELF says which of them a kernel uses.
  floats: ({ isProcess }) =>
    isProcess
      ? { arguments: floatArguments, results: ['xmm0', 'xmm1'], widest: 8, overflow: 'stack', structs: 'by-word' }
      : undefined,
  irregularFunctions: [
    { name: /^__x86_(indirect|return)_thunk/, reason: 'a thunk: jumped to in place of a return or a jump' },
  ],
  codeAlignment: 1,
  breakpointKind: () => 1,
  // int3.
  isBreakpoint: (code) => code[0] === 0xcc,
  // hlt; mwait.
  waits: ([a, b, c]) => a === 0xf4 || (a === 0x0f && b === 0x01 && c === 0xc9),
  emulate,
  // Intel SDM volume 3, 18.2.4.
  watchStops: 'after',
  prepare,
  frames,
  codeFlow,
  references,
  clocks: [
    { kind: 'hpet', label: 'x86-hpet' },
    { kind: 'acpi-pm', label: 'x86-acpi-pm' },
  ],
  privilege,
  // EM and TS.
  floatUnit: { register: 'cr0', isOff: (value) => (value & 0x0cn) !== 0n },
  addressSpaces,
  probeCode,
  qemuMachines: ['pc'],
  reset,
  powerOff,
  systemRegisters,
  linux,
};
