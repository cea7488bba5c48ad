// The tasks of kernels on embassy-executor and async-task at many moments, also in the middle of a poll, against the list that the kernel
// keeps in its memory: which live, at which await each waits, and who has the mutex.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { type Addr, addr } from '../../src/base/addr.js';
import { frozenGuest } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { type Booked, compare, entriesOf, Watched } from '../support/task-book.js';
import { elfPath, sourcePath } from './guests/guests.js';

/** Of the guest's moments, which it counts itself: with these all its tasks come to their ends. */
const MOMENTS = { embassy: 500, asynctask: 900 };
const LOOKS = long ? 20 : 5;

const guests = usually(
  [
    ...['rv-embassy-o0', 'rv-embassy-o3', 'rv-embassy-os', 'rv-embassy-lto'],
    ...['rv-asynctask-o0', 'rv-asynctask-o3', 'rv-asynctask-os', 'rv-asynctask-lto'],
    ...['x86-asynctask-o0', 'x86-asynctask-o3', 'x86-asynctask-os', 'x86-asynctask-lto'],
  ],
  (name) => ['rv-embassy-lto', 'x86-asynctask-lto'].includes(name),
);

for (const guest of guests) {
  t.test(`${guest}: at ${LOOKS} moments, the tasks of the kernel's own list and no others`, async (t) => {
    const kind = guest.includes('embassy') ? 'embassy' : 'asynctask';
    const names = namesIn(kind);
    const qemu = frozenGuest(t, guest, ['-icount', 'shift=1']);
    const watched = await Watched.at(qemu.socket, elfPath(guest));
    // The guest clears its statics before.
    await runTo(watched, watched.address('rust_main'));
    const stop = watched.address('LAB_STOP_AT');
    const sizes = new Set<number>();
    for (let look = 1; look <= LOOKS; look++) {
      const moment = Math.floor((look * MOMENTS[kind]) / LOOKS);
      const batch = watched.session.batch();
      batch.writeMemory(stop, new Uint8Array(BigUint64Array.of(BigInt(moment)).buffer));
      await batch.send();
      await runTo(watched, watched.address('lab_moment'));
      const book = await bookOf(watched, names);
      const found = await watched.tasks();
      t.strictSame(compare(found, book, '/work.rs'), [], `at moment ${moment}`);
      t.strictSame(found.notes, []);
      sizes.add(found.tasks.length);
    }
    t.ok(sizes.size >= 2, `tasks have ended meanwhile: ${[...sizes].join(', ')}`);
    watched.session.close();
    qemu.process.kill('SIGKILL');
  });
}

async function runTo({ session }: Watched, address: Addr): Promise<void> {
  const breakpoint = { type: 0, address, kind: 2 } as const;
  // It may stand there already.
  const [{ id }] = (await session.harts()) as [{ id: string }];
  await session.resume({ kind: 'step', hart: id });
  await session.insertBreakpoint(breakpoint);
  await session.resume();
  await session.removeBreakpoint(breakpoint);
}

/** What the guest calls its tasks, by number. */
function namesIn(kind: string): string[] {
  const source = readFileSync(sourcePath(`/lab${kind}/src/main.rs`), 'utf8');
  return /\$list!\((.*)\)/.exec(source)?.[1]?.split(', ') ?? [];
}

async function bookOf(watched: Watched, names: readonly string[]): Promise<Booked[]> {
  const entries = entriesOf(await watched.bytesOf('LAB_BOOK'), 6);
  const lock = watched.program.elf.symbols;
  const [sum] = [...lock].filter(({ name }) => /4work3SUM$/.test(name));
  return entries.flatMap(([state, name, , place = 0n, line, guards]) =>
    state === 0n
      ? []
      : {
          phase: state === 1n ? 'live' : 'ended',
          name: names[Number(name)] ?? '?',
          place: addr(place),
          line: Number(line),
          busy: false,
          holds: (address) => guards === 1n && address === sum?.address,
        },
  );
}
