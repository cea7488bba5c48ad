import { genericSignals, type LinuxModel } from '../linux.js';
import { generalRegisters } from './registers.js';

/** c.ebreak and ebreak. */
const traps = [
  [0x02, 0x90],
  [0x73, 0x00, 0x10, 0x00],
];

/** Numbers of include/uapi/asm-generic/unistd.h in Linux, registers of arch/riscv/include/uapi/asm/ptrace.h. */
export const linux: LinuxModel = {
  // li a7, 139; ecall.
  signalReturns: [Uint8Array.of(0x93, 0x08, 0xb0, 0x08, 0x73, 0, 0, 0)],
  mappingCalls: [222, 226, 216, 288],
  signals: genericSignals,
  behindTrap: 0,
  isTrap: (code) => traps.some((trap) => trap.every((byte, i) => code[i] === byte)),
  coreRegisters: ['pc', ...generalRegisters.slice(1)],
};
