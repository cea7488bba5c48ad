// Tasks of a kernel on aarch64 whose allocator gives each pointer a tag in its top byte: its RAM, with the tags put in, shows what it shows without.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { symbolOf } from '../support/native.js';
import { elfPath } from './guests/guests.js';

const RAM = { start: 0x4000_0000, size: 2 << 20 };
const TAG = 0xa5n << 56n;

interface Node {
  readonly future: string;
  readonly address: string;
  readonly state: unknown;
  readonly awaits: readonly Node[];
}

function withoutTags({ future, address, state, awaits }: Node): unknown {
  return [future, BigInt.asUintN(56, BigInt(address)), state, awaits.map(withoutTags)];
}

t.test('a tag in each pointer to the heap', async (t) => {
  const elf = elfPath('arm-o2');
  const qemu = frozenGuest(t, 'arm-o2', ['-icount', 'shift=0']);
  const session = await connect(qemu.socket, { waitMs: 60_000 });
  const point = { type: 0, address: symbolOf(elf, 'labkern::exec::poll_task'), kind: 4 } as const;
  for (let hits = 0; hits < 40; hits++) {
    const [{ id }] = (await session.harts()) as [{ id: string }];
    if (hits > 0) await session.resume({ kind: 'step', hart: id });
    await session.insertBreakpoint(point);
    await session.resume();
    await session.removeBreakpoint(point);
  }
  const [plain, tagged] = ['plain', 'tagged'].map((name) => join(scratchFolder(t), name)) as [string, string];
  await session.monitor(`pmemsave ${RAM.start} ${RAM.size} "${plain}"`);
  session.close();
  const heap = symbolOf(elf, 'labkern::heap::ARENA');
  const bytes = readFileSync(plain);
  let tags = 0;
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    const word = bytes.readBigUInt64LE(at);
    if (word < heap || word >= heap + 0x10_0000n) continue;
    bytes.writeBigUInt64LE(word | TAG, at);
    tags++;
  }
  writeFileSync(tagged, bytes);
  t.ok(tags > 50, `${tags} pointers have a tag`);
  const tasksIn = async (file: string): Promise<readonly Node[]> =>
    (await rsptrace('tasks', '--json', '--core', file, '--base', `${RAM.start}`, elf).json<{ tasks: Node[] }>()).tasks;
  const [before, found] = [await tasksIn(plain), await tasksIn(tagged)];
  t.ok(before.length >= 10, `${before.length} tasks`);
  t.ok(found.every(({ address }) => BigInt(address) >> 56n === 0xa5n));
  t.same(found.map(withoutTags), before.map(withoutTags));
});
