// From a writer's units to what the engine reads of them.
import { DebugInfo, type Die, DW_AT, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { type DieSpec, DwarfWriter, type UnitSpec } from './dwarf-writer.js';
import type { SectionSpec } from './elf-writer.js';

export function debugOf(writer: DwarfWriter, more: readonly SectionSpec[] = []): DebugInfo {
  return DebugInfo.load(ElfFile.parse(writer.elf(more), 'test.elf'));
}

export function only(
  spec: Omit<UnitSpec, 'root'> & { root?: DieSpec },
  attributes: DieSpec['attributes'],
  more: readonly SectionSpec[] = [],
  prepare: (w: DwarfWriter) => void = () => {},
): Die {
  const writer = new DwarfWriter();
  prepare(writer);
  const v5 = spec.version >= 5;
  const bases = v5
    ? ([
        [DW_AT.str_offsets_base, F.sec_offset, 8],
        [DW_AT.addr_base, F.sec_offset, 8],
      ] as const)
    : [];
  writer.unit({
    ...spec,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: bases,
      children: [{ tag: DW_TAG.variable, label: 'it', attributes: attributes ?? [] }],
    },
  });
  const debug = debugOf(writer, more);
  const die = debug.die(writer.labels.get('it') ?? -1);
  if (die === undefined) throw new Error('no DIE');
  return die;
}
