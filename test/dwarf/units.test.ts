// Headers that no guest holds, and files that are damaged, from what the writer in test/support builds; the numbers are
// the specification's or the test's own.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { Budget } from '../../src/base/budget.js';
import type { RsptraceError } from '../../src/base/errors.js';
import { AbbrevCache } from '../../src/dwarf/abbrev.js';
import { DebugInfo, type Die, DW_AT, DW_TAG, DW_FORM as F, sizeOf, typeName } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { debugOf } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../support/dwarf-writer.js';
import { ByteWriter, writeElf } from '../support/elf-writer.js';

t.test('type units are found by signature: DWARF 4 in .debug_types, DWARF 5 in .debug_info', async (t) => {
  for (const version of [4, 5]) {
    const writer = new DwarfWriter();
    const signature = 0xfeed_0000_0000_beefn;
    writer.unit({
      version,
      root: {
        tag: DW_TAG.compile_unit,
        children: [{ tag: DW_TAG.variable, label: 'v', attributes: [[DW_AT.type, F.ref_sig8, signature]] }],
      },
    });
    writer.unit({
      version,
      unitType: 2,
      signature,
      type: 't',
      root: {
        tag: DW_TAG.type_unit,
        children: [
          {
            tag: DW_TAG.structure_type,
            label: 't',
            attributes: [
              [DW_AT.name, F.string, 'Far'],
              [DW_AT.byte_size, F.data1, 24],
            ],
          },
        ],
      },
    });
    const debug = debugOf(writer);
    const type = debug.die(writer.labels.get('v') ?? -1)?.follow(DW_AT.type);
    t.equal(type?.name, 'Far');
    t.equal(sizeOf(type), 24);
    t.equal(typeName(type), 'Far');
  }
});

t.test('a damaged unit is left out with a warning, the others are used', async (t) => {
  const good = (name: string): DieSpec => ({
    tag: DW_TAG.compile_unit,
    attributes: [
      [DW_AT.name, F.string, name],
      [DW_AT.low_pc, F.addr, 0x1000],
      [DW_AT.high_pc, F.data1, 16],
    ],
    children: [],
  });
  const writer = new DwarfWriter();
  writer.unit({ version: 4, root: good('first') });
  writer.unit({ version: 9, root: good('of the future') });
  writer.unit({ version: 4, addressSize: 4, root: { tag: DW_TAG.compile_unit } });
  const broken = writer.unit({ version: 4, root: good('broken') });
  writer.unit({
    version: 4,
    root: {
      ...good('last'),
      children: [
        {
          tag: DW_TAG.subprogram,
          attributes: [
            [DW_AT.name, F.string, 'f'],
            [DW_AT.low_pc, F.addr, 0x1010],
            [DW_AT.high_pc, F.data1, 8],
          ],
        },
      ],
      attributes: [
        [DW_AT.name, F.string, 'last'],
        [DW_AT.low_pc, F.addr, 0x1010],
        [DW_AT.high_pc, F.data1, 16],
      ],
    },
  });
  // The broken unit's root has an abbreviation code that its table does not declare.
  writer.info.patch(broken + 11, 0x55, 1);
  writer.info.uint(0xffff_ffff, 4);
  const debug = debugOf(writer);
  t.equal(debug.units.length, 3);
  t.equal(debug.functionAt(addr(0x1012))?.name, 'f');
  t.equal(debug.functionAt(addr(0x1012))?.high, 0x1018n);
  t.match(debug.warnings[0], /unit at offset 0x\w+ was skipped: DWARF version 9/);
  t.match(debug.warnings[1], /addresses of 4 bytes/);
  t.match(debug.warnings[2], /it is 64-bit DWARF/);
  t.match(debug.warnings[3], /abbreviation 85 is not declared/);
});

t.test('abbreviation codes out of order, unknown tags, attributes and forms', async (t) => {
  const abbrev = new ByteWriter();
  abbrev.uleb(7).uleb(DW_TAG.compile_unit).u8(1).uleb(DW_AT.name).uleb(F.string).u8(0).u8(0);
  abbrev.uleb(300).uleb(0x4fff).u8(0).uleb(0x3ffe).uleb(F.udata).uleb(DW_AT.byte_size).uleb(F.data1).u8(0).u8(0);
  abbrev.uleb(3).uleb(DW_TAG.variable).u8(0).uleb(DW_AT.name).uleb(0x7e).u8(0).u8(0);
  abbrev.u8(0);
  const body = new ByteWriter().uint(4, 2).uint(0, 4).u8(8);
  body.uleb(7).cstr('unit').uleb(300).uleb(99999).u8(12).uleb(3).u8(0);
  const info = new ByteWriter().uint(body.length, 4).raw(body.bytes());
  const elf = writeElf({
    sections: [
      { name: '.debug_info', bytes: info.bytes() },
      { name: '.debug_abbrev', bytes: abbrev.bytes() },
    ],
  });
  const debug = DebugInfo.load(ElfFile.parse(elf, 'x'));
  const unit = debug.units[0];
  if (unit === undefined) throw new Error('no unit');
  const children = unit.root.children();
  const first = children.next().value as Die;
  t.equal(first.tag, 0x4fff);
  t.equal(first.number(0x3ffe), 99999);
  t.equal(first.number(DW_AT.byte_size), 12);
  t.equal(children.next().value?.tag, DW_TAG.variable);
  t.throws(() => children.next(), { code: 'DWARF_VERSION' });
});

t.test('abbreviation tables that overlap without end are refused', async (t) => {
  // A declaration of five bytes, over and over, without an end: a table may begin at each of them.
  const section = Uint8Array.from({ length: 100_000 }, (_, i) => [1, 0x24, 0, 0, 0][i % 5] as number);
  const cache = new AbbrevCache(section, new Budget('x', section.length, 0.1));
  const codes = new Set<string>();
  for (let i = 0; i < 100; i++) {
    try {
      cache.get(i * 5, 4);
    } catch (error) {
      codes.add((error as RsptraceError).code);
    }
  }
  t.same([...codes], ['INPUT_DAMAGED', 'ELF_TOO_COSTLY']);
});

t.test('files that are no usable ELF', async (t) => {
  const parse = (bytes: Uint8Array): ElfFile => ElfFile.parse(bytes, 'x');
  const good = writeElf({});
  t.equal(parse(good).machine, 243);
  t.throws(() => parse(Buffer.from('#!/bin/sh\n')), { code: 'ELF_NOT_ELF' });
  t.throws(() => parse(new Uint8Array(0)), { code: 'ELF_NOT_ELF' });
  t.throws(() => parse(good.map((b, i) => (i === 4 ? 1 : b))), { code: 'ARCH_UNSUPPORTED' });
  t.throws(() => parse(good.map((b, i) => (i === 5 ? 2 : b))), { code: 'ARCH_UNSUPPORTED' });
  t.throws(() => parse(good.subarray(0, good.length - 10)), {
    code: 'ELF_DAMAGED',
    message: /section header table at offset 0x/,
  });
  t.throws(() => DebugInfo.load(parse(good)), { code: 'DWARF_MISSING', hint: /debug = 2/ });
  const object = writeElf({ type: 1, sections: [{ name: '.debug_info', bytes: new Uint8Array(0) }] });
  t.same(DebugInfo.load(parse(object)).units, []);
  await t.rejects(ElfFile.open('/nonexistent/kernel.elf'), { code: 'ELF_UNREADABLE' });
  await t.rejects(ElfFile.open('/'), { code: 'ELF_UNREADABLE' });
  const bomb = new ByteWriter()
    .uint(1, 4)
    .uint(0, 4)
    .uint(1n << 40n, 8)
    .uint(1, 8)
    .raw([1, 2, 3]);
  t.throws(
    () =>
      parse(writeElf({ sections: [{ name: '.debug_str', bytes: bomb.bytes(), flags: 0x800 }] })).section('.debug_str'),
    { code: 'ELF_DAMAGED', message: /\.debug_str/ },
  );
});
