// The registers that say in which mode a hart runs and how it sees memory, decoded.
//
// RISC-V Privileged Architecture: mstatus and sstatus ("Machine Status", "Supervisor Status"), satp.
// Intel SDM volume 3, "Control Registers" and "Extended Feature Enable Register"; AMD64 APM volume 2, 3.1.
import type { Architecture } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

export interface SystemRegister {
  readonly name: string;
  readonly value: bigint;
  /** For people: the names of the bits that are set, or the fields. */
  readonly meaning: string;
}

export interface Paging {
  /** `off` where addresses are physical. */
  readonly scheme: 'off' | 'sv39' | 'sv48' | 'sv57' | '32-bit' | 'pae' | '4-level' | '5-level' | 'unknown';
  /** Physical address of the root table; undefined where paging is off or not known. */
  readonly root: Addr | undefined;
  /** riscv's address space number. */
  readonly asid: number | undefined;
}

export interface SystemState {
  /** `user`, `supervisor`, `machine`, with `virtual ` in front below a hypervisor; `real`, `protected`, `long`. Undefined for a process. */
  readonly mode: string | undefined;
  readonly paging: Paging | undefined;
  readonly registers: readonly SystemRegister[];
}

const names = {
  riscv64: ['priv', 'satp', 'mstatus', 'sstatus'],
  x86_64: ['cr0', 'cr3', 'cr4', 'efer'],
} as const;

/** What {@link systemState} reads, of what there may be. */
export function systemRegisterNames(arch: Architecture): readonly string[] {
  return names[arch.name];
}

export function systemState(arch: Architecture, registers: RegisterReader): SystemState {
  const found = names[arch.name].flatMap((name) => {
    const value = registers.register(name);
    return value === undefined ? [] : [{ name, value }];
  });
  const value = (name: string): bigint | undefined => found.find((each) => each.name === name)?.value;
  const [mode, paging] =
    arch.name === 'riscv64'
      ? [riscvMode(value('priv')), riscvPaging(value('satp'), value('priv'))]
      : [x86Mode(value('cr0'), value('efer')), x86Paging(value('cr0'), value('cr3'), value('cr4'), value('efer'))];
  return { mode, paging, registers: found.map((each) => ({ ...each, meaning: meaningOf(each.name, each.value) })) };
}

const off: Paging = { scheme: 'off', root: undefined, asid: undefined };

function riscvMode(priv: bigint | undefined): string | undefined {
  if (priv === undefined) return undefined;
  const mode = ['user', 'supervisor', 'reserved', 'machine'][Number(priv & 3n)] ?? '';
  return (priv & 4n) === 0n ? mode : `virtual ${mode}`;
}

/** satp: 63:60 mode | 59:44 ASID | 43:0 page number of the root table. In machine mode it is not used. */
function riscvPaging(satp: bigint | undefined, priv: bigint | undefined): Paging | undefined {
  if (priv !== undefined && (priv & 3n) === 3n) return off;
  if (satp === undefined) return undefined;
  const mode = Number(satp >> 60n);
  if (mode === 0) return off;
  const scheme = ({ 8: 'sv39', 9: 'sv48', 10: 'sv57' } as const)[mode] ?? 'unknown';
  return { scheme, root: rootOf(satp), asid: Number((satp >> 44n) & 0xffffn) };
}

function rootOf(satp: bigint): Addr {
  return addr((satp & ((1n << 44n) - 1n)) << 12n);
}

function x86Mode(cr0: bigint | undefined, efer: bigint | undefined): string | undefined {
  if (cr0 === undefined || efer === undefined) return undefined;
  return (efer & bit(10)) !== 0n ? 'long' : (cr0 & 1n) !== 0n ? 'protected' : 'real';
}

/** CR0.PG 31, CR4.PAE 5, CR4.LA57 12, EFER.LMA 10; CR3 51:12 is the root of 64-bit paging. */
function x86Paging(
  cr0: bigint | undefined,
  cr3: bigint | undefined,
  cr4: bigint | undefined,
  efer: bigint | undefined,
): Paging | undefined {
  if (cr0 === undefined || cr3 === undefined || cr4 === undefined || efer === undefined) return undefined;
  if ((cr0 & bit(31)) === 0n) return off;
  const long = (efer & bit(10)) !== 0n;
  const scheme = long ? ((cr4 & bit(12)) !== 0n ? '5-level' : '4-level') : (cr4 & bit(5)) !== 0n ? 'pae' : '32-bit';
  const mask = long ? 0xf_ffff_ffff_f000n : scheme === 'pae' ? 0xffff_ffe0n : 0xffff_f000n;
  return { scheme, root: addr(cr3 & mask), asid: undefined };
}

const bits: Readonly<Record<string, readonly (readonly [number, string])[]>> = {
  mstatus: [
    [1, 'SIE'],
    [3, 'MIE'],
    [5, 'SPIE'],
    [7, 'MPIE'],
    [8, 'SPP'],
    [17, 'MPRV'],
    [18, 'SUM'],
    [19, 'MXR'],
    [20, 'TVM'],
    [21, 'TW'],
    [22, 'TSR'],
  ],
  sstatus: [
    [1, 'SIE'],
    [5, 'SPIE'],
    [8, 'SPP'],
    [18, 'SUM'],
    [19, 'MXR'],
  ],
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
  if (name === 'priv') return riscvMode(value) ?? '';
  if (name === 'cr3') return `root ${hex(value & 0xf_ffff_ffff_f000n)}`;
  if (name === 'satp') {
    const { scheme, root, asid } = riscvPaging(value, undefined) ?? off;
    return scheme === 'off' ? 'off' : `${scheme}, root ${hex(root ?? 0n)}, asid ${asid}`;
  }
  const set = (bits[name] ?? []).filter(([number]) => (value & bit(number)) !== 0n).map(([, flag]) => flag);
  if (name === 'mstatus') set.push(`MPP=${(value >> 11n) & 3n}`);
  if (name === 'mstatus' || name === 'sstatus') set.push(`FS=${(value >> 13n) & 3n}`, `VS=${(value >> 9n) & 3n}`);
  return set.join(' ');
}

function bit(number: number): bigint {
  return 1n << BigInt(number);
}
