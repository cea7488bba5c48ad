import { addr } from '../../base/addr.js';
import type { PrivilegeModel } from '../privilege.js';
import { belowFirmware } from './firmware.js';

const SUPERVISOR = 1n;
const MACHINE = 3n;
const SRET = 0x10200073;
const MRET = 0x30200073;
/** Interrupts are enabled, in `sstatus` and `mstatus`. */
const SIE = 1n << 1n;
const MIE = 1n << 3n;
const trapReturns = ['priv', 'mstatus', 'sstatus', 'sepc', 'mepc'];

/**
 * RISC-V Privileged Architecture. In firmware (machine mode) addresses are physical, so there is no root.
 *
 *   priv   0 user, 1 supervisor, 3 machine, 4 more below a hypervisor: numbered by QEMU and OpenOCD
 *   satp   63:60 mode, 43:0 page
 */
export const privilege: PrivilegeModel = {
  registers: ['priv', 'satp'],
  standing(registers) {
    const priv = registers.register('priv');
    const level =
      priv === undefined ? undefined : (['user', 'kernel', 'kernel', 'firmware'] as const)[Number(priv & 3n)];
    const satp = level === 'firmware' ? undefined : registers.register('satp');
    return { privilege: level, root: satp !== undefined && pages(satp) ? rootOf(satp) : undefined };
  },
  isKernelCode(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    for (let at = 0; at + 4 <= code.length; at += 2) {
      const word = view.getUint32(at, true);
      if (word === SRET || word === MRET) return true;
    }
    return false;
  },
  trapReturns: {
    registers: trapReturns,
    find(registers) {
      const [priv, mstatus, sstatus = mstatus, sepc, mepc] = trapReturns.map((name) => registers.register(name));
      const isMasked = (status: bigint | undefined, bit: bigint): boolean => ((status ?? 0n) & bit) === 0n;
      // A trap to machine mode is over when the hart runs below machine mode.
      const inMachine = priv === undefined || priv === MACHINE;
      return [
        ...(sepc !== undefined && isMasked(sstatus, SIE) ? [sepc] : []),
        ...(mepc !== undefined && inMachine && isMasked(mstatus, MIE) ? [mepc] : []),
      ];
    },
  },
  // psABI, "Frame Pointer Convention".
  frameRecord: { framePointer: 'fp', below: 16 },
  kernelEntry: {
    registers: ['priv', 'satp', 'stvec'],
    find(registers) {
      const [priv, satp, stvec] = ['priv', 'satp', 'stvec'].map((name) => registers.register(name));
      if (priv === undefined || priv === SUPERVISOR || satp === undefined || !pages(satp) || !stvec) return undefined;
      return [addr(stvec & ~3n)];
    },
    fromFirmware(registers) {
      if (registers.register('priv') !== MACHINE) return undefined;
      return { register: (name) => (name === 'priv' ? SUPERVISOR : registers.register(name)) };
    },
  },
  belowFirmware,
};

function pages(satp: bigint): boolean {
  return satp >> 60n !== 0n;
}

/** satp 43:0: the page number of the root table. */
export function rootOf(satp: bigint): bigint {
  return (satp & ((1n << 44n) - 1n)) << 12n;
}
