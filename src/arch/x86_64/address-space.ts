// Intel SDM volume 3, "Paging" (4-level and 5-level), AMD64 APM volume 2, chapter 5:
//
//   CR0.PG 31, CR0.PE 0 | CR4.LA57 12 | EFER.LMA 10, NXE 11 | CR3 51:12 root table
//   entry 63 XD | 51:12 address | 12 PAT (large pages) | 8 G | 7 PS | 6 D | 5 A | 2 U | 1 W | 0 P
//
// Refused: 32-bit and PAE paging. Not read: protection keys, shadow stacks; address bits beyond the machine's own are
// taken as they are.
import type { Addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { AddressSpaces, Translation } from '../pages/address-space.js';
import { type Entry, sizeAt, spaceOf } from '../pages/page-walk.js';

const P = 1n;
const W = 2n;
const U = 4n;
const A = 32n;
const D = 64n;
const PS = 128n;
const G = 256n;
const XD = 1n << 63n;
const ADDRESS = 0x000f_ffff_ffff_f000n;

const PG = 1n << 31n;
const LA57 = 1n << 12n;
const LMA = 1n << 10n;
const NXE = 1n << 11n;

export const addressSpaces: AddressSpaces = {
  registers: ['cr0', 'cr3', 'cr4', 'efer', 'cs'],
  of(registers, physical) {
    const found = translation(registers);
    if ('refused' in found) return found;
    const noExecute = found.pages === undefined || ((registers.register('efer') ?? 0n) & NXE) !== 0n;
    const scheme = found.pages?.levels === 5 ? '5-level' : '4-level';
    return spaceOf(scheme, found, physical, {
      largePageEntry: (address, rights) => (noExecute || rights === 'code' ? encode(address, rights) : undefined),
      executableEntry,
      tableEntry,
    });
  },
  format: translation,
  alwaysPages: true,
  tableChanges: writesTable,
  guestPlaces: (_, code) => guestEntries(code),
  withRoot: (registers, root) => ({ register: (name) => (name === 'cr3' ? root : registers.register(name)) }),
  hardwareBits: A | D,
  search: { levels: [4], valid: 1, shift: 12, highBits: 0xf_ffff },
};

/**
 * Looks for `mov %REG, %cr0` and `mov %REG, %cr3` at every byte: 0f 22 | 11 reg rm, where reg is the control register.
 */
function writesTable(code: Uint8Array): readonly number[] {
  const ends: number[] = [];
  for (let at = code.indexOf(0x0f); at >= 0; at = code.indexOf(0x0f, at + 1)) {
    const operands = code[at + 2] ?? 0;
    const register = (operands >> 3) & 7;
    if (code[at + 1] === 0x22 && operands >= 0xc0 && (register === 0 || register === 3)) ends.push(at + 3);
  }
  return ends;
}

/** The third bytes, behind 0f 01, of vmlaunch, vmresume and vmrun. */
const entries: readonly (number | undefined)[] = [0xc2, 0xc3, 0xd8];

function guestEntries(code: Uint8Array): readonly number[] {
  const places: number[] = [];
  for (let at = code.indexOf(0x0f); at >= 0; at = code.indexOf(0x0f, at + 1))
    if (code[at + 1] === 0x01 && entries.includes(code[at + 2])) places.push(at);
  return places;
}

function translation(registers: RegisterReader): Translation | Refusal {
  const [cr0, cr3, cr4, efer, cs] = addressSpaces.registers.map((name) => registers.register(name));
  if (cr0 === undefined || cr3 === undefined || cr4 === undefined || efer === undefined || cs === undefined) {
    return { refused: 'the stub does not give the control registers' };
  }
  if ((cr0 & PG) === 0n) return { pages: undefined, user: false };
  if ((efer & LMA) === 0n) return { refused: 'the hart runs with 32-bit paging' };
  const levels = (cr4 & LA57) !== 0n ? 5 : 4;
  const noExecute = (efer & NXE) !== 0n;
  const decode = (entry: bigint, level: number): Entry | undefined => decodeWith(entry, level, noExecute);
  return { pages: { levels, root: cr3 & ADDRESS, decode }, user: (cs & 3n) === 3n };
}

function decodeWith(entry: bigint, level: number, noExecute: boolean): Entry | undefined {
  if ((entry & P) === 0n || (!noExecute && (entry & XD) !== 0n)) return undefined;
  const rights = {
    readable: true,
    writable: (entry & W) !== 0n,
    executable: (entry & XD) === 0n,
    user: (entry & U) !== 0n,
  };
  if (level > 0 && (entry & PS) === 0n) return { kind: 'table', physical: entry & ADDRESS, rights };
  if (level > 2) return undefined;
  const size = BigInt(sizeAt(level));
  // In a large page's entry bit 12 is PAT; the other bits below its address are reserved.
  const base = level === 0 ? entry & ADDRESS : entry & ADDRESS & ~0x1000n;
  return base % size === 0n ? { kind: 'leaf', physical: base, rights } : undefined;
}

/** Global, accessed and dirty from the start, so that only rsptrace ever writes the entry. */
function encode(physical: Addr, rights: 'code' | 'data'): bigint {
  return physical | P | A | D | PS | G | (rights === 'code' ? 0n : W | XD);
}

function executableEntry(entry: bigint): bigint {
  return entry & ~XD;
}

function tableEntry(physical: Addr): bigint {
  return physical | P | W | A | D;
}
