// Where variables lie that no compiler here describes so. Expressions: DWARF 5, sections 2.6.1.2 and 4.1, item 10.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { DW_AT, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { placeOf, staticPlace } from '../../src/values/index.js';
import { debugOf } from '../support/dwarf-debug.js';
import { type AttributeValue, DwarfWriter } from '../support/dwarf-writer.js';

t.test('what is not understood is not there, and no other value', async (t) => {
  const writer = new DwarfWriter();
  const variable = (label: string, attribute: readonly [number, number, AttributeValue]) => ({
    ...{ tag: DW_TAG.variable, label },
    attributes: [[DW_AT.name, F.string, label] as const, attribute],
  });
  const [reg5, piece, bitPiece] = [0x55, 0x93, 0x9d];
  const children = [
    variable('number', [DW_AT.const_value, F.sdata, -5]),
    variable('text', [DW_AT.const_value, F.string, 'hello']),
    variable('low', [DW_AT.location, F.exprloc, Uint8Array.of(reg5, piece, 1)]),
    variable('high', [DW_AT.location, F.exprloc, Uint8Array.of(reg5, bitPiece, 8, 8)]),
  ];
  writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
  const debug = debugOf(writer);
  const memory = { read: async () => undefined };
  const frame = { pc: addr(0n), register: () => 0x1234n };
  const byteOf = async (label: string): Promise<unknown> => {
    const die = debug.die(writer.labels.get(label) ?? -1);
    const place = die && (await placeOf({ die }, frame, memory));
    return place && (await place.read(memory, 1));
  };
  t.same(await byteOf('number'), Uint8Array.of(0xfb));
  t.same(await byteOf('low'), Uint8Array.of(0x34));
  t.equal(await byteOf('text'), undefined);
  // gdb reads bits 8 to 15 of the register, 0x12.
  t.equal(await byteOf('high'), undefined);
});

t.test('a static of which the optimiser has made several', async (t) => {
  const writer = new DwarfWriter();
  const word = (byte: number): number[] => [byte, 0, 0, 0, 0, 0, 0, 0];
  const [DW_OP_addr, piece] = [0x03, 0x93];
  // As rustc 1.95 writes it of `struct Conf { a: u32, b: u32, c: u32 }` without a use of `b`.
  const location = Uint8Array.of(DW_OP_addr, ...word(0x30), piece, 4, piece, 4, DW_OP_addr, ...word(0x50), piece, 4);
  const attributes = [[DW_AT.location, F.exprloc, location] as const];
  const children = [{ tag: DW_TAG.variable, label: 'CONF', attributes }];
  writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
  const die = debugOf(writer).die(writer.labels.get('CONF') ?? -1);
  const place = die && staticPlace({ die });
  const addresses = [0, 4, 8].map((offset) => place?.inside(offset).address);
  t.same(addresses, [0x30n, undefined, 0x50n]);
});
