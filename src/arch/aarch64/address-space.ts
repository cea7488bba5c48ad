// Arm Architecture Reference Manual for A-profile, D8 "The AArch64 Virtual Memory System Architecture", the first stage
// at EL2, and at EL1 and EL0:
//
//   SCTLR_EL1  0 M
//   TCR_EL1    5:0 T0SZ | 7 EPD0 | 15:14 TG0 (4, 64, 16 KiB) | 21:16 T1SZ | 23 EPD1 |
//              31:30 TG1 (1: 16, 2: 4, 3: 64 KiB) | 34:32 IPS | 59 DS
//   TTBRn_EL1  63:48 ASID | 47:1 root table
//   table      63 NS | 62:61 APTable | 60 UXNTable | 59 PXNTable | 47:N next table | 1 | 1
//   MAIR_EL1   what memory each index in 4:2 of a leaf is
//   leaf       54 UXN | 53 PXN | 52 contiguous | 47:N page | 10 AF | 9:8 SH | 7:6 AP | 4:2 MAIR's index | 1 page | 1
//
// EL2 has registers of its own for the same, which are laid out so if HCR_EL2.E2H is set. Else it has one half:
//
//   TCR_EL2    5:0 T0SZ | 15:14 TG0 | 18:16 PS | 32 DS
//   table      60 XNTable; leaf: 54 XN | 6 is 1, and says nothing of users
//
// Addresses of 52 bits, where IPS is 6: TTBRn 5:2 are bits 51:48 of the root table, 64 KiB pages have these bits of an
// entry in 15:12. Smaller pages have them if DS is set (LPA2): 49:48 where they belong, 51:50 in 9:8, in place of SH.
//
// Refused: EL3, AArch32, the second stage, which a hypervisor's guests have. Not read: permission overlays and indirect
// permissions. A leaf without AF counts as mapped: its memory is there.
import { type Addr, addr } from '../../base/addr.js';
import type { Refusal } from '../../base/errors.js';
import type { RegisterReader } from '../../base/memory-reader.js';
import type { AddressSpaces, Translation } from '../pages/address-space.js';
import { type Entry, sizeAt, spaceOf, type Tables } from '../pages/page-walk.js';
import { M, ofEachLevel, type Regime, regimeOf, rootOf } from './privilege.js';

const VALID = 1n;
const TABLE = 2n;
/** Access from EL0; read-only. */
const AP1 = 1n << 6n;
const AP2 = 1n << 7n;
const SHARED = 3n << 8n;
const AF = 1n << 10n;
const PXN = 1n << 53n;
const UXN = 1n << 54n;
const PXN_TABLE = 1n << 59n;
const UXN_TABLE = 1n << 60n;
const AP_TABLE1 = 1n << 61n;
const AP_TABLE2 = 1n << 62n;
const ADDRESS = 0x0000_ffff_ffff_f000n;

/** Of a page, by TG0 and by TG1. */
const lowerPageBits: readonly (number | undefined)[] = [12, 16, 14, undefined];
const upperPageBits: readonly (number | undefined)[] = [undefined, 14, 12, 16];

export const addressSpaces: AddressSpaces = {
  registers: ofEachLevel('SCTLR_EL1', 'TCR_EL1', 'TTBR0_EL1', 'TTBR1_EL1', 'MAIR_EL1'),
  of(registers, physical) {
    const found = translation(registers);
    if ('refused' in found) return found;
    const pageBits = found.pages?.pageBits ?? 12;
    const regime = regimeOf(registers);
    const normal = normalMemory(regime.register('MAIR_EL1'));
    const bits = regime.isSingle ? single : shared;
    const { placed, share } = isLpa2(regime, pageBits)
      ? { placed: splitAddress, share: 0n }
      : { placed: asIs, share: SHARED };
    const largePageEntry = (at: Addr, rights: 'code' | 'data'): bigint | undefined =>
      normal === undefined || pageBits !== 12 ? undefined : placed(at) | share | encode(rights, normal, bits);
    const tableEntry = (at: Addr): bigint => placed(at) | VALID | TABLE;
    const entries = { largePageEntry, executableEntry: (entry: bigint) => entry & ~bits.never, tableEntry };
    return spaceOf(`${2 ** (pageBits - 10)} KiB`, found, physical, entries);
  },
  format: translation,
  alwaysPages: false,
  tableChanges: writesTables,
  guestPlaces: (registers, code) => (regimeOf(registers).level === 2 ? guestTables(code) : []),
  hardwareBits: AF | AP2,
  search: { levels: [3, 4], valid: 1, shift: 12, highBits: 0xffff },
};

/** MAIR_EL1: a byte for each index. The index of memory that is cached, written back, read and write allocated. */
function normalMemory(attributes: bigint | undefined): bigint | undefined {
  for (let index = 0n; index < 8n; index++) if ((((attributes ?? 0n) >> (8n * index)) & 0xffn) === 0xffn) return index;
  return undefined;
}

/** Of a kernel's own leaf: what each has, and what keeps the kernel from executing it. */
interface LeafBits {
  readonly each: bigint;
  readonly never: bigint;
}
const shared: LeafBits = { each: UXN, never: PXN };
const single: LeafBits = { each: AP1, never: UXN };

/** Accessed, global, and not for user mode. */
function encode(rights: 'code' | 'data', normal: bigint, { each, never }: LeafBits): bigint {
  return VALID | (normal << 2n) | AF | each | (rights === 'code' ? AP2 : never);
}

/** An address as it stands in an entry, without and with LPA2. */
const asIs = (physical: bigint): bigint => physical;
const splitAddress = (physical: bigint): bigint => (physical & ~HIGHEST) | ((physical & HIGHEST) >> 42n);
const HIGHEST = 3n << 50n;

/** TCR's DS: pages of 4 and 16 KiB have addresses of 52 bits. */
function isLpa2({ isSingle, register }: Regime, pageBits: number): boolean {
  const config = register('TCR_EL1') ?? 0n;
  return pageBits < 16 && ((config >> (isSingle ? 32n : 59n)) & 1n) === 1n;
}

/** msr of SCTLR_EL1, TTBR0_EL1, TTBR1_EL1 and TCR_EL1; those of EL2 have one bit more. */
const tableRegisters = [0xd518_1000, 0xd518_2000, 0xd518_2020, 0xd518_2040];
const OF_EL2 = 0x4_0000;

function writesTables(code: Uint8Array): readonly number[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const ends: number[] = [];
  for (let at = 0; at + 4 <= code.length; at += 4)
    if (tableRegisters.includes((view.getUint32(at, true) & 0xffff_ffe0 & ~OF_EL2) >>> 0)) ends.push(at + 4);
  return ends;
}

/** msr of VTTBR_EL2; kernels that leave EL2 write xzr. */
const GUEST_TABLE = 0xd51c_2100;
const ZERO = 31;

function guestTables(code: Uint8Array): readonly number[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const places: number[] = [];
  for (let at = 0; at + 4 <= code.length; at += 4) {
    const source = view.getUint32(at, true) - GUEST_TABLE;
    if (source >= 0 && source < ZERO) places.push(at);
  }
  return places;
}

function translation(registers: RegisterReader): Translation | Refusal {
  const regime = regimeOf(registers);
  const names = ['SCTLR_EL1', 'TCR_EL1', 'TTBR0_EL1', 'TTBR1_EL1'];
  const [control, config, lower, upper = regime.isSingle ? 0n : undefined] = names.map((name) => regime.register(name));
  const { level } = regime;
  if (registers.register('cpsr') !== undefined && level === undefined) return { refused: 'the hart runs 32-bit code' };
  if (level === 3) return { refused: 'the hart is at EL3, whose page tables are not read' };
  if (
    level === undefined ||
    control === undefined ||
    config === undefined ||
    lower === undefined ||
    upper === undefined
  )
    return { refused: `the stub does not give ${names.map(regime.nameOf).join(', ')}` };
  if (regime.isNested) return { refused: "the hart is in a hypervisor's guest, whose second page table is not read" };
  const user = level === 0;
  if ((control & M) === 0n) return { pages: undefined, user };
  const { isSingle } = regime;
  const field = (at: number, bits: number): number => Number((config >> BigInt(at)) & ((1n << BigInt(bits)) - 1n));
  const [hasLower, hasUpper] = isSingle ? [true, false] : [field(7, 1) === 0, field(23, 1) === 0];
  const [lowerBits, upperBits] = [lowerPageBits[field(14, 2)], upperPageBits[field(30, 2)]];
  const pageBits = hasLower ? lowerBits : upperBits;
  if (pageBits === undefined) return { refused: 'TCR has a page size that is not known' };
  if (hasUpper && upperBits !== pageBits) return { refused: 'the hart has pages of two sizes (TG0 and TG1 of TCR)' };
  const split = isLpa2(regime, pageBits);
  const form: EntryForm = {
    ...{ pageBits, isSingle, split },
    far: (pageBits === 16 || split) && field(isSingle ? 16 : 32, 3) === MOST_PHYSICAL,
  };
  const halves = {
    lower: hasLower ? tables(lower, field(0, 6), form) : undefined,
    upper: hasUpper ? tables(upper, field(16, 6), form) : undefined,
  };
  const decode = (entry: bigint, at: number): Entry | undefined => decodeEntry(entry, at, form);
  return { pages: { levels: 4, root: rootOf(lower), pageBits, halves, decode }, user };
}

/** IPS and PS: physical addresses have 52 bits. */
const MOST_PHYSICAL = 6;

/** What entries are read by. */
interface EntryForm {
  readonly pageBits: number;
  readonly isSingle: boolean;
  /** LPA2: the two highest bits of an address stand apart. */
  readonly split: boolean;
  /** Physical addresses have 52 bits. */
  readonly far: boolean;
}

/** Of a half whose addresses begin with `size` equal bits; undefined for a size that no table has. */
function tables(register: bigint, size: number, { pageBits, split, far }: EntryForm): Tables | undefined {
  const bits = 64 - size;
  const levels = Math.ceil((bits - pageBits) / (pageBits - 3));
  const root = far ? (rootOf(register) & ~0x3fn) | (((register >> 2n) & 0xfn) << 48n) : rootOf(register);
  return bits <= (split || pageBits === 16 ? 52 : 48) && levels >= 1 ? { levels, root, bits } : undefined;
}

function physicalIn(entry: bigint, { pageBits, split, far }: EntryForm): bigint {
  const low = entry & ADDRESS & -(1n << BigInt(pageBits));
  if (split) return low | (entry & (3n << 48n)) | ((entry << 42n) & HIGHEST);
  return far ? low | (((entry >> 12n) & 0xfn) << 48n) : low;
}

function decodeEntry(entry: bigint, level: number, form: EntryForm): Entry | undefined {
  if ((entry & VALID) === 0n) return undefined;
  const { pageBits, isSingle } = form;
  const has = (bit: bigint): boolean => (entry & bit) !== 0n;
  const isTable = has(TABLE);
  const physical = physicalIn(entry, form);
  if (level > 0 && isTable) {
    // One of them alone says so of other leaves than these tables lead to: kernels set UXNTable above their own.
    const executable = !(has(UXN_TABLE) && (isSingle || has(PXN_TABLE)));
    const rights = { readable: true, writable: !has(AP_TABLE2), executable, user: !has(AP_TABLE1) };
    return { kind: 'table', physical, rights };
  }
  // Wider addresses have leaves one level further up.
  const mostLevel = (pageBits === 12 ? 2 : 1) + (form.split || form.far ? 1 : 0);
  if ((level === 0) !== isTable || level > mostLevel) return undefined;
  const user = !isSingle && has(AP1);
  // What EL0 can write EL1 does not execute.
  const executable = !has(isSingle ? UXN : PXN) && (!user || has(AP2));
  const rights = { readable: true, writable: !has(AP2), executable, user };
  return { kind: 'leaf', physical: addr(physical & -BigInt(sizeAt(level, pageBits))), rights };
}
