// An rsptrace that is killed leaves a guest that runs on and comes to its right end.
// `scripts/test --long` kills it 200 times.
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { detach } from '../support/detach.js';
import { long } from '../support/long.js';
import { tracedQemu } from '../support/orphan.js';
import { guest } from './guests/guests.js';

const kills = long ? 200 : 2;
const seed = 20260117;

/** A guest that lasts is slow enough to run still when a busy host gets to it. */
const lasting = ['-icount', 'shift=4,align=on'];

/** The guests in turn, and the latest moment, in milliseconds from when they were armed. The short ones end soon. */
const guests = [
  ['rv-o2', 30],
  ['x86-o2-long', 600],
  ['x86-o2', 30],
  ['rv-o2-long', 600],
] as const;

/** Numbers in 0..1 that are the same in every run (mulberry32). */
function random(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

t.test(`killed at ${kills} random moments while armed`, { timeout: 60_000 + kills * 60_000 }, async (t) => {
  const next = random(seed);
  const seen = { running: 0, standing: 0, ended: 0 };
  for (let i = 0; i < kills; i++) {
    const [name, latest] = guests[i % guests.length] as (typeof guests)[number];
    const wait = next() * latest;
    await t.test(`${i}: ${name}, ${wait.toFixed(0)} ms after it was armed`, async (t) => {
      const qemu = await tracedQemu(t, name, [], name.endsWith('long') ? lasting : []);
      await sleep(wait);
      await qemu.orphan();
      const status = await qemu.status();
      seen[status === undefined ? 'ended' : status === 'running' ? 'running' : 'standing']++;
      // Killed at the very stop at which it had armed the guest: nobody has let that go on.
      if (status !== undefined && status !== 'running') {
        t.match(status, /^(paused|debug)$/);
        await detach(t, qemu.socket, name);
      }
      await qemu.ended();
      const lab = qemu.lab();
      t.equal(lab.done, true, 'the guest has come to its end');
      t.equal(lab.checksum, guest(name).checksum, 'with the checksum of an untraced run');
      t.equal(lab.panic, undefined);
    });
  }
  t.comment(`guests that ran on: ${seen.running}, that stood: ${seen.standing}, that had ended: ${seen.ended}`);
  t.ok(seen.running * 4 >= kills, 'many were killed while the guest ran');
});
