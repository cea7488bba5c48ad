import type { LinuxModel } from '../linux.js';
import { generalRegisters } from './registers.js';

/** Numbers of include/uapi/asm-generic/unistd.h in Linux, registers of arch/riscv/include/uapi/asm/ptrace.h. */
export const linux: LinuxModel = {
  mappingCalls: [222, 226, 216, 288],
  coreRegisters: ['pc', ...generalRegisters.slice(1)],
};
