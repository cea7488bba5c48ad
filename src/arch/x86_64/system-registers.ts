// Intel SDM volume 3, "Control Registers" and "Extended Feature Enable Register"; AMD64 APM volume 2, 3.1.
import { addr, hex } from '../../base/addr.js';
import { meanings, type Paging, pagingOff, type SystemRegisters, setBits } from '../system-registers.js';

export const systemRegisters: SystemRegisters = {
  names: ['cr0', 'cr3', 'cr4', 'efer'],
  state(registers) {
    const [cr0, cr3, cr4, efer] = this.names.map((name) => registers.register(name));
    const mode = cr0 === undefined || efer === undefined ? undefined : modeOf(cr0, efer);
    const isKnown = cr0 !== undefined && cr3 !== undefined && cr4 !== undefined && efer !== undefined;
    const paging = isKnown ? pagingOf(cr0, cr3, cr4, efer) : undefined;
    return { mode, paging, registers: meanings(this.names, registers, meaningOf) };
  },
};

function modeOf(cr0: bigint, efer: bigint): string {
  return isSet(efer, 10) ? 'long' : isSet(cr0, 0) ? 'protected' : 'real';
}

/** CR0.PG 31, CR4.PAE 5, CR4.LA57 12, EFER.LMA 10; CR3 51:12 is the root of 64-bit paging. */
function pagingOf(cr0: bigint, cr3: bigint, cr4: bigint, efer: bigint): Paging {
  if (!isSet(cr0, 31)) return pagingOff;
  const long = isSet(efer, 10);
  const scheme = long ? (isSet(cr4, 12) ? '5-level' : '4-level') : isSet(cr4, 5) ? 'pae' : '32-bit';
  const mask = long ? 0xf_ffff_ffff_f000n : scheme === 'pae' ? 0xffff_ffe0n : 0xffff_f000n;
  return { scheme, root: addr(cr3 & mask), asid: undefined };
}

function isSet(value: bigint, bit: number): boolean {
  return ((value >> BigInt(bit)) & 1n) === 1n;
}

const bits: Readonly<Record<string, readonly (readonly [number, string])[]>> = {
  cr0: [
    [0, 'PE'],
    [1, 'MP'],
    [2, 'EM'],
    [3, 'TS'],
    [4, 'ET'],
    [5, 'NE'],
    [16, 'WP'],
    [18, 'AM'],
    [29, 'NW'],
    [30, 'CD'],
    [31, 'PG'],
  ],
  cr4: [
    [0, 'VME'],
    [1, 'PVI'],
    [2, 'TSD'],
    [3, 'DE'],
    [4, 'PSE'],
    [5, 'PAE'],
    [6, 'MCE'],
    [7, 'PGE'],
    [8, 'PCE'],
    [9, 'OSFXSR'],
    [10, 'OSXMMEXCPT'],
    [11, 'UMIP'],
    [12, 'LA57'],
    [13, 'VMXE'],
    [16, 'FSGSBASE'],
    [17, 'PCIDE'],
    [18, 'OSXSAVE'],
    [20, 'SMEP'],
    [21, 'SMAP'],
    [22, 'PKE'],
    [23, 'CET'],
  ],
  efer: [
    [0, 'SCE'],
    [8, 'LME'],
    [10, 'LMA'],
    [11, 'NXE'],
    [12, 'SVME'],
  ],
};

function meaningOf(name: string, value: bigint): string {
  if (name === 'cr3') return `root ${hex(value & 0xf_ffff_ffff_f000n)}`;
  return setBits(value, bits[name] ?? []).join(' ');
}
