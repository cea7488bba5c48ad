// RAM that a machine has and its guest is not told of, of machines that somebody else has started.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/refusal.js';
import { connect } from '../../src/rsp/index.js';
import { ProvenScratch, unlistedRam } from '../../src/scratch/index.js';
import { freeOf } from '../../src/scratch/unlisted-ram.js';
import { readMemoryTree } from '../../src/target/memory-tree.js';
import { elfPath, guest, parseLab } from '../qemu/guests/guests.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { programOf } from '../support/hidden.js';
import { compareCounts, type FutureRow } from '../support/lab.js';
import { checkLoaded, read } from '../support/loaded-bytes.js';

const MIB = 2 ** 20;
/** Where 128 MiB of RAM end on `virt`. */
const toldEnd = addr(0x8800_0000);
const size = 4 * MIB;

/** A device tree that tells of 128 MiB, for a machine that has more. */
function smallTree(t: Test): string[] {
  const file = join(scratchFolder(t), 'virt.dtb');
  execFileSync('qemu-system-riscv64', ['-M', `virt,dumpdtb=${file}`, '-m', '128', '-display', 'none'], {
    stdio: 'pipe',
  });
  return ['-m', '160', '-dtb', file];
}

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
    t.match(await unlistedRam(session, (await programOf(elfPath(name))).elf), {
      refused: name === 'rv-o2' ? /tells of all of it/ : /only the device tree of the machine virt/,
    });
  }
  t.same(readMemoryTree('unknown command'), []);
});

t.test("a device tree that tells of less: what it tells of is left out, and what is somebody's", async (t) => {
  const { socket } = frozenGuest(t, 'rv-o2', smallTree(t));
  const session = await connect(socket, { waitMs: 60_000 });
  t.teardown(() => session.close());
  const { elf, arch } = await programOf(elfPath('rv-o2'));
  const piece = await unlistedRam(session, elf);
  if (isRefusal(piece)) throw new Error(piece.refused);
  t.equal(piece.start, toldEnd);
  t.equal(piece.size, size);

  // Somebody writes to it while the pattern lies there.
  const first = [...elf.symbols].find(({ name }) => /9poll_task/.test(name))?.address ?? addr(0);
  const request = { session, arch, elf, text: first };
  const before = Buffer.alloc(size, 'what was there ');
  const memory = session.memory();
  await memory.write(piece.start, before);
  const proven = new ProvenScratch();
  t.equal(await proven.take(request), undefined, 'not at once');
  await memory.write(addOffset(piece.start, 3 * MIB), Buffer.of(1));
  await sleep(110);
  t.match(await proven.take(request), {
    refused: /^RAM that the device tree .*somebody else writes to memory at 0x883/,
  });
  t.ok(before.equals((await memory.read(piece.start, size)) ?? Buffer.alloc(0)), 'and it is put back');

  // The tree is overwritten, as RAM that is free to the kernel may be.
  const pointer = Buffer.from((await memory.read(addr(0x1020), 8)) ?? []).readBigUInt64LE();
  t.ok(pointer >= toldEnd, 'QEMU has put the tree where nobody is told of RAM');
  t.ok(pointer >= piece.start + BigInt(piece.size), 'and there it is left alone');
  await memory.write(addr(pointer), Buffer.alloc(4));
  t.match(await unlistedRam(session, elf), { refused: /no device tree at/ });
});

// Unoptimised: each Future has a poll function of its own.
for (const name of ['rv-o0']) {
  t.test(`${name} at a machine that somebody else has started: without stops, and nothing is left`, async (t) => {
    const qemu = frozenGuest(t, name, smallTree(t));
    const { elf } = await programOf(elfPath(name));
    const before = await connect(qemu.socket, { waitMs: 60_000 });
    const was = await read(before, toldEnd, size);
    before.close();
    // The guest is not let go, so that it can be looked at as it was left.
    const detached = /\$D(;[0-9a-f.]+)?#[0-9a-f]{2}/;
    await using proxy = await FaultProxy.start(qemu.socket, {
      'to-stub': {
        edit: (text, to) => {
          if (!detached.test(text)) return text;
          to.say('+$OK#9a');
          return text.replace(detached, '');
        },
      },
    });
    const trace = join(scratchFolder(t), 'out.pftrace');
    const until = ['--until', 'labkern::stats::report', '-o', trace];
    const { status, stdout, stderr } = await rsptrace('-r', proxy.path, '--json', ...until, elfPath(name)).ended;
    t.equal(status, 0, stderr);
    const output = JSON.parse(stdout) as {
      readonly scratch: string;
      readonly records: number;
      readonly probes: readonly { readonly engine: string }[];
      readonly futures: readonly FutureRow[];
    };
    t.equal(output.scratch, 'RAM that the device tree does not tell of 0x88000000..0x88400000');
    t.ok(output.records > 0, `${output.records} records without a stop`);
    t.ok(output.probes.every(({ engine }) => engine === 'target'));
    const after = await connect(qemu.socket, { waitMs: 60_000 });
    await checkLoaded(t, after, elf);
    t.ok((await read(after, toldEnd, size)).equals(was), 'byte for byte what it was');
    await after.detach();
    const lab = parseLab((await qemu.ended).stdout);
    t.equal(lab.checksum, guest(name).checksum);
    for (const { name: future, counted, polls, timing } of compareCounts(lab, output.futures)) {
      if (!timing) t.equal(polls, counted, future);
    }
  });
}
