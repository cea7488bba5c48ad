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

/** Of each register, the bits that have names. */
const bits: Readonly<Record<string, string>> = {
  cr0: 'PE:0 MP:1 EM:2 TS:3 ET:4 NE:5 WP:16 AM:18 NW:29 CD:30 PG:31',
  cr4:
    'VME:0 PVI:1 TSD:2 DE:3 PSE:4 PAE:5 MCE:6 PGE:7 PCE:8 OSFXSR:9 OSXMMEXCPT:10 UMIP:11 ' +
    'LA57:12 VMXE:13 FSGSBASE:16 PCIDE:17 OSXSAVE:18 SMEP:20 SMAP:21 PKE:22 CET:23',
  efer: 'SCE:0 LME:8 LMA:10 NXE:11 SVME:12',
};

function meaningOf(name: string, value: bigint): string {
  if (name === 'cr3') return `root ${hex(value & 0xf_ffff_ffff_f000n)}`;
  return setBits(value, bits[name]).join(' ');
}
