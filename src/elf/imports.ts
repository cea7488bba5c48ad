// Which word of memory the loader gives the address of which imported function: gABI chapter 4, "Relocation", SHT_RELA
// with a symbol (R_*_JUMP_SLOT, R_*_GLOB_DAT, R_*_64).
//
//   r_offset (8) | r_info (8): type in the low half, symbol in the high half | r_addend (8)

import { asText, textAt } from '../base/file-bytes.js';
import type { CodeAddress } from './code-address.js';
import type { ElfFile } from './elf.js';
import { SHF } from './headers.js';

const SHT_RELA = 4;
const ENTRY = 24;

/** Names by words, as far as they are of the dynamic symbols. */
export function importSlots(elf: ElfFile): ReadonlyMap<CodeAddress, string> {
  const found = new Map<CodeAddress, string>();
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA || (section.flags & SHF.ALLOC) === 0) continue;
    const table = elf.sections[section.link];
    const strings = table && elf.sections[table.link];
    const [rows, symbols, names] = [section, table, strings].map((one) => (one ? elf.rawSection(one) : undefined));
    if (!rows || !symbols || !names) continue;
    elf.budget.spend(rows.length / ENTRY, section.name);
    const [view, own] = [rows, symbols].map((bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (!view || !own) continue;
    const text = asText(names);
    for (let at = 0; at + ENTRY <= view.byteLength; at += ENTRY) {
      const symbol = view.getUint32(at + 12, true) * ENTRY;
      if (symbol === 0 || symbol + ENTRY > own.byteLength) continue;
      const name = textAt(text, own.getUint32(symbol, true), elf.budget, section.name);
      const place = elf.codes.ofFile(view.getUint32(at, true), view.getUint32(at + 4, true));
      if (name) found.set(place, name);
    }
  }
  return found;
}
