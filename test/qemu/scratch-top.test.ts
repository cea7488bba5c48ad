// `--scratch top`: the end of RAM of a QEMU that somebody else has started, where the kernel leaves it alone, and only there.

import { closeSync, existsSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type Frozen, frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

const megabyte = 2 ** 20;
/** Of the guests' RAM, which has 128 MiB: below the device tree. */
const top = 122 * megabyte;

function record(t: Test, qemu: Frozen, name: string, ...options: string[]) {
  const files = ['--json', '-o', join(scratchFolder(t), 'out.pftrace')];
  const words = ['--remote', qemu.socket, '--scratch', 'top', ...files, ...options, '-p', 'fn:labkern::work::deep0'];
  return rsptrace(...words, elfPath(name));
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: what nobody has used is taken, and put back`, async (t) => {
    const qemu = frozenGuest(t, name);
    const { scratch, missing, functions } = await record(
      t,
      qemu,
      name,
      '--until',
      'labkern::arch::shutdown',
    ).json<Recording>();
    t.match(
      scratch,
      /^the end of RAM 0x[0-9a-f]+\.\.0x[0-9a-f]+, .*read past the wire|^the end of RAM .*past the wire/,
    );
    t.equal(missing, 0);
    const ended = await qemu.ended;
    t.equal(ended.status, guest(name).exit);
    const lab = parseLab(ended.stdout);
    t.equal(lab.checksum, guest(name).checksum);
    t.equal(functions[0]?.calls, lab.stats.get('deep_calls')?.calls);
  });
}

t.test('what the guest has used is refused, and the guest goes on', async (t) => {
  const filled = join(scratchFolder(t), 'filled');
  writeFileSync(filled, Buffer.alloc(28 * megabyte, 0x55));
  // Up to the device tree.
  const loader = ['-device', `loader,file=${filled},addr=0x86200000,force-raw=on`];
  const qemu = frozenGuest(t, 'rv-o2', loader);
  const { status, stdout } = await record(t, qemu, 'rv-o2').ended;
  const { error, functions } = JSON.parse(stdout) as Recording;
  t.equal(error?.code, 'SCRATCH_UNUSABLE', stdout.slice(0, 300));
  t.match(error?.message, /--scratch top cannot be had: the guest uses it: there is something at 0x8[67]/);
  t.equal(status, 3);
  t.same(functions ?? [], []);
  const ended = await qemu.ended;
  t.equal(parseLab(ended.stdout).checksum, guest('rv-o2').checksum);
});

t.test('where the guest comes near it, the recording ends', async (t) => {
  const path = join(scratchFolder(t), 'ram');
  const object = `memory-backend-file,id=ram,share=on,size=128M,mem-path=${path}`;
  const qemu = frozenGuest(t, 'rv-o2-long', ['-object', object, '-machine', 'memory-backend=ram']);
  const ran = record(t, qemu, 'rv-o2-long');
  let isOver = false;
  const ended = ran.ended.finally(() => {
    isOver = true;
  });
  while (!existsSync(path)) await delay(20);
  // As the guest would: into the first guard page, once it is one.
  const ram = openSync(path, 'r+');
  while (!isOver) {
    await delay(200);
    const word = Buffer.alloc(4);
    readSync(ram, word, 0, 4, top);
    if (word.some((byte) => byte !== 0)) writeSync(ram, Buffer.from('used'), 0, 4, top);
  }
  closeSync(ram);
  const { stdout } = await ended;
  const { error } = JSON.parse(stdout) as Recording;
  t.equal(error?.code, 'SCRATCH_UNUSABLE', stdout.slice(0, 300));
  t.match(error?.message, /somebody wrote to the guard page before the code/);
});
