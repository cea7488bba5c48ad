import { addr } from '../../base/addr.js';
import type { CompleteArchitecture } from '../architecture.js';
import type { ResetModel } from '../machine.js';
import type { PrivilegeModel } from '../privilege.js';
import { addressSpaces } from './address-space.js';
import { powerOff, prepare } from './decode.js';
import { emulate } from './emulate.js';
import { codeFlow } from './flow.js';
import { linux } from './linux.js';
import { frames } from './prologue.js';
import { references } from './references.js';
import { dwarfRegister, floatArguments, generalRegisters, registerDefaults } from './registers.js';
import { systemRegisters } from './system-registers.js';
import { probeCode } from './trampoline.js';
import { traps } from './traps.js';

const vector = addr(0xffff_fff0);
const ip = addr(0xfff0);

/**
 * ffff:fff0, with cs's base at ffff0000 (Intel SDM volume 3, 10.1.4). The other processors are there too, and wait.
 * SeaBIOS resets the machine when it finds its own marks of an earlier run (src/resume.c).
 */
const reset: ResetModel = {
  vectorAt(pc) {
    if (pc !== ip && pc !== vector) return undefined;
    return { breakpoint: { type: 1, address: vector, kind: 1 }, pc: ip, isCertain: false };
  },
  mode: { register: 'cs', value: 0xf000n },
  begins: 'first',
  firmwareResets: true,
};

const privilegeRegisters = ['cs', 'cr0', 'cr3'];

/**
 * Intel SDM volume 3, "Control Registers", "Privilege Levels".
 *
 *   cs: 1:0 the current level | cr0: 31 PG, 0 PE | cr3: 51:12 root
 */
const privilege: PrivilegeModel = {
  registers: privilegeRegisters,
  standing(registers) {
    const [cs, cr0, cr3] = privilegeRegisters.map((name) => registers.register(name));
    // In real mode the low bits of a segment are part of its address.
    const isReal = cr0 !== undefined && (cr0 & 1n) === 0n;
    const level = cs === undefined ? undefined : !isReal && (cs & 3n) === 3n ? 'user' : 'kernel';
    const pages = cr3 !== undefined && (cr0 === undefined || ((cr0 >> 31n) & 1n) === 1n);
    return { privilege: level, root: pages ? cr3 & 0x000f_ffff_ffff_f000n : undefined };
  },
  /** Both `mov cr3, register` and `lgdt` or `lidt` of memory. One of them may be a constant by chance. */
  isKernelCode(code) {
    let [hasRoot, hasTable] = [false, false];
    for (let at = code.indexOf(0x0f); at >= 0 && at + 2 < code.length; at = code.indexOf(0x0f, at + 1)) {
      const [opcode, operand = 0] = [code[at + 1], code[at + 2]];
      hasRoot ||= opcode === 0x22 && operand >= 0xd8 && operand <= 0xdf;
      hasTable ||= opcode === 0x01 && operand < 0xc0 && ((operand >> 3) & 7) >> 1 === 1;
    }
    return hasRoot && hasTable;
  },
};

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
  floatUnit: {
    register: 'cr0',
    isOff: (value) => (value & 0x0cn) !== 0n,
    has: (name) => /^(?:[xyz]mm|st)\d/.test(name),
  },
  addressSpaces,
  probeCode,
  qemuMachines: ['pc'],
  reset,
  powerOff,
  systemRegisters,
  traps,
  linux,
};
