import type { Architecture, CompleteArchitecture } from '../architecture.js';
import { lp64 } from '../calls.js';
import { genericSignals, type LinuxModel } from '../linux.js';
import { genericCalls } from '../linux-calls.js';
import { emulate, memoryAccess } from './emulate.js';
import { codeFlow } from './flow.js';
import { frames } from './prologue.js';
import { dwarfRegister, floatArguments, generalRegisters, registerDefaults } from './registers.js';

/** Bytes of `break N`: 0000 0000 0010 1010 0, then N. */
function isBreakpoint([, b = 0, c, d]: Uint8Array): boolean {
  return d === 0 && c === 0x2a && b < 0x80;
}

/** Numbers of include/uapi/asm-generic/unistd.h in Linux, registers of arch/loongarch/include/uapi/asm/ptrace.h. */
const linux: LinuxModel = {
  atCall: { number: 'r11', arguments: ['r4', 'r5', 'r6', 'r7', 'r8', 'r9'], result: 'r4' },
  // li.w a7, 139; syscall 0.
  signalReturns: [Uint8Array.of(0x0b, 0x2c, 0x82, 0x03, 0, 0, 0x2b, 0)],
  mappingCalls: [222, 226, 216, 288],
  callName: genericCalls,
  signals: genericSignals,
  behindTrap: 0,
  isTrap: isBreakpoint,
  coreRegisters: [...generalRegisters, 'orig_a0', 'pc', 'badv'],
  // QEMU 10.0, target/loongarch/arch_dump.c: ERA.
  dumpsLackPc: true,
};

/** Of e_flags: 1 soft, 2 single, 3 double. */
const EF_FLOAT_ABI = 0x7;

/**
 * 64-bit LoongArch, with the calls and numbers of its ELF psABI. No stub shows control and status registers: which
 * privilege a hart has, its page tables, its counters and where its traps enter are not known.
 */
export const loongarch64: Architecture & Pick<CompleteArchitecture, 'frames' | 'codeFlow'> = {
  name: 'loongarch64',
  elfMachine: 258,
  gdbNames: ['loongarch64'],
  // QEMU's virt refuses less than 1 GiB.
  kernelCommand: ['qemu-system-loongarch64', '-M', 'virt', '-m', '1G', '-nographic'],
  // Kernels are linked into windows that lead to the lowest 48 bits (QEMU, cpu_loongarch_virt_to_phys; 7.2: 29 bits).
  loadAddress: (physical) => BigInt.asUintN(48, physical),
  pc: 'pc',
  sp: 'r3',
  generalRegisters,
  dwarfRegister,
  registerDefaults,
  arguments: ['r4', 'r5', 'r6', 'r7', 'r8', 'r9', 'r10', 'r11'],
  results: ['r4', 'r5'],
  ...lp64('r1', { arguments: floatArguments, results: ['f0', 'f1'] }, (flags) => [0, 0, 4, 8][flags & EF_FLOAT_ABI]),
  codeAlignment: 4,
  breakpointKind: () => 4,
  isBreakpoint,
  // idle.
  waits: ([, b = 0, c, d]) => d === 0x06 && c === 0x48 && b >= 0x80,
  emulate,
  watchStops: 'before',
  memoryAccess,
  prepare: async () => {},
  frames,
  codeFlow,
  linux,
};
