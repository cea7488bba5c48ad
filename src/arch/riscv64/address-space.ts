// RISC-V Privileged Architecture, "Supervisor Address Translation and Protection (satp) Register" and "Sv39", "Sv48",
// "Sv57":
//
//   satp  63:60 mode (0 off, 8 Sv39, 9 Sv48, 10 Sv57) | 59:44 ASID | 43:0 page number of the root table
//   entry 63 N | 62:61 PBMT | 53:10 page number | 7 D | 6 A | 5 G | 4 U | 3 X | 2 W | 1 R | 0 V
//
// Svnapot is read for 64 KiB. Not read: the hypervisor's second stage; MPRV, which no kernel leaves set.
import { type Addr, addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { AddressSpaces, Translation } from '../pages/address-space.js';
import { type Entry, type PageFormat, sizeAt, spaceOf } from '../pages/page-walk.js';

const V = 1n;
const R = 2n;
const W = 4n;
const X = 8n;
const U = 16n;
const G = 32n;
const A = 64n;
const D = 128n;
const N = 1n << 63n;
/** The CSR's number. */
const SATP = 0x180;
const HGATP = 0x680;
const MACHINE = 3n;
const VIRTUAL = 4n;

/** By satp's mode: Sv39, Sv48, Sv57. */
const levelsOf = new Map<number, PageFormat['levels']>([
  [8, 3],
  [9, 4],
  [10, 5],
]);

export const addressSpaces: AddressSpaces = {
  registers: ['satp', 'priv'],
  of(registers, physical) {
    const found = translation(registers);
    if ('refused' in found) return found;
    const scheme = ({ 3: 'sv39', 4: 'sv48', 5: 'sv57' } as const)[found.pages?.levels ?? 3];
    return spaceOf(scheme, found, physical, { largePageEntry: encode, executableEntry, tableEntry });
  },
  format: translation,
  alwaysPages: false,
  tableChanges: (code) => writes(SATP, code),
  guestPlaces: (_, code) => writes(HGATP, code).map((end) => end - 4),
  hardwareBits: A | D,
  search: { levels: [3, 4], valid: 1, shift: 10, highBits: 0x3f_ffff },
};

function translation(registers: RegisterReader): Translation | Refusal {
  const privilege = registers.register('priv');
  if (privilege === undefined) return { refused: "the stub does not say the hart's privilege mode (priv)" };
  if ((privilege & VIRTUAL) !== 0n) return { refused: 'the hart runs as a guest of a hypervisor' };
  const satp = registers.register('satp');
  if (satp === undefined && privilege !== MACHINE) return { refused: 'the stub does not give satp' };
  const mode = Number((satp ?? 0n) >> 60n);
  const user = privilege === 0n;
  if (mode === 0 || privilege === MACHINE) return { pages: undefined, user };
  const levels = levelsOf.get(mode);
  if (levels === undefined) return { refused: `satp has the mode ${mode}, which is not known` };
  return { pages: { levels, root: ((satp ?? 0n) & ((1n << 44n) - 1n)) << 12n, decode }, user };
}

/**
 * Looks for csrrw/csrrs/csrrc[i] of satp at every two bytes. Data that looks like such an instruction only delays the
 * start of trampolines.
 */
function writes(csr: number, code: Uint8Array): readonly number[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const ends: number[] = [];
  for (let at = 0; at + 4 <= code.length; at += 2) {
    const word = view.getUint32(at, true);
    // imm[31:20] = CSR | rs1 or uimm [19:15] | funct3 [14:12] | rd [11:7] | 1110011
    if ((word & 0x7f) !== 0x73 || word >>> 20 !== csr) continue;
    // funct3 0 and 4 are no CSR instructions; rs1 x0 and uimm 0 write zero (csrrw) or nothing (csrrs, csrrc).
    if ((word & 0x3000) !== 0 && (word & 0xf_8000) !== 0) ends.push(at + 4);
  }
  return ends;
}

const inner = { readable: true, writable: true, executable: true, user: true } as const;

function decode(entry: bigint, level: number, virtual: bigint): Entry | undefined {
  if ((entry & V) === 0n) return undefined;
  let page = (entry >> 10n) & ((1n << 44n) - 1n);
  const has = (bit: bigint): boolean => (entry & bit) !== 0n;
  if ((entry & (R | W | X)) === 0n) {
    // D, A and U are reserved here.
    return level === 0 || (entry & (D | A | U)) !== 0n
      ? undefined
      : { kind: 'table', physical: page << 12n, rights: inner };
  }
  if (has(W) && !has(R)) return undefined;
  if (has(N)) {
    if (level !== 0 || (page & 15n) !== 8n) return undefined;
    page = (page & ~15n) | ((virtual >> 12n) & 15n);
  }
  const physical = page << 12n;
  if (physical % BigInt(sizeAt(level)) !== 0n) return undefined;
  return {
    kind: 'leaf',
    physical,
    rights: { readable: has(R), writable: has(W), executable: has(X) && !has(U), user: has(U) },
  };
}

/** Global, accessed and dirty from the start, so that only rsptrace ever writes the entry. */
function encode(physical: Addr, rights: 'code' | 'data'): bigint {
  return ((addr(physical) >> 12n) << 10n) | V | R | G | A | D | (rights === 'code' ? X : W);
}

function executableEntry(entry: bigint): bigint {
  return entry | R | X | A;
}

function tableEntry(physical: Addr): bigint {
  return ((physical >> 12n) << 10n) | V;
}
