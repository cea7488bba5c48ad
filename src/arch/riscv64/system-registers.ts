// RISC-V Privileged Architecture: mstatus and sstatus ("Machine Status", "Supervisor Status"), satp.
import { addr, hex } from '../../base/addr.js';
import { meanings, type Paging, pagingOff, type SystemRegisters, setBits } from '../system-registers.js';
import { rootOf } from './privilege.js';

export const systemRegisters: SystemRegisters = {
  names: ['priv', 'satp', 'mstatus', 'sstatus'],
  state(registers) {
    const [priv, satp] = ['priv', 'satp'].map((name) => registers.register(name));
    return {
      mode: priv === undefined ? undefined : modeOf(priv),
      paging: pagingOf(satp, priv),
      registers: meanings(this.names, registers, meaningOf),
    };
  },
};

function modeOf(priv: bigint): string {
  const mode = ['user', 'supervisor', 'reserved', 'machine'][Number(priv & 3n)] ?? '';
  return (priv & 4n) === 0n ? mode : `virtual ${mode}`;
}

/** satp: 63:60 mode | 59:44 ASID | 43:0 page number of the root table. In machine mode it is not used. */
function pagingOf(satp: bigint | undefined, priv: bigint | undefined): Paging | undefined {
  if (priv !== undefined && (priv & 3n) === 3n) return pagingOff;
  if (satp === undefined) return undefined;
  const mode = Number(satp >> 60n);
  if (mode === 0) return pagingOff;
  const scheme = ({ 8: 'sv39', 9: 'sv48', 10: 'sv57' } as const)[mode] ?? 'unknown';
  return { scheme, root: addr(rootOf(satp)), asid: Number((satp >> 44n) & 0xffffn) };
}

/** Of each register, the bits that have names. */
const bits: Readonly<Record<string, string>> = {
  mstatus: 'SIE:1 MIE:3 SPIE:5 MPIE:7 SPP:8 MPRV:17 SUM:18 MXR:19 TVM:20 TW:21 TSR:22',
  sstatus: 'SIE:1 SPIE:5 SPP:8 SUM:18 MXR:19',
};

function meaningOf(name: string, value: bigint): string {
  if (name === 'priv') return modeOf(value);
  if (name === 'satp') {
    const { scheme, root, asid } = pagingOf(value, undefined) ?? pagingOff;
    return scheme === 'off' ? 'off' : `${scheme}, root ${hex(root ?? 0n)}, asid ${asid}`;
  }
  const set = setBits(value, bits[name]);
  if (name === 'mstatus') set.push(`MPP=${(value >> 11n) & 3n}`);
  set.push(`FS=${(value >> 13n) & 3n}`, `VS=${(value >> 9n) & 3n}`);
  return set.join(' ');
}
