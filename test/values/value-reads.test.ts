// How often what was read is worked out: the types of it count that.
import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { formatValue, ObjectPlace, readValue, type Shape, type Shapes } from '../../src/values/index.js';

t.test('a value that is known is not worked out again when others are read', async (t) => {
  const count = 400;
  const list = 0x10_0000n;
  let asked = 0;
  const word: Shape = { kind: 'integer', signed: false, character: false, name: 'u64', size: 8, die: undefined };
  const target = (): Shape => {
    asked++;
    return word;
  };
  const element = { kind: 'pointer', style: 'ref', target, name: '&u64', size: 8, die: undefined } as Shape;
  const shape = {
    kind: 'array',
    element: () => element,
    count,
    name: 'list',
    size: 8 * count,
    die: undefined,
  } as Shape;
  let reads = 0;
  /** The list leads to the words behind it, each of which has its own address. */
  const memory = {
    async read(address: Addr, length: number): Promise<Uint8Array> {
      reads++;
      const behind = address === list ? BigInt(8 * count) : 0n;
      const words = Array.from({ length: length / 8 }, (_, i) => address + behind + BigInt(8 * i));
      return new Uint8Array(BigUint64Array.from(words).buffer);
    },
  };
  const limits = { values: 10 * count, elements: count };
  const value = await readValue({} as Shapes, memory, shape, ObjectPlace.memory(addr(list)), { limits });
  const found = value.kind === 'sequence' ? value.elements : [];
  t.equal(found.length, count);
  for (const one of found)
    t.match(one, { kind: 'pointer', target: { kind: 'integer', value: one.kind === 'pointer' ? one.address : -1n } });
  t.equal(reads, count + 1);
  t.ok(asked < 4 * count, `${asked} times for ${count}`);
});

t.test('a struct of more members than are shown says so', async (t) => {
  const byte: Shape = { kind: 'integer', signed: false, character: false, name: 'u8', size: 1, die: undefined };
  const fields = ['a', 'b', 'c', 'd'].map((name, offset) => ({ name, offset, bits: undefined, type: () => byte }));
  const of = { short: 'Four', view: () => undefined, name: 'Four', size: 4, die: undefined } as const;
  const four: Shape = { kind: 'struct', fields, ...of };
  const place = ObjectPlace.bytes(Uint8Array.of(1, 2, 3, 4));
  const memory = { read: async () => undefined };
  const shown = async (values: number): Promise<string> =>
    formatValue(await readValue({} as Shapes, memory, four, place, { limits: { values } }));
  // The struct itself is one.
  t.equal(await shown(5), 'Four { a: 1, b: 2, c: 3, d: 4 }');
  t.equal(await shown(4), 'Four { a: 1, b: 2, c: 3, d: .. }');
  t.equal(await shown(3), 'Four { a: 1, b: 2, c: .. }');
  t.equal(await shown(2), 'Four { a: 1, b: .. }');
});
