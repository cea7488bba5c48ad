import { addr } from '../../base/addr.js';
import type { PrivilegeModel } from '../privilege.js';

/** Of an AArch32 state bit 4 is set; its mode has other numbers. */
const NARROW = 1n << 4n;
const ERET = 0xd69f_03e0;
/** In the vector table (D1.3.1.4): what comes from EL0 in AArch64 state, and behind that its interrupts. */
const fromLower = 0x400n;
const interrupt = 0x80n;
/** Translation is on. */
export const M = 1n;

/** Bits 47:1 of TTBR0_EL1 and TTBR1_EL1: the root table, without ASID and CnP. */
export function rootOf(register: bigint): bigint {
  return register & 0x0000_ffff_ffff_fffen;
}

/** The exception level, of PSTATE or SPSR 3:2. */
export function levelOf(cpsr: bigint): 0 | 1 | 2 | 3 | undefined {
  return (cpsr & NARROW) === 0n ? (Number((cpsr >> 2n) & 3n) as 0 | 1 | 2 | 3) : undefined;
}

/**
 * Arm Architecture Reference Manual for A-profile, D1.1 "Exception levels". What runs at EL2 is a kernel of its own.
 * TTBR0 identifies the space of a hart: each process has its own. TTBR1 is their kernel's, in all of them.
 */
export const privilege: PrivilegeModel = {
  registers: ['cpsr', 'SCTLR_EL1', 'TTBR0_EL1'],
  standing(registers) {
    const cpsr = registers.register('cpsr');
    const level = cpsr === undefined ? undefined : levelOf(cpsr);
    const privilege = level === undefined ? undefined : (['user', 'kernel', 'kernel', 'firmware'] as const)[level];
    const [control, root] = [registers.register('SCTLR_EL1'), registers.register('TTBR0_EL1')];
    // At EL2 and EL3 other registers have it.
    const pages = level !== undefined && level < 2 && control !== undefined && (control & M) !== 0n;
    return { privilege, root: pages && root !== undefined ? rootOf(root) : undefined };
  },
  kernelEntry: {
    registers: ['cpsr', 'SCTLR_EL1', 'TTBR0_EL1', 'VBAR_EL1'],
    find(registers) {
      const [cpsr, control, vectors] = ['cpsr', 'SCTLR_EL1', 'VBAR_EL1'].map((name) => registers.register(name));
      const isUser = cpsr !== undefined && levelOf(cpsr) === 0;
      if (!isUser || control === undefined || (control & M) === 0n || vectors === undefined) return undefined;
      return [addr(vectors + fromLower), addr(vectors + fromLower + interrupt)];
    },
    fromFirmware: () => undefined,
  },
  isKernelCode(code) {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    for (let at = 0; at + 4 <= code.length; at += 4) if (view.getUint32(at, true) === ERET) return true;
    return false;
  },
};
