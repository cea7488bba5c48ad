// Several writes of which all are done, or none.
import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { writeAllOrNone } from '../../src/scratch/edited-memory.js';

/** 64 bytes. Writes to `refused` answer with an error, those to `lost` change nothing. */
function memory({ refused, lost }: { readonly refused?: Addr; readonly lost?: Addr }) {
  const bytes = Uint8Array.from({ length: 64 }, (_, index) => index);
  return {
    bytes,
    read: async (at: Addr, length: number) =>
      at + BigInt(length) > 64n ? undefined : bytes.slice(Number(at), Number(at) + length),
    write: async (at: Addr, written: Uint8Array) => {
      if (at !== lost && at !== refused) bytes.set(written, Number(at));
      return at !== refused;
    },
  };
}

const writes = [0, 16, 32].map((at) => ({ address: addr(at), bytes: Uint8Array.of(0xa0, 0xb0, 0xc0) }));
const whole = [...memory({}).bytes];

t.test('all are done', async (t) => {
  const target = memory({});
  t.equal(await writeAllOrNone(target, writes), undefined);
  t.same(
    [0, 16, 32].map((at) => [...target.bytes.slice(at, at + 4)]),
    [
      [0xa0, 0xb0, 0xc0, 3],
      [0xa0, 0xb0, 0xc0, 19],
      [0xa0, 0xb0, 0xc0, 35],
    ],
  );
});

for (const [what, place] of [
  ['is refused', { refused: addr(32) }],
  ['is not kept', { lost: addr(16) }],
] as const) {
  t.test(`one ${what}: the others are undone`, async (t) => {
    const target = memory(place);
    const at = 'refused' in place ? '0x20' : '0x10';
    t.same(await writeAllOrNone(target, writes), { refused: `${at} does not keep what is written` });
    t.same([...target.bytes], whole);
  });
}

t.test('one that cannot be read: nothing is written', async (t) => {
  const target = memory({});
  const beyond = { address: addr(62), bytes: Uint8Array.of(1, 2, 3) };
  t.same(await writeAllOrNone(target, [...writes, beyond]), { refused: '0x3e cannot be read' });
  t.same([...target.bytes], whole);
});

t.test('what cannot be undone is told', async (t) => {
  const target = memory({});
  let written = 0;
  const dying = { ...target, write: async (at: Addr, bytes: Uint8Array) => ++written <= 2 && target.write(at, bytes) };
  t.match(await writeAllOrNone(dying, writes), {
    refused: '0x20 does not keep what is written, and 0x10 could not be restored',
  });
});
