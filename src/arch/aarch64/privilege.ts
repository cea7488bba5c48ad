import { addr } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { PrivilegeModel } from '../privilege.js';

/** Of an AArch32 state bit 4 is set; its mode has other numbers. */
const NARROW = 1n << 4n;
const ERET = 0xd69f_03e0;
/** In the vector table (D1.3.1.4): what comes from EL0 in AArch64 state, and behind that its interrupts. */
const fromLower = 0x400n;
const interrupt = 0x80n;
/** Translation is on. */
export const M = 1n;
/**
 * HCR_EL2: addresses of EL1 and EL0 are translated once more; traps of EL0 go to EL2; EL2 has the two halves that EL1
 * has.
 */
const VM = 1n;
const TGE = 1n << 27n;
const E2H = 1n << 34n;

/** Bits 47:1 of TTBR0_EL1 and TTBR1_EL1: the root table, without ASID and CnP. */
export function rootOf(register: bigint): bigint {
  return register & 0x0000_ffff_ffff_fffen;
}

/** The exception level, of PSTATE or SPSR 3:2. */
export function levelOf(cpsr: bigint): 0 | 1 | 2 | 3 | undefined {
  return (cpsr & NARROW) === 0n ? (Number((cpsr >> 2n) & 3n) as 0 | 1 | 2 | 3) : undefined;
}

/** Whose control registers a hart goes by. */
export interface Regime extends RegisterReader {
  readonly level: 0 | 1 | 2 | 3 | undefined;
  /** EL2 without a half for addresses that begin with ones. */
  readonly isSingle: boolean;
  /** Translated addresses are a hypervisor's guest's, and not yet physical. */
  readonly isNested: boolean;
  /** What a register of EL1 is called at this level. */
  nameOf(name: string): string;
}

/**
 * D8.1.2 "Translation regimes". Registers are asked for by the names of EL1; of a hart whose kernel is at EL2 those of
 * EL2 are given. There is no HCR_EL2 where there is no EL2.
 */
export function regimeOf(registers: RegisterReader): Regime {
  const [cpsr, config = 0n] = [registers.register('cpsr'), registers.register('HCR_EL2')];
  const level = cpsr === undefined ? undefined : levelOf(cpsr);
  const has = (bits: bigint): boolean => (config & bits) === bits;
  const isUpper = level === 2 || (level === 0 && has(E2H | TGE));
  const nameOf = (name: string): string => (isUpper ? name.replace('_EL1', '_EL2') : name);
  return {
    level,
    isSingle: isUpper && !has(E2H),
    isNested: !isUpper && has(VM),
    nameOf,
    register: (name) => registers.register(nameOf(name)),
  };
}

/** The names under which {@link regimeOf} may want these. */
export function ofEachLevel(...names: readonly string[]): readonly string[] {
  return ['cpsr', 'HCR_EL2', ...names, ...names.map((name) => name.replace('_EL1', '_EL2'))];
}

/**
 * Arm Architecture Reference Manual for A-profile, D1.1 "Exception levels". What runs at EL2 is a kernel of its own.
 * TTBR0 identifies the space of a hart: each process has its own. TTBR1 is their kernel's, in all of them.
 */
export const privilege: PrivilegeModel = {
  registers: ofEachLevel('SCTLR_EL1', 'TTBR0_EL1'),
  standing(registers) {
    const regime = regimeOf(registers);
    const { level } = regime;
    const privilege = level === undefined ? undefined : (['user', 'kernel', 'kernel', 'firmware'] as const)[level];
    const [control, root] = [regime.register('SCTLR_EL1'), regime.register('TTBR0_EL1')];
    const pages = level !== undefined && level < 3 && control !== undefined && (control & M) !== 0n;
    return { privilege, root: pages && root !== undefined ? rootOf(root) : undefined };
  },
  kernelEntry: {
    registers: ofEachLevel('SCTLR_EL1', 'TTBR0_EL1', 'VBAR_EL1'),
    find(registers) {
      const regime = regimeOf(registers);
      const [control, vectors] = [regime.register('SCTLR_EL1'), regime.register('VBAR_EL1')];
      if (regime.level !== 0 || control === undefined || (control & M) === 0n || vectors === undefined)
        return undefined;
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
