// Arm Architecture Reference Manual for A-profile: C5.2 "Special-purpose registers", D19.2 "General system control
// registers".
import { addr, hex } from '../../base/addr.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import { meanings, type Paging, pagingOff, type SystemRegisters, setBits } from '../system-registers.js';
import { M, ofEachLevel, regimeOf, rootOf } from './privilege.js';

export const systemRegisters: SystemRegisters = {
  names: [...ofEachLevel('SCTLR_EL1', 'TCR_EL1', 'TTBR0_EL1', 'TTBR1_EL1'), 'CPACR_EL1'],
  state(registers) {
    const cpsr = registers.register('cpsr');
    const { level } = regimeOf(registers);
    return {
      mode: cpsr === undefined ? undefined : level === undefined ? 'AArch32' : `EL${level}`,
      paging: pagingOf(registers),
      registers: meanings(this.names, registers, meaningOf),
    };
  },
};

/** By TG0: kilobytes of a page. */
const sizes = [4, 64, 16];

/** The ASID is in the table register that A1, TCR bit 22, names; EL2 with one half has none. */
function pagingOf(registers: RegisterReader): Paging | undefined {
  const regime = regimeOf(registers);
  const control = regime.register('SCTLR_EL1');
  if (control === undefined || regime.level === undefined || regime.level === 3) return undefined;
  if ((control & M) === 0n) return pagingOff;
  const [config, lower, upper] = ['TCR_EL1', 'TTBR0_EL1', 'TTBR1_EL1'].map((name) => regime.register(name));
  const size = config === undefined ? undefined : sizes[Number((config >> 14n) & 3n)];
  const named = config !== undefined && (config & (1n << 22n)) !== 0n ? upper : lower;
  return {
    scheme: size === undefined ? 'unknown' : `${size} KiB pages`,
    root: lower === undefined ? undefined : addr(rootOf(lower)),
    asid: named === undefined || regime.isSingle ? undefined : Number(named >> 48n),
  };
}

/** Of each register, the bits that have names. */
const bits: Readonly<Record<string, string>> = {
  cpsr: 'nRW:4 F:6 I:7 A:8 D:9 IL:20 SS:21 PAN:22 V:28 C:29 Z:30 N:31',
  SCTLR: 'M:0 A:1 C:2 SA:3 SA0:4 I:12 WXN:19 EE:25 EnIA:31',
  HCR: 'VM:0 FMO:3 IMO:4 AMO:5 TGE:27 RW:31 E2H:34',
};

function meaningOf(name: string, value: bigint): string {
  const field = (at: number, size: number): number => Number((value >> BigInt(at)) & ((1n << BigInt(size)) - 1n));
  const kind = name.replace(/_EL[12]$/, '');
  const set = setBits(value, bits[kind]);
  switch (kind) {
    case 'cpsr':
      return [`EL=${field(2, 2)}`, `SP=${field(0, 1)}`, ...set].join(' ');
    case 'TCR':
      // Bits behind are others while EL2 has one half.
      if (name === 'TCR_EL2') return `T0SZ=${field(0, 6)} TG0=${field(14, 2)}`;
      return `T0SZ=${field(0, 6)} TG0=${field(14, 2)} T1SZ=${field(16, 6)} TG1=${field(30, 2)} IPS=${field(32, 3)}`;
    case 'CPACR':
      return `FPEN=${field(20, 2)}`;
    case 'SCTLR':
    case 'HCR':
      return set.join(' ');
    default:
      return `root ${hex(rootOf(value))}, asid ${field(48, 16)}`;
  }
}

/** Numbers of system registers: op0 to op2, 16 bits. The virtual counter is the time of EL1 and EL0. */
export const CNTVCT_EL0 = 0xdf02;
export const CNTFRQ_EL0 = 0xdf00;
export const MPIDR_EL1 = 0xc005;
export const CPACR_EL1 = 0xc082;
/** Bits 3:2. */
export const CURRENT_EL = 0xc212;
