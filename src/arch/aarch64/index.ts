import { addr } from '../../base/addr.js';
import type { Architecture, CompleteArchitecture } from '../architecture.js';
import { genericSignals, type LinuxModel } from '../linux.js';
import { armSignatures } from '../linux-arguments.js';
import { genericCalls } from '../linux-calls.js';
import type { ResetModel } from '../machine.js';
import { addressSpaces } from './address-space.js';
import { prepare } from './disassembly.js';
import { emulate, memoryAccess } from './emulate.js';
import { codeFlow } from './flow.js';
import { powerOff } from './power-off.js';
import { privilege } from './privilege.js';
import { frames } from './prologue.js';
import { references } from './references.js';
import { dwarfRegister, floatArguments, generalRegisters, registerDefaults } from './registers.js';
import { systemRegisters } from './system-registers.js';
import { probeCode } from './trampoline.js';
import { traps } from './traps.js';

/** Bytes of `brk #N`: d4 | 001 N[15:11] | N[10:3] | N[2:0] 00000. */
function isBreakpoint([a = 0, , c = 0, d]: Uint8Array): boolean {
  return d === 0xd4 && (c & 0xe0) === 0x20 && (a & 0x1f) === 0;
}

/** Numbers of include/uapi/asm-generic/unistd.h in Linux, registers of arch/arm64/include/uapi/asm/ptrace.h. */
const linux: LinuxModel = {
  atCall: { number: 'x8', arguments: ['x0', 'x1', 'x2', 'x3', 'x4', 'x5'], result: 'x0' },
  // mov x8, #139; svc #0.
  signalReturns: [Uint8Array.of(0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4)],
  mappingCalls: [222, 226, 216, 288],
  callName: genericCalls,
  callSignature: armSignatures,
  signals: genericSignals,
  behindTrap: 0,
  isTrap: isBreakpoint,
  coreRegisters: [...generalRegisters, 'pc', 'cpsr'],
};

/**
 * QEMU's machines begin at the ELF's entry, or at the code before a Linux image (hw/arm/boot.c, do_cpu_reset). The
 * first processor starts the others by PSCI. A reset leaves 0 in registers, so a hart there has no stack.
 */
const reset: ResetModel = {
  vectorAt: (pc) => ({ breakpoint: { type: 0, address: addr(pc), kind: 4 }, pc: addr(pc), isCertain: false }),
  mode: { register: 'sp', value: 0n },
  begins: 'first',
  firmwareResets: false,
};

/** 64-bit Arm, little-endian, with the calls and numbers of AAPCS64. */
export const aarch64: Architecture &
  Pick<
    CompleteArchitecture,
    'frames' | 'codeFlow' | 'references' | 'privilege' | 'addressSpaces' | 'probeCode' | 'systemRegisters' | 'traps'
  > = {
  name: 'aarch64',
  elfMachine: 183,
  gdbNames: ['aarch64'],
  // Without a processor QEMU's virt has one of 32 bits.
  kernelCommand: ['qemu-system-aarch64', '-M', 'virt', '-cpu', 'max', '-nographic'],
  pc: 'pc',
  sp: 'sp',
  generalRegisters,
  dwarfRegister,
  registerDefaults,
  arguments: ['x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7'],
  results: ['x0', 'x1'],
  // D8.8 "Address tagging": processes of Linux have it always, kernels by TCR_EL1.TBI0 and TBI1.
  pointerBits: 56,
  returnAddress: { in: 'register', name: 'x30' },
  stackPointerAfterReturn: (atEntry) => atEntry,
  resultAddress: 'x8',
  alignsPairs: true,
  aggregates: { maySplit: false, takesAll: true, large: 'by-address' },
  floats: () => ({
    arguments: floatArguments,
    results: ['v0', 'v1', 'v2', 'v3'],
    widest: 8,
    overflow: 'stack',
    structs: 'homogeneous',
  }),
  irregularFunctions: [
    { name: /^OUTLINED_FUNCTION_\d+/, reason: 'a piece of other functions: called with another return register' },
  ],
  codeAlignment: 4,
  breakpointKind: () => 4,
  isBreakpoint,
  // wfe, wfi.
  waits: ([a, b, c, d]) => (a === 0x5f || a === 0x7f) && b === 0x20 && c === 0x03 && d === 0xd5,
  emulate,
  // Arm Architecture Reference Manual, D2.10: a watchpoint is taken before the access.
  watchStops: 'before',
  memoryAccess,
  prepare,
  frames,
  codeFlow,
  references,
  privilege,
  // FPEN, bits 21:20.
  floatUnit: {
    register: 'CPACR_EL1',
    isOff: (value) => (value & (1n << 20n)) === 0n,
    has: (name) => /^v\d/.test(name),
  },
  addressSpaces,
  probeCode,
  qemuMachines: ['arm-virt'],
  systemRegisters,
  traps,
  reset,
  powerOff,
  linux,
};
