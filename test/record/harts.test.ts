import t from 'tap';
import type { ElfFile } from '../../src/elf/index.js';
import { HartWords } from '../../src/record/harts.js';
import { connect } from '../../src/rsp/index.js';
import { FakeStub, riscv } from '../support/fake-stub.js';

const little = (value: number): string => `${value.toString(16).padStart(2, '0')}00000000000000`;

/** What is known of four harts, each with this in tp. */
async function words(tp: readonly number[]): Promise<HartWords> {
  // Where it has stopped.
  let selected = 1;
  await using stub = await FakeStub.start(riscv, {
    qfThreadInfo: 'mp01.01,p01.02,p01.03,p01.04',
    'Hg*': (packet) => {
      selected = Number(packet.at(-1));
      return 'OK';
    },
    // tp is x4.
    p4: () => little(tp[selected - 1] ?? 0),
  });
  const session = await connect(stub.path);
  const known = new HartWords(4);
  // Only Linux asks the ELF.
  await known.learn(session, {} as ElfFile, { kind: 'register', name: 'tp' }, (id) => Number(id.at(-1)) - 1);
  session.close();
  return known;
}

t.test('words that the target tells of are their harts', async (t) => {
  const known = await words([0x40, 0x30, 0x20, 0x10]);
  t.same(
    [0x10n, 0x20n, 0x30n, 0x40n, 0x10n].map((word) => known.number(word)),
    [3, 2, 1, 0, 3],
  );
});

t.test('a word that nobody tells of takes no place of one that is known', async (t) => {
  // Two harts are not up yet.
  const known = await words([0x40, 0, 0x20, 0]);
  t.same(
    [0x77n, 0x40n, 0x20n, 0x88n].map((word) => known.number(word)),
    [1, 0, 2, 3],
  );
});

t.test('words that have changed since take what is left', async (t) => {
  const known = await words([1, 2, 3, 4]);
  t.same(
    [0x10n, 3n, 0x20n, 0x30n, 0x99n].map((word) => known.number(word)),
    [0, 2, 1, 3, 0],
  );
});

t.test('where all harts have the same, words are numbered as they come', async (t) => {
  const known = await words([0, 0, 0, 0]);
  t.same(
    [7n, 0n, 9n, 8n, 7n].map((word) => known.number(word)),
    [0, 1, 2, 3, 0],
  );
});
