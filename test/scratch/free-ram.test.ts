// RAM of a machine: where it is, and what of it is free.
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { freeOf } from '../../src/scratch/top-of-ram.js';
import { readMemoryTree } from '../../src/target/machine-ram.js';
import { frozenGuest } from '../support/command.js';

const MIB = 2 ** 20;
t.test('what is left between what is taken', async (t) => {
  const M = BigInt(MIB);
  const left = (taken: [bigint, bigint][]): string =>
    freeOf(
      128n * M,
      160n * M,
      taken.map(([base, bytes]) => ({ base: base * M, size: bytes * M })),
    )
      .map((piece) => `${piece.base / M}+${piece.size / M}`)
      .join(' ');
  t.equal(left([]), '128+32');
  t.equal(left([[100n, 28n]]), '128+32', 'what ends there');
  t.equal(left([[100n, 29n]]), '130+30', 'in whole large pages');
  t.equal(left([[159n, 1n]]), '128+30');
  t.equal(
    left([
      [140n, 1n],
      [150n, 2n],
      [130n, 4n],
    ]),
    '128+2 134+6 142+8 152+8',
    'in any order',
  );
  t.equal(
    left([
      [120n, 40n],
      [130n, 2n],
    ]),
    '',
    'one inside another',
  );
  t.equal(left([[160n, 1n]]), '128+32', 'what begins behind it');
});

t.test('QEMU says where RAM is', async (t) => {
  for (const [name, extra, ram] of [
    ['rv-o2', [], [[0x8000_0000n, 0x8800_0000n]]],
    [
      'x86-o2',
      ['-m', '5G', '-vga', 'none'],
      [
        [0n, 0xc000_0000n],
        [0x1_0000_0000n, 0x1_8000_0000n],
      ],
    ],
  ] as const) {
    const { socket } = frozenGuest(t, name, extra);
    const session = await connect(socket, { waitMs: 60_000 });
    t.teardown(() => session.close());
    const tree = readMemoryTree((await session.monitor('info mtree -f')) ?? '');
    const found = tree.filter(({ kind, end }) => kind === 'ram' && end > BigInt(16 * MIB));
    t.equal(found.at(-1)?.end, ram.at(-1)?.[1], name);
    t.equal(found[0]?.end, ram[0][1], name);
  }
  t.same(readMemoryTree('unknown command'), []);
});
