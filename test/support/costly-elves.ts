// Small ELF files that ask for hours or gigabytes: everything in them is in its place, and what repeats is told once and used over
// and over. Written by hand, so that each entry takes as few bytes as the format allows.
import { deflateSync } from 'node:zlib';
import { DW_AT, DW_FORM, DW_TAG } from '../../src/dwarf/index.js';
import { ByteWriter, type SectionSpec, writeElf } from './elf-writer.js';

type Attribute = readonly [name: number, form: number];
interface Declaration {
  readonly tag: number;
  readonly children?: boolean;
  readonly attributes: readonly Attribute[];
}

function abbreviations(declarations: readonly Declaration[]): Uint8Array {
  const out = new ByteWriter();
  declarations.forEach(({ tag, children, attributes }, i) => {
    out
      .uleb(i + 1)
      .uleb(tag)
      .u8(children === true ? 1 : 0);
    for (const [name, form] of attributes) out.uleb(name).uleb(form);
    out.u8(0).u8(0);
  });
  return out.u8(0).bytes();
}

/** One unit of DWARF 5: what `write` puts behind its header. */
function unit(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter().uint(0, 4).uint(5, 2).u8(1).u8(8).uint(0, 4);
  write(out);
  out.patch(0, out.length - 4, 4);
  return out.bytes();
}

function elf(...sections: SectionSpec[]): Uint8Array {
  const code = new Uint8Array(0x100);
  const text = { name: '.text', bytes: code, flags: 6, address: 0x1000n };
  return writeElf({ machine: 62, sections: [...sections, text], loads: [{ address: 0x1000n, bytes: code }] });
}

const section = (name: string, bytes: Uint8Array): SectionSpec => ({ name, bytes });
const RUST = 0x1c;
const root: Declaration = { tag: DW_TAG.compile_unit, children: true, attributes: [[DW_AT.language, DW_FORM.data1]] };

/** `count` entries, all with the one attribute at offset 0 of a section. */
function repeated(entry: Declaration, count: number, more: readonly SectionSpec[]): Uint8Array {
  const info = unit((out) => {
    out.u8(1).u8(RUST);
    for (let i = 0; i < count; i++) {
      out.u8(2).uint(0, 4);
      if (entry.children) out.u8(0);
    }
    out.u8(0);
  });
  return elf(section('.debug_info', info), section('.debug_abbrev', abbreviations([root, entry])), ...more);
}

/** Functions that share one list of ranges. */
function ranges(): Uint8Array {
  const entry = { tag: DW_TAG.subprogram, attributes: [[DW_AT.ranges, DW_FORM.sec_offset]] } as const;
  const list = new ByteWriter().raw([5]).uint(0x1000, 8);
  for (let i = 0; i < 9000; i++)
    list
      .u8(4)
      .uleb(i & 63)
      .uleb(64);
  return repeated(entry, 5000, [section('.debug_rnglists', list.u8(0).bytes())]);
}

/** Types of one name, which is all generic arguments. */
function names(): Uint8Array {
  const entry = { tag: DW_TAG.structure_type, attributes: [[DW_AT.name, DW_FORM.strp]] } as const;
  const text = new ByteWriter().cstr('Aa<>'.repeat(12_000));
  return repeated(entry, 5000, [section('.debug_str', text.bytes())]);
}

/** Symbols of names that lie in one another: the ends of one long text. */
function symbols(): Uint8Array {
  const count = 3000;
  const table = new ByteWriter().raw(new Uint8Array(24));
  for (let i = 0; i < count; i++)
    table
      .uint(i + 1, 4)
      .u8(0x12)
      .u8(0)
      .uint(1, 2)
      .uint(0x1000 + (i & 63), 8)
      .uint(1, 8);
  const text = new ByteWriter().u8(0).cstr('n'.repeat(500_000));
  return elf(
    { name: '.symtab', bytes: table.bytes(), type: 2, link: 2, entrySize: 24 },
    { name: '.strtab', bytes: text.bytes(), type: 3 },
  );
}

/** `_RINvC1a1f` of tuples, each of which holds the one before twice: 2^30 times the innermost. */
export function nested(seed: number): string {
  let name = `INvC1a${String(seed).length}${'f'.repeat(String(seed).length)}`;
  let at = name.length;
  name += 'TyyE';
  for (let i = 0; i < 30; i++) {
    const back = `B${base62(at)}`;
    at = name.length;
    name += `T${back}${back}E`;
  }
  return `_R${name}${'y'.repeat(seed)}E`;
}

function base62(value: number): string {
  const digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
  if (value === 0) return '_';
  let text = '';
  for (let rest = value - 1; text === '' || rest > 0; rest = Math.floor(rest / 62)) text = digits[rest % 62] + text;
  return `${text}_`;
}

/** Functions whose mangled names say the same over and over. */
function mangled(): Uint8Array {
  const table = new ByteWriter().raw(new Uint8Array(24));
  const text = new ByteWriter().u8(0);
  for (let i = 1; i < 100; i++) {
    table
      .uint(text.length, 4)
      .u8(0x12)
      .u8(0)
      .uint(1, 2)
      .uint(0x1000 + i, 8)
      .uint(1, 8);
    text.cstr(nested(i));
  }
  return elf(
    { name: '.symtab', bytes: table.bytes(), type: 2, link: 2, entrySize: 24 },
    { name: '.strtab', bytes: text.bytes(), type: 3 },
  );
}

/** Units whose line tables begin one byte after each other and all end at the same place. */
function lines(): Uint8Array {
  const length = 40_000;
  const count = 400;
  const header = (at: number): number[] => [
    ...new ByteWriter()
      .uint(length - at * 32 - 4, 4)
      .uint(4, 2)
      .uint(18, 4)
      .raw([1, 1, 1, 0, 1, 10])
      .raw([0, 0, 0, 0, 0, 0, 0, 0, 0])
      .raw([0, 0, 0])
      .bytes(),
  ];
  const table = new Uint8Array(length).fill(0x20);
  for (let i = 0; i < count; i++) table.set(header(i).slice(0, 32), i * 32);
  const units = new ByteWriter();
  const declaration: Declaration = {
    tag: DW_TAG.compile_unit,
    attributes: [[DW_AT.stmt_list, DW_FORM.sec_offset]],
  };
  for (let i = 0; i < count; i++) units.raw(unit((out) => out.u8(1).uint(i * 32, 4)));
  return elf(
    section('.debug_info', units.bytes()),
    section('.debug_abbrev', abbreviations([declaration])),
    section('.debug_line', table),
  );
}

/** Twenty sections that unpack to 16 MiB each. */
function packed(): Uint8Array {
  const stream = deflateSync(new Uint8Array(16 << 20));
  const bytes = new ByteWriter()
    .uint(1, 4)
    .uint(0, 4)
    .uint(16 << 20, 8)
    .uint(1, 8)
    .raw(stream)
    .bytes();
  const all = [
    ...['info', 'abbrev', 'str', 'line', 'line_str', 'ranges', 'rnglists', 'loc', 'loclists', 'addr'],
    ...['str_offsets', 'types', 'names', 'aranges', 'frame'],
  ];
  return elf(...all.map((name) => ({ name: `.debug_${name}`, bytes, flags: 0x800 })));
}

/** A section that is not what it says: unpacking fails at its end. */
export function brokenSection(): Uint8Array {
  const stream = deflateSync(Buffer.from('no debug info '.repeat(100_000)));
  const bytes = new ByteWriter().uint(1, 4).uint(0, 4).uint(1_400_001, 8).uint(1, 8).raw(stream).bytes();
  return elf({ name: '.debug_str', bytes, flags: 0x800 });
}

export const costlyElves: readonly (readonly [name: string, bytes: () => Uint8Array])[] = [
  ['ranges', ranges],
  ['names', names],
  ['symbols', symbols],
  ['mangled', mangled],
  ['lines', lines],
  ['packed', packed],
];
