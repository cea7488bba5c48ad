// .debug_cu_index and .debug_tu_index of a .dwp package: DWARF 5, section 7.3.5.3; before it GNU's version 2.
//
//   version (2, or 4 in GNU's) | padding (2) | section_count (4) | unit_count (4) | slot_count (4)
//   | signatures (8 a slot) | rows (4 a slot, from 1; 0: unused) | section identifiers (4 each)
//   | offsets (unit_count x section_count, 4 each) | sizes (the same)
//
// Its own hash table is not used: all slots are read once. Refused: version 1, which names whole sections.
import { ByteReader } from '../base/byte-reader.js';
import { RsptraceError } from '../base/errors.js';
import type { SectionSource } from '../elf/index.js';

/** The part of a package's section that belongs to one unit. */
export interface Contribution {
  readonly offset: number;
  readonly size: number;
}

interface IndexRow {
  /** The unit's dwo_id, or its type's signature: 16 hex digits. */
  readonly signature: string;
  /** By the section's name without `.dwo`. */
  readonly parts: ReadonlyMap<string, Contribution>;
}

/** By section identifier: DWARF 5, table 7.1, and GNU's of version 2. */
const SECTIONS_5: Readonly<Record<number, string>> = {
  1: '.debug_info',
  3: '.debug_abbrev',
  4: '.debug_line',
  5: '.debug_loclists',
  6: '.debug_str_offsets',
  8: '.debug_rnglists',
};
const SECTIONS_2: Readonly<Record<number, string>> = {
  1: '.debug_info',
  2: '.debug_types',
  3: '.debug_abbrev',
  4: '.debug_line',
  5: '.debug_loc',
  6: '.debug_str_offsets',
};

const BYTES_OF_ROW = 256;

/** The rows of an index; none if the file has no such section. Throws `DWARF_VERSION` or what the cursor throws. */
export function readUnitIndex(sections: SectionSource, name: '.debug_cu_index' | '.debug_tu_index'): IndexRow[] {
  const bytes = sections.get(name);
  if (bytes.length === 0) return [];
  const r = new ByteReader(bytes, name);
  const version = r.u16();
  r.skip(2);
  if (version !== 2 && version !== 5) {
    throw new RsptraceError('DWARF_VERSION', `${name} has version ${version}, which is not 2 or 5`);
  }
  const names = version === 5 ? SECTIONS_5 : SECTIONS_2;
  const [columns, units, slots] = [r.u32(), r.u32(), r.u32()];
  // Every table's place is known before any is read, so a count is never larger than the section allows.
  const table = (count: number, size: number): ByteReader => {
    const at = r.offset;
    if (count * size > r.remaining) throw r.truncated(`${count} words of its tables`);
    r.skip(count * size);
    return r.at(at, r.offset);
  };
  const signatures = table(slots, 8);
  const rows = table(slots, 4);
  const identifiers = table(columns, 4);
  const [offsets, sizes] = [table(units * columns, 4), table(units * columns, 4)];
  sections.budget.hold(units * BYTES_OF_ROW, name);
  const kinds = Array.from({ length: columns }, () => names[identifiers.u32()]);
  const all = Array.from({ length: units }, () => {
    const parts = new Map<string, Contribution>();
    for (const kind of kinds) {
      const part = { offset: offsets.u32(), size: sizes.u32() };
      if (kind !== undefined) parts.set(kind, part);
    }
    return parts;
  });
  const found: IndexRow[] = [];
  for (let slot = 0; slot < slots; slot++) {
    const signature = signatures.u64().toString(16).padStart(16, '0');
    const parts = all[rows.u32() - 1];
    if (parts !== undefined) found.push({ signature, parts });
  }
  return found;
}
