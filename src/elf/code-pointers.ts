// Addresses that a program keeps in its data: gABI chapter 4, "Relocation", SHT_RELR with its bitmaps. A program at
// fixed addresses has them as plain words.
//
//   SHT_RELA: r_offset (8) | r_info (8): type in the low half, symbol in the high half | r_addend (8)
//
// More are found than there are: every relocation counts as an address, whatever its type says of it, because each
// psABI has types of its own. In a program at fixed addresses every aligned word of 4 or 8 bytes counts.
import { type Addr, addr } from '../base/addr.js';
import type { CodeAddress } from './code-address.js';
import type { ElfFile } from './elf.js';
import type { ElfSection } from './headers.js';
import { ET, SHF } from './headers.js';
import { packedPlaces, SHT_RELR } from './loaded-image.js';

const PT_LOAD = 1;
const PF_X = 1;
const SHT_RELA = 4;
const ENTRY = 24;

/** Calls `found` with each. */
export function codePointers(elf: ElfFile, found: (address: CodeAddress) => void): void {
  for (const section of elf.sections) {
    if ((section.flags & SHF.ALLOC) === 0) continue;
    if (section.type === SHT_RELA) addends(elf, section, found);
    else if (section.type === SHT_RELR) packed(elf, section, found);
  }
  if (elf.type !== ET.EXEC) return;
  const code = elf.sections.filter(({ flags }) => (flags & SHF.EXECINSTR) !== 0);
  for (const { type, address, fileSize, flags } of elf.segments) {
    if (type !== PT_LOAD || (code.length === 0 && (flags & PF_X) !== 0)) continue;
    let from: bigint = address;
    for (const one of [...code, { address: address + BigInt(fileSize), size: 0 }]) {
      if (one.address < from || one.address > address + BigInt(fileSize)) continue;
      words(elf, addr(from), Number(one.address - from), found);
      from = one.address + BigInt(one.size);
    }
  }
}

function addends(elf: ElfFile, section: ElfSection, found: (address: CodeAddress) => void): void {
  const view = viewOf(elf.rawSection(section));
  const symbols = viewOf(elf.sections[section.link] && elf.rawSection(elf.sections[section.link] as ElfSection));
  elf.budget.spend(view.byteLength / ENTRY, section.name);
  for (let at = 0; at + ENTRY <= view.byteLength; at += ENTRY) {
    const symbol = view.getUint32(at + 12, true) * ENTRY;
    const [low, high] = [view.getUint32(at + 16, true), view.getUint32(at + 20, true)];
    // Symbol 0 has the value 0.
    const isKnown = symbol > 0 && symbol + ENTRY <= symbols.byteLength;
    const value = isKnown ? symbols.getBigUint64(symbol + 8, true) : 0n;
    const base = elf.codes.ofFile(Number(value & 0xffff_ffffn), Number(value >> 32n));
    found(isKnown ? elf.codes.plus(base, low, high) : elf.codes.ofFile(low, high));
  }
}

function packed(elf: ElfFile, section: ElfSection, found: (address: CodeAddress) => void): void {
  for (const place of packedPlaces(elf, section)) {
    const bytes = elf.bytesAt(elf.codes.fromCode(place), 8);
    if (!bytes) continue;
    const word = viewOf(bytes);
    found(elf.codes.ofMemory(word.getUint32(0, true), word.getUint32(4, true)));
  }
}

function words(elf: ElfFile, start: Addr, size: number, found: (address: CodeAddress) => void): void {
  const view = viewOf(elf.bytesAt(start, size));
  elf.budget.spend(view.byteLength / 4, 'the data');
  for (let at = (4 - Number(start & 3n)) % 4; at + 4 <= view.byteLength; at += 4) {
    const low = view.getUint32(at, true);
    // Zero- and sign-extended are the same below 2 GiB, and at the top.
    found(low < 0x8000_0000 ? low : elf.codes.ofFile(low, 0xffff_ffff));
    if (low >= 0x8000_0000) found(low);
    if (at + 8 <= view.byteLength) found(elf.codes.ofFile(low, view.getUint32(at + 4, true)));
  }
}

function viewOf(bytes: Uint8Array | undefined): DataView {
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new DataView(new ArrayBuffer(0));
}
