// The notes of a process's core, laid out by hand as Linux writes them.
import t from 'tap';
import { readLinuxCore } from '../../src/target/linux-core.js';

const words = (...all: readonly bigint[]): Buffer =>
  Buffer.concat(
    all.map((each) => {
      const word = Buffer.alloc(8);
      word.writeBigUInt64LE(each);
      return word;
    }),
  );
const note = (type: number, bytes: Uint8Array) => ({ name: 'CORE', type, bytes });
const auxv = note(6, words(9n, 0x1000n, 0n, 0n));
const names = ['a', 'b'];

t.test('threads, files and the auxiliary vector', async (t) => {
  const status = (a: bigint, b: bigint) => note(1, Buffer.concat([Buffer.alloc(112), words(a, b), Buffer.alloc(16)]));
  const paths = Buffer.from('/bin/x\0/lib/y z\0');
  const files = note(0x4649_4c45, Buffer.concat([words(2n, 4096n, 0x1000n, 0x3000n, 0n, 0x8000n, 0x9000n, 1n), paths]));
  const core = readLinuxCore([status(1n, 2n), auxv, files, status(3n, 4n), note(77, words(1n))], names);
  t.same(core?.auxv, new Map([[9, 0x1000n]]));
  t.same(
    core?.threads.map((each) => [each.register('a'), each.register('b'), each.register('c')]),
    [
      [1n, 2n, undefined],
      [3n, 4n, undefined],
    ],
  );
  t.same(core?.files, [
    { path: '/bin/x', start: 0x1000n, end: 0x3000n },
    { path: '/lib/y z', start: 0x8000n, end: 0x9000n },
  ]);
});

t.test('the dump of a machine has no auxiliary vector', async (t) => {
  t.equal(readLinuxCore([note(1, Buffer.alloc(200))], names), undefined);
});

t.test('notes that are too short, or lie about their length', async (t) => {
  const short = readLinuxCore([auxv, note(1, Buffer.alloc(115)), note(0x4649_4c45, Buffer.alloc(3))], names);
  t.same(
    short?.threads.map((each) => each.register('a')),
    [undefined],
  );
  t.same(short?.files, []);
  t.same(readLinuxCore([auxv, note(0x4649_4c45, words(2n ** 63n, 4096n, 1n, 2n, 3n))], names)?.files, []);
});
