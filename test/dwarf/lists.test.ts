// Range lists, location lists, line tables and variant parts of every kind that DWARF 2 to 5 know, from what the writer in
// test/support builds.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import {
  type Die,
  DW_AT,
  DW_OP,
  DW_TAG,
  DW_FORM as F,
  layoutOf,
  locationAt,
  locationsOf,
  plainRegister,
  qualifiedName,
  rangesOf,
  selectVariant,
  variantName,
} from '../../src/dwarf/index.js';
import { debugOf, only } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter, type UnitSpec } from '../support/dwarf-writer.js';
import { ByteWriter } from '../support/elf-writer.js';

t.test('ranges: DWARF 4 lists with base selection, every kind of DWARF 5 entry', async (t) => {
  const four = new ByteWriter();
  four.uint(0x10, 8).uint(0x20, 8).uint(0x30, 8).uint(0x30, 8);
  four.uint(-1, 8).uint(0x1800, 8).uint(1, 8).uint(2, 8).uint(0, 16);
  const writer = new DwarfWriter();
  writer.unit({
    version: 4,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: [
        [DW_AT.low_pc, F.addr, 0x1000],
        [DW_AT.ranges, F.sec_offset, 0],
      ],
    },
  });
  const debug = debugOf(writer, [{ name: '.debug_ranges', bytes: four.bytes() }]);
  t.strictSame(rangesOf(debug.units[0]?.root as Die), [
    { low: 0x1010, high: 0x1020 },
    { low: 0x1801, high: 0x1802 },
  ]);
  t.equal(debug.unitFor(addr(0x1015)), debug.units[0]);
  t.equal(debug.unitFor(addr(0x1020)), undefined, 'the end is not inside');

  const five = new ByteWriter().uint(0, 4).uint(5, 2).u8(8).u8(0).uint(1, 4);
  // One offset in the table (4 bytes), relative to the base behind the header.
  five.uint(4, 4);
  five.u8(1).uleb(0); // base_addressx
  five.u8(4).uleb(0x10).uleb(0x20); // offset_pair
  five.u8(2).uleb(0).uleb(1); // startx_endx
  five.u8(3).uleb(1).uleb(0x40); // startx_length
  five.u8(5).uint(0x1400, 8); // base_address
  five.u8(4).uleb(1).uleb(2);
  five.u8(6).uint(0x1500, 8).uint(0x1510, 8); // start_end
  five.u8(7).uint(0x1600, 8).uleb(0x80); // start_length
  five.u8(0);
  const die = only(
    { version: 5 },
    [[DW_AT.ranges, F.rnglistx, 0]],
    [{ name: '.debug_rnglists', bytes: five.bytes() }],
    (w) => w.addresses.uint(0x1100, 8).uint(0x1200, 8),
  );
  t.strictSame(
    rangesOf(die).map((r) => [r.low, r.high]),
    [
      [0x1110, 0x1120],
      [0x1100, 0x1200],
      [0x1200, 0x1240],
      [0x1401, 0x1402],
      [0x1500, 0x1510],
      [0x1600, 0x1680],
    ],
  );
});

t.test('location lists: every kind of DWARF 5 entry, the default one last, by an index into the table', async (t) => {
  const lists = new ByteWriter().uint(0, 4).uint(5, 2).u8(8).u8(0).uint(2, 4).uint(8, 4).uint(8, 4);
  const reg = (n: number): void => void lists.uleb(1).u8(DW_OP.reg0 + n);
  lists.u8(6).uint(0x1000, 8); // base_address
  lists.u8(4).uleb(0x10).uleb(0x20);
  reg(1);
  lists.u8(2).uleb(0).uleb(1); // startx_endx
  reg(2);
  lists.u8(3).uleb(1).uleb(0x10); // startx_length
  reg(3);
  lists.u8(7).uint(0x1400, 8).uint(0x1410, 8); // start_end
  reg(4);
  lists.u8(8).uint(0x1500, 8).uleb(4); // start_length
  reg(5);
  lists.u8(1).uleb(1); // base_addressx
  lists.u8(4).uleb(0x100).uleb(0x101);
  reg(6);
  lists.u8(5); // default_location
  reg(7);
  lists.u8(0);
  const die = only(
    { version: 5 },
    [[DW_AT.location, F.loclistx, 1]],
    [{ name: '.debug_loclists', bytes: lists.bytes() }],
    (w) => w.addresses.uint(0x1100, 8).uint(0x1200, 8),
  );
  t.strictSame(
    locationsOf(die, DW_AT.location).map(({ low, high }) => [low, high]),
    [
      [0x1010, 0x1020],
      [0x1100, 0x1200],
      [0x1200, 0x1210],
      [0x1400, 0x1410],
      [0x1500, 0x1504],
      [0x1300, 0x1301],
      [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
    ],
  );
  const at = (pc: number): number | undefined => locationAt(die, DW_AT.location, pc)?.[0];
  t.strictSame(
    [0x1010, 0x1020, 0x1100, 0x120f, 0x1400, 0x1503, 0x1300, 0x9999].map((pc) => (at(pc) ?? 0) - DW_OP.reg0),
    [1, 7, 2, 3, 4, 5, 6, 7],
  );
});

type Attributes = NonNullable<DieSpec['attributes']>;

/** The root of a unit with these attributes. */
function rootWith(
  unit: Omit<UnitSpec, 'root'>,
  attributes: Attributes,
  section?: [name: string, bytes: ByteWriter],
): Die {
  const writer = new DwarfWriter();
  writer.unit({ ...unit, root: { tag: DW_TAG.compile_unit, attributes } });
  const more = section === undefined ? [] : [{ name: section[0], bytes: section[1].bytes() }];
  return debugOf(writer, more).units[0]?.root as Die;
}

const pairs = (die: Die): [number, number][] => rangesOf(die).map(({ low, high }) => [low, high]);

t.test('ranges without a list: a beginning and an end', async (t) => {
  const of = (...attributes: Attributes): [number, number][] => pairs(rootWith({ version: 4 }, attributes));
  t.strictSame(of([DW_AT.low_pc, F.addr, 0x1000], [DW_AT.high_pc, F.data4, 0x20]), [[0x1000, 0x1020]]);
  t.strictSame(of([DW_AT.low_pc, F.addr, 0x1000], [DW_AT.high_pc, F.addr, 0x1020]), [[0x1000, 0x1020]]);
  t.strictSame(of([DW_AT.low_pc, F.addr, 0x1000], [DW_AT.high_pc, F.data4, 0]), [], 'empty');
  t.strictSame(of([DW_AT.low_pc, F.addr, 0x1000], [DW_AT.high_pc, F.addr, 0xfff]), [], 'reversed');
  t.strictSame(of([DW_AT.low_pc, F.addr, 0x1000]), [], 'no end');
  t.strictSame(of(), []);
  t.strictSame(of([DW_AT.ranges, F.string, 'no offset']), []);
});

t.test('ranges of DWARF 4: what ends a list, and what changes its base', async (t) => {
  const words = (size: number, ...numbers: number[]): ByteWriter =>
    numbers.reduce((out, number) => out.uint(number, size), new ByteWriter());
  const of = (lowPc: number | undefined, list: ByteWriter): [number, number][] => {
    const base = lowPc === undefined ? [] : ([[DW_AT.low_pc, F.addr, lowPc]] as const);
    const attributes = [...base, [DW_AT.ranges, F.sec_offset, 0]] as const;
    return pairs(rootWith({ version: 4 }, attributes, ['.debug_ranges', list]));
  };
  // Only two words of 0 end a list.
  t.strictSame(of(0x1000, words(8, 0, 8, 0x10, 0x18, 0, 0, 0x20, 0x28, 0, 0)), [
    [0x1000, 0x1008],
    [0x1010, 0x1018],
  ]);
  t.strictSame(of(undefined, words(8, 0x10, 0x18, 0, 0)), [[0x10, 0x18]], 'no beginning of the unit');
  // Half of an address that is all ones is none.
  t.strictSame(of(0, words(4, 0, 1, 4, 1, 0, 0, 0, 0)), [[0x1_0000_0000, 0x1_0000_0004]]);
  t.strictSame(of(0, words(4, -1, 0, 0, 1, 0, 0, 0, 0)), [[0xffff_ffff, 0x1_0000_0000]]);
  t.strictSame(of(0x1000, words(8, -1, 0x2000, 1, 2, 0, 0)), [[0x2001, 0x2002]]);
  t.strictSame(of(0, words(4, 0, 0, 0, 1, 0, 0, 0, 0)), [[0, 0x1_0000_0000]], 'its low half alone is no end');
});

t.test('an index into the table of lists', async (t) => {
  const table = new ByteWriter().uint(0, 4).uint(5, 2).u8(8).u8(0).uint(3, 4);
  // From behind the header: three offsets, then lists of 18 bytes each.
  for (const list of [0, 1, 2]) table.uint(12 + 18 * list, 4);
  for (const at of [0x1000, 0x2000, 0x3000])
    table
      .u8(6)
      .uint(at, 8)
      .uint(at + 4, 8)
      .u8(0);
  const found = [0, 1, 2].map((index) =>
    pairs(rootWith({ version: 5 }, [[DW_AT.ranges, F.rnglistx, index]], ['.debug_rnglists', table])),
  );
  t.strictSame(found, [[[0x1000, 0x1004]], [[0x2000, 0x2004]], [[0x3000, 0x3004]]]);
});

t.test('lists of DWARF 5: an end outside every address space', async (t) => {
  const far = Number.MAX_SAFE_INTEGER - 0x1000;
  const list = new ByteWriter().u8(7).uint(0x1000, 8).uleb(far); // start_length
  list.u8(5).uint(0x1000, 8).u8(4).uleb(0).uleb(far); // base_address, offset_pair
  list
    .u8(4)
    .uleb(far)
    .uleb(far + 1);
  list
    .u8(7)
    .uint(0x1000, 8)
    .uleb(2 ** 50)
    .u8(0);
  const ranges: Attributes = [[DW_AT.ranges, F.sec_offset, 0]];
  t.strictSame(pairs(rootWith({ version: 5 }, ranges, ['.debug_rnglists', list])), [[0x1000, 0x1000 + 2 ** 50]]);
});

t.test('lists of DWARF 5: empty and reversed ranges, and an entry of no known kind', async (t) => {
  const list = new ByteWriter().u8(6).uint(0x1000, 8).uint(0x1000, 8).u8(6).uint(0x1008, 8).uint(0x1000, 8);
  list.u8(6).uint(0x2000, 8).uint(0x2001, 8);
  const ranges: Attributes = [[DW_AT.ranges, F.sec_offset, 0]];
  const good = new ByteWriter().raw(list.bytes()).u8(0);
  t.strictSame(pairs(rootWith({ version: 5 }, ranges, ['.debug_rnglists', good])), [[0x2000, 0x2001]]);
  const bad = {
    code: 'DWARF_DAMAGED',
    message: /has a (range|location) list entry of the unknown kind 9 at offset 0x/,
  };
  const odd = new ByteWriter().raw(list.bytes()).u8(9).u8(0);
  t.throws(() => rangesOf(rootWith({ version: 5 }, ranges, ['.debug_rnglists', odd])), bad);
  const location: Attributes = [[DW_AT.location, F.sec_offset, 0]];
  const oddLocation = rootWith({ version: 5 }, location, ['.debug_loclists', new ByteWriter().u8(9).u8(0)]);
  t.throws(() => locationsOf(oddLocation, DW_AT.location), bad);
  const endless = rootWith({ version: 5 }, ranges, ['.debug_rnglists', list]);
  t.throws(() => rangesOf(endless), { code: 'INPUT_DAMAGED' });
});

t.test('locations: an expression alone, none, and a list of DWARF 4', async (t) => {
  const code = Uint8Array.of(DW_OP.reg0 + 3);
  const alone = rootWith({ version: 4 }, [[DW_AT.location, F.exprloc, code]]);
  const everywhere = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  t.strictSame(
    locationsOf(alone, DW_AT.location).map(({ low, high, expression }) => [{ low, high }, [...expression]]),
    [[everywhere, [...code]]],
  );
  t.strictSame([...(locationAt(alone, DW_AT.location, 5) ?? [])], [...code]);
  t.strictSame(locationsOf(alone, DW_AT.frame_base), []);
  t.equal(locationAt(alone, DW_AT.frame_base, 5), undefined);
  t.strictSame(locationsOf(rootWith({ version: 4 }, [[DW_AT.location, F.string, 'x']]), DW_AT.location), []);

  const list = new ByteWriter();
  list
    .uint(0x10, 8)
    .uint(0x20, 8)
    .uint(1, 2)
    .u8(DW_OP.reg0 + 1);
  list.uint(-1, 8).uint(0x2000, 8);
  list.uint(1, 8).uint(2, 8).uint(2, 2).u8(DW_OP.regx).u8(40);
  list.uint(0, 16);
  const old = rootWith(
    { version: 4 },
    [
      [DW_AT.low_pc, F.addr, 0x1000],
      [DW_AT.location, F.sec_offset, 0],
    ],
    ['.debug_loc', list],
  );
  t.strictSame(
    locationsOf(old, DW_AT.location).map(({ low, high, expression }) => [low, high, [...expression]]),
    [
      [0x1010, 0x1020, [DW_OP.reg0 + 1]],
      [0x2001, 0x2002, [DW_OP.regx, 40]],
    ],
  );
  t.equal(locationAt(old, DW_AT.location, 0x1020), undefined, 'its end is not inside, and there is no default');
});

t.test('an expression that is one register', async (t) => {
  const of = (...bytes: number[]): number | undefined => plainRegister(Uint8Array.of(...bytes));
  t.equal(of(), undefined);
  t.equal(of(DW_OP.reg0), 0);
  t.equal(of(DW_OP.reg31), 31);
  t.equal(of(DW_OP.reg0 + 5), 5);
  t.equal(of(DW_OP.reg0 - 1), undefined);
  t.equal(of(DW_OP.reg31 + 1), undefined, 'a memory place behind a register');
  t.equal(of(DW_OP.reg0 + 5, DW_OP.reg0), undefined, 'more follows');
  t.equal(of(DW_OP.regx, 0x85, 0x01), 133);
  t.equal(of(DW_OP.regx, 0x85, 0x01, DW_OP.reg0), undefined, 'more follows');
});

t.test('line tables of versions 2 to 5', async (t) => {
  for (const version of [2, 3, 4, 5]) {
    const header = new ByteWriter().u8(4);
    if (version >= 4) header.u8(1);
    header
      .u8(1)
      .u8(-5 & 0xff)
      .u8(14)
      .u8(13)
      .raw([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    if (version >= 5) {
      header.u8(1).uleb(1).uleb(F.string).uleb(2).cstr('/src').cstr('lib');
      header.u8(3).uleb(1).uleb(F.string).uleb(2).uleb(F.udata).uleb(5).uleb(F.data16);
      header.uleb(2).cstr('main.rs').uleb(0).raw(new Uint8Array(16)).cstr('a.rs').uleb(1).raw(new Uint8Array(16));
    } else {
      header.cstr('lib').u8(0);
      header.cstr('main.rs').uleb(0).uleb(0).uleb(0).cstr('a.rs').uleb(1).uleb(0).uleb(0).u8(0);
    }
    const program = new ByteWriter();
    program.u8(0).uleb(9).u8(2).uint(0x1000, 8); // set_address
    program.u8(4).uleb(version >= 5 ? 0 : 1); // set_file: main.rs
    program.u8(3).sleb(9).u8(1); // advance_line 9: row 0x1000 line 10
    program
      .u8(5)
      .uleb(7)
      .u8(13 + 2 * 14 + 5 + 1); // set_column 7; special: address + 2 * 4, line + 1
    program
      .u8(4)
      .uleb(version >= 5 ? 1 : 2)
      .u8(2)
      .uleb(1)
      .u8(3)
      .sleb(-3)
      .u8(6)
      .u8(1); // a.rs, + 4, line - 3, not a statement
    program.u8(8).u8(1); // const_add_pc: (255 - 13) / 14 = 17 instructions
    program.u8(9).uint(5, 2).u8(10).u8(11).u8(7).u8(1); // fixed_advance_pc 5
    program.u8(2).uleb(1).u8(0).uleb(1).u8(1); // + 4, end_sequence
    const body = new ByteWriter().uint(version, 2);
    if (version >= 5) body.u8(8).u8(0);
    body.uint(header.length, 4).raw(header.bytes()).raw(program.bytes());
    const writer = new DwarfWriter();
    writer.unit({
      version,
      root: {
        tag: DW_TAG.compile_unit,
        attributes: [
          [DW_AT.stmt_list, version >= 4 ? F.sec_offset : F.data4, 0],
          [DW_AT.comp_dir, F.string, '/src'],
          [DW_AT.low_pc, F.addr, 0x1000],
          [DW_AT.high_pc, version >= 4 ? F.data2 : F.addr, version >= 4 ? 0x100 : 0x1100],
        ],
      },
    });
    const debug = debugOf(writer, [
      { name: '.debug_line', bytes: new ByteWriter().uint(body.length, 4).raw(body.bytes()).bytes() },
    ]);
    const rows = Array.from({ length: debug.lineTable(debug.units[0] as never)?.count ?? 0 }, (_, i) =>
      debug.lineTable(debug.units[0] as never)?.row(i),
    );
    const [main, a] = version >= 5 ? [0, 1] : [1, 2];
    t.strictSame(rows, [
      { address: 0x1000, file: main, line: 10, column: 0, isStmt: true, endSequence: false },
      { address: 0x1008, file: main, line: 11, column: 7, isStmt: true, endSequence: false },
      { address: 0x100c, file: a, line: 8, column: 7, isStmt: false, endSequence: false },
      { address: 0x1050, file: a, line: 8, column: 7, isStmt: false, endSequence: false },
      { address: 0x1055, file: a, line: 8, column: 7, isStmt: false, endSequence: false },
      { address: 0x1059, file: a, line: 8, column: 7, isStmt: false, endSequence: true },
    ]);
    t.strictSame(debug.lineAt(addr(0x1009)), { file: '/src/main.rs', line: 11, column: 7 });
    t.strictSame(debug.lineAt(addr(0x1058)), { file: '/src/lib/a.rs', line: 8, column: 7 });
    t.equal(debug.fileName(debug.units[0] as never, a)?.short, 'lib/a.rs');
    t.equal(debug.lineAt(addr(0x1059)), undefined);
    t.strictSame(debug.warnings, []);
  }
});

t.test('a line table by whose range no opcode can divide is damaged, not too short', async (t) => {
  const header = new ByteWriter()
    .u8(1)
    .u8(1)
    .u8(1)
    .u8(-5 & 0xff)
    .u8(0)
    .u8(13); // a line range of 0
  header
    .raw(Uint8Array.of(0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))
    .u8(0)
    .u8(0);
  for (const opcode of [20, 8]) {
    const body = new ByteWriter().uint(4, 2).uint(header.length, 4).raw(header.bytes()).u8(opcode);
    const writer = new DwarfWriter();
    const attributes: Attributes = [[DW_AT.stmt_list, F.sec_offset, 0]];
    writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, attributes } });
    const bytes = new ByteWriter().uint(body.length, 4).raw(body.bytes()).bytes();
    const debug = debugOf(writer, [{ name: '.debug_line', bytes }]);
    t.equal(debug.lineTable(debug.units[0] as never), undefined);
    t.match(debug.warnings[0], /\.debug_line has a line range of 0/);
  }
});

t.test('variant parts: lists of discriminants, ranges, a default', async (t) => {
  const writer = new DwarfWriter();
  const member = (name: string): DieSpec => ({
    tag: DW_TAG.member,
    attributes: [
      [DW_AT.name, F.string, name],
      [DW_AT.data_member_location, F.data1, 8],
    ],
  });
  writer.unit({
    version: 5,
    root: {
      tag: DW_TAG.compile_unit,
      children: [
        {
          tag: DW_TAG.base_type,
          label: 'u8',
          attributes: [
            [DW_AT.name, F.string, 'u8'],
            [DW_AT.byte_size, F.data1, 1],
          ],
        },
        {
          tag: DW_TAG.namespace,
          attributes: [[DW_AT.name, F.string, 'm']],
          children: [
            {
              tag: DW_TAG.structure_type,
              label: 'e',
              attributes: [
                [DW_AT.name, F.string, 'E'],
                [DW_AT.byte_size, F.data1, 16],
              ],
              children: [
                {
                  tag: DW_TAG.variant_part,
                  attributes: [[DW_AT.discr, F.ref4, { ref: 'tag' }]],
                  children: [
                    {
                      tag: DW_TAG.member,
                      label: 'tag',
                      attributes: [
                        [DW_AT.type, F.ref4, { ref: 'u8' }],
                        [DW_AT.data_member_location, F.data1, 3],
                      ],
                    },
                    {
                      tag: DW_TAG.variant,
                      attributes: [[DW_AT.discr_list, F.block1, Uint8Array.of(0, 1, 1, 5, 9)]],
                      children: [member('A')],
                    },
                    { tag: DW_TAG.variant, attributes: [[DW_AT.discr_value, F.sdata, -1]], children: [member('B')] },
                    { tag: DW_TAG.variant, children: [member('C')] },
                  ],
                },
              ],
            },
          ],
        },
      ],
    },
  });
  const debug = debugOf(writer);
  const type = debug.die(writer.labels.get('e') ?? -1) as Die;
  t.equal(qualifiedName(type), 'm::E');
  const { variantPart, size } = layoutOf(type);
  t.equal(size, 16);
  t.strictSame(variantPart?.discriminant, { offset: 3, size: 1 });
  const chosen = (n: bigint): string | undefined => {
    const variant = variantPart && selectVariant(variantPart.variants, n);
    return variant && variantName(variant);
  };
  t.strictSame([0n, 1n, 2n, 5n, 9n, 10n, 255n].map(chosen), ['C', 'A', 'C', 'A', 'A', 'C', 'B']);
});
