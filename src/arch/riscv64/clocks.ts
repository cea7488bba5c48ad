import type { GuestClock } from '../clock.js';

/**
 * `time`, CSR 0xc01 (Privileged ISA, Zicntr). Stubs number CSRs consecutively. Many small harts have no such CSR, and
 * their memory-mapped `mtime` has no common address.
 */
export const clocks: readonly GuestClock[] = [
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
  },
];
