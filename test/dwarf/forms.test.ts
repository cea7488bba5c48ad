// Attributes of every form, in any order, at the ends of units and past them: what is written is what is read.
import fc from 'fast-check';
import t from 'tap';
import { Budget } from '../../src/base/budget.js';
import { ByteReader } from '../../src/base/byte-reader.js';
import { AbbrevCache, AbbrevTable } from '../../src/dwarf/abbrev.js';
import { fixedSize, lebEnd, SKIP, skipStep, u16At, u32At, ulebAt } from '../../src/dwarf/form-sizes.js';
import { isConstantForm } from '../../src/dwarf/forms.js';
import { type Die, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { debugOf, only } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../support/dwarf-writer.js';
import { ByteWriter } from '../support/elf-writer.js';

type Attribute = NonNullable<DieSpec['attributes']>[number];

/** Attribute `name` of some form, and whether what is read of it is what was written. */
interface Written {
  readonly form: number;
  readonly value: Attribute[2];
  readonly isRead: (die: Die, name: number) => boolean;
}

const written = <T extends Attribute[2]>(
  form: number,
  values: fc.Arbitrary<T>,
  isRead: (die: Die, name: number, value: T) => boolean,
): fc.Arbitrary<Written> => values.map((value) => ({ form, value, isRead: (die, name) => isRead(die, name, value) }));
const natural = (form: number, bits: bigint): fc.Arbitrary<Written> =>
  written(form, fc.bigInt(0n, (1n << bits) - 1n), (die, name, value) => {
    return die.big(name) === value && (bits > 53n || die.number(name) === Number(value));
  });
const blocks = (form: number): fc.Arbitrary<Written> =>
  written(form, fc.uint8Array({ maxLength: 200 }), (die, name, value) => {
    return Buffer.compare(die.block(name) ?? Buffer.from('none'), value) === 0;
  });
const texts = (form: number): fc.Arbitrary<Written> => {
  const values = fc.string({ maxLength: 20 }).map((text) => text.replaceAll('\0', ''));
  return written(form, values, (die, name, value) => die.string(name) === value);
};
const words = (form: number): fc.Arbitrary<Written> =>
  written(form, fc.constantFrom(0, 1), (die, name, value) => die.code(name) === [0x1100, 0x1200][value]);
const references = (form: number): fc.Arbitrary<Written> =>
  written(form, fc.constant({ ref: 'it' }), (die, name) => die.reference(name) === die.offset);
/** What is of a class that no reader answers. */
const absent = (form: number): fc.Arbitrary<Written> =>
  written(form, fc.constant(5), (die, name) =>
    [die.string(name), die.reference(name), die.code(name), die.block(name)].every((found) => found === undefined),
  );

const ofAnyVersion: readonly fc.Arbitrary<Written>[] = [
  natural(F.data1, 8n),
  natural(F.data2, 16n),
  natural(F.data4, 32n),
  natural(F.data8, 64n),
  natural(F.sec_offset, 32n),
  natural(F.udata, 64n),
  written(F.sdata, fc.bigInt(-(1n << 63n), (1n << 63n) - 1n), (die, name, value) => die.big(name) === value),
  written(F.flag, fc.nat(255), (die, name, value) => die.flag(name) === value > 0 && die.number(name) === value),
  written(F.addr, fc.nat(0x7fff_ffff), (die, name, value) => die.code(name) === value),
  written(F.flag_present, fc.constant(1), (die, name) => die.flag(name)),
  ...[F.block1, F.block2, F.block4, F.block, F.exprloc].map(blocks),
  ...[F.string, F.strp].map(texts),
  ...[F.ref1, F.ref2, F.ref4, F.ref8, F.ref_addr].map(references),
  ...[F.GNU_strp_alt, F.GNU_ref_alt].map(absent),
];

const ofDwarf5: readonly fc.Arbitrary<Written>[] = [
  natural(F.data16, 128n),
  natural(F.loclistx, 32n),
  written(F.implicit_const, fc.integer({ min: -1000, max: 1000 }), (die, name, value) => {
    return die.number(name) === value && die.big(name) === BigInt(value);
  }),
  ...[F.line_strp, F.strx, F.strx1, F.strx2, F.strx3, F.strx4, F.GNU_str_index].map(texts),
  ...[F.addrx, F.addrx1, F.addrx2, F.addrx3, F.addrx4, F.GNU_addr_index].map(words),
  ...[F.ref_sup4, F.ref_sup8, F.strp_sup].map(absent),
];

const units = [2, 3, 4, 5].map((version) => ({ version }));

/** The attributes of one DIE; those behind one show that it was passed over rightly. */
const attributesOf = (...forms: readonly fc.Arbitrary<Written>[]): fc.Arbitrary<Written[]> =>
  fc.array(fc.oneof(...forms), { minLength: 1, maxLength: 12 });

t.test('attributes of any forms in any order are what was written', async () => {
  const prepare = (w: DwarfWriter): void => void w.addresses.uint(0x1100, 8).uint(0x1200, 8);
  const areRead = (unit: (typeof units)[number], all: readonly Written[]): void => {
    const attributes = all.map(({ form, value }, i): Attribute => [0x2001 + i, form, value]);
    const die = only(unit, attributes, [], prepare);
    for (const [i, { form, value, isRead }] of all.entries())
      if (!isRead(die, 0x2001 + i)) throw new Error(`form 0x${form.toString(16)}, ${String(value)}`);
    if (die.number(0x2fff) !== undefined) throw new Error('an attribute that is not there');
  };
  fc.assert(fc.property(fc.constantFrom(...units), attributesOf(...ofAnyVersion), areRead), { seed: 32, numRuns: 800 });
  fc.assert(fc.property(fc.constant({ version: 5 }), attributesOf(...ofAnyVersion, ...ofDwarf5), areRead), {
    seed: 31,
    numRuns: 400,
  });
});

/** The root of a unit that ends with these bytes: what is there of a form's value. */
function ending(form: number, value: Uint8Array | readonly number[], version = 4): Die {
  const writer = new DwarfWriter();
  const attributes: Attribute[] = [[0x2001, form, Uint8Array.from(value)]];
  writer.unit({ version, isSpelt: true, root: { tag: DW_TAG.compile_unit, attributes } });
  // What comes behind it is none of its own.
  writer.unit({ version, root: { tag: DW_TAG.compile_unit, attributes: [[0x2001, F.string, 'the next']] } });
  const [unit] = debugOf(writer).units;
  if (unit === undefined) throw new Error('no unit');
  return unit.root;
}

const damaged = { code: 'DWARF_DAMAGED' };
const times = (count: number, byte: number): number[] => Array<number>(count).fill(byte);

t.test('a value that ends where its unit does is read, and one that does not is damage', async (t) => {
  for (const [form, bytes] of [
    [F.data1, 1],
    [F.data2, 2],
    [F.data4, 4],
    [F.data8, 8],
    [F.sec_offset, 4],
    [F.data16, 16],
  ] as const) {
    let expected = 0n;
    for (let i = 0; i < bytes; i++) expected |= 7n << BigInt(i * 8);
    t.equal(ending(form, times(bytes, 7)).big(0x2001), expected);
    t.throws(() => ending(form, times(bytes - 1, 7)).big(0x2001), damaged, `form 0x${form.toString(16)}`);
  }
  t.equal(ending(F.udata, [0x80, 1]).number(0x2001), 128);
  t.throws(() => ending(F.udata, [0x80, 0x80]).number(0x2001), damaged);
  t.throws(() => ending(F.sdata, [0x80, 0x80]).big(0x2001), damaged);
  t.same([...(ending(F.block1, [2, 5, 6]).block(0x2001) ?? [])], [5, 6]);
  t.throws(() => ending(F.block1, [3, 5, 6]).block(0x2001), damaged);
  t.same([...(ending(F.block2, [1, 0, 5]).block(0x2001) ?? [])], [5]);
  t.throws(() => ending(F.block2, [1, 1, 5]).block(0x2001), damaged);
  t.throws(() => ending(F.block4, [1, 0, 1, 0, 5]).block(0x2001), damaged);
  t.throws(() => ending(F.exprloc, [2, 5]).block(0x2001), damaged);
  t.equal(ending(F.string, [0x68, 0x69, 0]).string(0x2001), 'hi');
  t.throws(() => ending(F.string, [0x68, 0x69]).string(0x2001), damaged);
  t.equal(ending(F.addr, [1, ...times(7, 0)]).code(0x2001), 1);
  t.throws(() => ending(F.addr, times(7, 0)).code(0x2001), damaged);
});

t.test('numbers of up to 128 bits, in LEB128 and in blocks', async (t) => {
  t.equal(ending(F.udata, [...times(18, 0x80), 1]).big(0x2001), 1n << 126n);
  t.throws(() => ending(F.udata, [...times(19, 0x80), 1]).big(0x2001), damaged);
  t.equal(ending(F.sdata, [0x7f]).big(0x2001), -1n);
  t.equal(ending(F.sdata, [0xff, 0]).big(0x2001), 127n);
  t.equal(ending(F.block1, [16, ...times(16, 0xff)]).big(0x2001), (1n << 128n) - 1n);
  t.equal(ending(F.block1, [17, ...times(17, 0xff)]).big(0x2001), undefined);
  t.equal(ending(F.block1, [1, 2]).number(0x2001), undefined, 'a block is no number');
  t.equal(ending(F.data16, times(16, 1)).block(0x2001)?.length, 16);
  t.equal(ending(F.string, [0]).big(0x2001), undefined);
});

t.test('what points outside is damage', async (t) => {
  for (const target of [0, 10, 0xff]) t.throws(() => ending(F.ref1, [target]).reference(0x2001), damaged, `${target}`);
  // The DIE begins behind a header of 11 bytes; the unit has 13: an abbreviation code, this reference.
  t.equal(ending(F.ref1, [11]).reference(0x2001), 11);
  t.equal(ending(F.ref1, [12]).reference(0x2001), 12);
  t.throws(() => ending(F.ref1, [13]).reference(0x2001), damaged, 'the begin of the next unit');
  t.equal(ending(F.ref_udata, [11]).reference(0x2001), 11);
  t.throws(() => ending(F.strp, [0xff, 0, 0, 0]).string(0x2001), damaged);
  const prepare = (w: DwarfWriter): void => void w.addresses.uint(0x1100, 8);
  const beyond = only(
    { version: 5 },
    [
      [0x2001, F.addrx, 1],
      [0x2002, F.addrx, 0],
    ],
    [],
    prepare,
  );
  t.throws(() => beyond.code(0x2001), damaged);
  t.equal(beyond.code(0x2002), 0x1100);
  const strings = only({ version: 5, isSpelt: true }, [
    [0x2001, F.strx1, 'one'],
    [0x2002, F.strx, Uint8Array.of(0)],
    [0x2003, F.strx, Uint8Array.of(1)],
  ]);
  t.equal(strings.string(0x2002), 'one');
  t.throws(() => strings.string(0x2003), damaged);
});

t.test('sizes of forms: DWARF 5, section 7.5.6', async (t) => {
  t.equal(fixedSize(F.ref_addr, 2), 8);
  t.equal(fixedSize(F.ref_addr, 3), 4);
  for (const none of [0, 2, 0x16, 0x7e, 0x1ffe, 0x5555]) t.equal(fixedSize(none, 5), SKIP.unknown);
  const skipped = (step: number, ...bytes: number[]): number => skipStep(Uint8Array.from(bytes), 1, step);
  t.equal(skipped(SKIP.leb, 9, 0x80, 1, 9), 3);
  t.equal(skipped(SKIP.string, 0, 0x68, 0, 9), 3);
  t.equal(skipped(SKIP.string, 0, 0x68), 3, 'past the end');
  t.equal(skipped(SKIP.block1, 9, 3, 0, 0, 0), 5);
  t.equal(skipped(SKIP.block2, 9, 1, 2), 1 + 2 + 0x201);
  t.equal(skipped(SKIP.block4, 9, 1, 2, 3, 4), 1 + 4 + 0x4030201);
  t.equal(skipped(SKIP.block, 9, 0x81, 1), 3 + 129);
  t.throws(() => skipped(SKIP.unknown, 9, 9), { code: 'DWARF_VERSION', message: /uses an unknown form$/ });
  t.equal(lebEnd(Uint8Array.from(times(100, 0x80)), 0), 65, 'a number without an end');
  t.equal(lebEnd(Uint8Array.of(0x80, 0x80), 0), 3);
  t.equal(ulebAt(Uint8Array.of(0x7f), 0), 127);
  t.equal(ulebAt(Uint8Array.of(9, 0x80, 0x81, 0x01), 1), 16512);
  t.equal(ulebAt(Uint8Array.from(times(12, 0xff)), 0), Number((1n << 70n) - 1n), 'ten bytes of it');
  t.equal(u16At(Uint8Array.of(9, 0x34, 0x12), 1), 0x1234);
  t.equal(u32At(Uint8Array.of(9, 0x78, 0x56, 0x34, 0xf2), 1), 0xf2345678);
  const constants = [F.data1, F.data2, F.data4, F.data8, F.udata, F.sdata, F.implicit_const];
  t.same(Object.values(F).filter(isConstantForm).sort(), constants.sort());
});

/** Declarations: their code, tag and attributes. */
function abbreviations(...rows: readonly (readonly [number, number, ...(readonly [number, number])[]])[]): ByteWriter {
  const w = new ByteWriter();
  for (const [code, tag, ...attributes] of rows) {
    w.uleb(code).uleb(tag).u8(0);
    for (const [name, form] of attributes) w.uleb(name).uleb(form);
    w.u8(0).u8(0);
  }
  return w.u8(0);
}
const tableOf = (w: ByteWriter): AbbrevTable => new AbbrevTable(new ByteReader(w.bytes(), 'a table'), 5);

t.test('a code has its first declaration, whatever the order', async (t) => {
  const inOrder = tableOf(abbreviations([1, 0x11], [2, 0x22], [3, 0x33]));
  t.same(
    [0, 1, 2, 3, 4].map((code) => inOrder.row(code)),
    [-1, 0, 1, 2, -1],
  );
  const mixed = tableOf(abbreviations([1, 0x11], [2, 0x22], [7, 0x77], [2, 0x99], [7, 0x98], [3, 0x33]));
  t.same(
    [0, 1, 2, 3, 7, 8].map((code) => mixed.row(code)),
    [-1, 0, 1, 5, 2, -1],
  );
  t.equal(mixed.tag[mixed.row(7)], 0x77);
});

t.test('an attribute is found in its own declaration, and skipped with what is before it', async (t) => {
  const table = tableOf(
    abbreviations(
      [1, 0x11, [0x10, F.data4], [0x20, F.udata], [0x30, F.data2], [0x40, F.data1]],
      [2, 0x22, [0x50, F.data8]],
    ),
  );
  t.same(
    [0x10, 0x20, 0x30, 0x40, 0x50].map((name) => table.find(0, name)),
    [0, 1, 2, 3, -1],
  );
  t.same(
    [0x10, 0x50].map((name) => table.find(1, name)),
    [-1, 4],
  );
  const bytes = Uint8Array.from([9, 1, 1, 1, 1, 0x80, 1, 2, 2, 3, 9]);
  t.same(
    [0, 1, 2, 3].map((index) => table.locate(bytes, 1, 0, index)),
    [1, 5, 7, 9],
  );
  t.equal(table.skip(bytes, 1, 0), 10);
  t.equal(table.skip(bytes, 1, 1), 9);
});

t.test('a tag, an attribute or a form past 32 bits is no other one', async (t) => {
  const past = 2 ** 32;
  t.equal(tableOf(abbreviations([1, past - 1, [past - 1, F.data1]])).tag[0], past - 1);
  t.throws(() => tableOf(abbreviations([1, past + 0x2e])), {
    ...damaged,
    message: /past 2\^32 for the tag at offset 0x1$/,
  });
  t.throws(() => tableOf(abbreviations([1, 0x11, [past + 3, F.data1]])), damaged);
  t.throws(() => tableOf(abbreviations([1, 0x11, [3, past + F.data1]])), damaged);
});

t.test('a declaration has at most 256 attributes', async (t) => {
  const many = (count: number): ByteWriter =>
    abbreviations([1, 0x11, ...Array.from({ length: count }, (_, i) => [i + 1, F.data1] as const)]);
  t.equal(tableOf(many(256)).attrName.length, 256);
  t.throws(() => tableOf(many(257)), damaged);
});

t.test('a table is read once for each version, and refused each time in the same way', async (t) => {
  const section = abbreviations([1, 0x11, [0x10, F.addr], [0x20, F.ref_addr]]).bytes();
  const cache = new AbbrevCache(section, new Budget('x', section.length, 1000));
  const bytes = new Uint8Array(20);
  t.same([cache.get(0, 5).skip(bytes, 0, 0), cache.get(0, 2).skip(bytes, 0, 0)], [12, 16]);
  t.equal(cache.get(0, 5), cache.get(0, 5));
  const errors = [0, 1].map(() => {
    try {
      return cache.get(section.length, 5);
    } catch (error) {
      return error;
    }
  });
  t.match(errors[0], { code: 'INPUT_DAMAGED' });
  t.equal(errors[0], errors[1]);
});

t.test('numbers of eight bytes are numbers too, as long as these are exact', async (t) => {
  const bytes = [...times(4, 0xff), 1, 0, 0, 0];
  t.equal(ending(F.data8, bytes).number(0x2001), 0x1_ffff_ffff);
});

t.test('a flag is of a form of flags, and a type of a unit that is there', async (t) => {
  t.equal(ending(F.data1, [5]).flag(0x2001), false);
  t.equal(ending(F.flag, [5]).flag(0x2001), true);
  t.equal(ending(F.flag_present, []).flag(0x2001), true);
  t.equal(ending(F.ref_sig8, times(8, 3)).reference(0x2001), undefined);
});

t.test('a reference of eight bytes reaches over more than 127', async (t) => {
  const writer = new DwarfWriter();
  writer.unit({
    version: 4,
    root: {
      tag: DW_TAG.compile_unit,
      attributes: [[0x2001, F.ref8, { ref: 'far' }]],
      children: [
        { tag: DW_TAG.base_type, attributes: [[0x2002, F.block1, Uint8Array.from(times(200, 1))]] },
        { tag: DW_TAG.base_type, label: 'far', attributes: [[0x2003, F.data1, 9]] },
      ],
    },
  });
  const [unit] = debugOf(writer).units;
  const far = unit?.root.follow(0x2001);
  t.equal(far?.number(0x2003), 9);
});
