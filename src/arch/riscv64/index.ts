import { addr } from '../../base/addr.js';
import type { CompleteArchitecture } from '../architecture.js';
import { lp64 } from '../calls.js';
import { genericSignals, type LinuxModel } from '../linux.js';
import { genericSignatures } from '../linux-arguments.js';
import { riscvCalls } from '../linux-calls.js';
import type { GuestClock, ResetModel } from '../machine.js';
import { addressSpaces } from './address-space.js';
import { lengthOf } from './decode.js';
import { emulate, memoryAccess } from './emulate.js';
import { codeFlow } from './flow.js';
import { powerOff } from './power-off.js';
import { privilege } from './privilege.js';
import { frames } from './prologue.js';
import { references } from './references.js';
import { dwarfRegister, floatArguments, floatNumber, generalRegisters, registerDefaults } from './registers.js';
import { systemRegisters } from './system-registers.js';
import { probeCode } from './trampoline.js';
import { traps as trapModel } from './traps.js';

/**
 * `time`, CSR 0xc01 (Privileged ISA, Zicntr). Stubs number CSRs consecutively. Many small harts have no such CSR, and
 * their memory-mapped `mtime` has no common address.
 */
const clocks: readonly GuestClock[] = [
  {
    kind: 'time',
    label: 'riscv-time',
    number: 0xc01,
    numbered: [
      ['time', 0xc01],
      ['cycle', 0xc00],
      ['satp', 0x180],
      ['sepc', 0x141],
      ['stvec', 0x105],
      ['mepc', 0x341],
      ['mtvec', 0x305],
      ['misa', 0x301],
    ],
    // TM, Privileged ISA 3.1.11.
    gate: { register: 'mcounteren', bit: 2n },
    // mtime of QEMU's virt and of all that have SiFive's CLINT.
    mapped: 0x200_bff8n,
  },
];

/** c.ebreak and ebreak. */
const traps = [
  [0x02, 0x90],
  [0x73, 0x00, 0x10, 0x00],
];

/** Numbers of include/uapi/asm-generic/unistd.h in Linux, registers of arch/riscv/include/uapi/asm/ptrace.h. */
const linux: LinuxModel = {
  // li a7, 139; ecall.
  signalReturns: [Uint8Array.of(0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0)],
  mappingCalls: [222, 226, 216, 288],
  callName: riscvCalls,
  callSignature: genericSignatures,
  signals: genericSignals,
  behindTrap: 0,
  isTrap: (code) => traps.some((trap) => trap.every((byte, i) => code[i] === byte)),
  coreRegisters: ['pc', ...generalRegisters.slice(1)],
};

const maskRom = 0x1000n;
const machineMode = 3n;

/**
 * QEMU's machines begin in their mask ROM at 0x1000 (QEMU 7.2, hw/riscv/virt.c; others 0x1004), in M-mode, all harts.
 */
const reset: ResetModel = {
  vectorAt(pc) {
    if (pc >> 12n !== maskRom >> 12n) return undefined;
    return { breakpoint: { type: 0, address: addr(pc), kind: 4 }, pc: addr(pc), isCertain: true };
  },
  mode: { register: 'priv', value: machineMode },
  begins: 'all',
  firmwareResets: false,
};

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
  ...lp64(
    'ra',
    { arguments: floatArguments, results: ['fa0', 'fa1'] },
    (flags) => [0, 4, 8, 8][(flags & EF_FLOAT_ABI) >> 1],
  ),
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
  floatUnit: {
    register: 'sstatus',
    isOff: (value) => (value & 0x6000n) === 0n,
    has: (name) => floatNumber(name) !== undefined,
  },
  addressSpaces,
  probeCode,
  qemuMachines: ['virt'],
  reset,
  powerOff,
  systemRegisters,
  traps: trapModel,
  linux,
};
