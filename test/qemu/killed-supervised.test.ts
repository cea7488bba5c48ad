// An rsptrace that is killed at a machine: its supervisor takes out what is there, and the guest comes to its right end without anybody's help.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { frozenGuest, rsptraceProcess, scratchFolder, traceGrows } from '../support/command.js';
import { killAlone } from '../support/kill.js';
import { usually } from '../support/long.js';
import { elfPath, guest, parseLab, qemuArgv } from './guests/guests.js';

/** End of RAM that no guest of these uses. */
const scratch = { 'rv-o2-long': '0x87c00000,0x100000', 'x86-o2-long': '0x7c00000,0x100000' } as const;
const probes = ['-p', 'fn:labkern::exec::*', '-p', 'poll:chain_task'];
/** So many bytes of a trace say that it records. */
const enough = 20_000;
const names = ['rv-o2-long', 'x86-o2-long'] as const;

for (const long of usually(names, (one) => one === 'rv-o2-long')) {
  // With a stop at each event a short guest lasts; left alone it ends at once.
  const short = long === 'rv-o2-long' ? 'rv-o2' : 'x86-o2';
  const ways = [
    [long, 'a ring that is read by packets', ['--engine', 'auto', '--scratch', scratch[long]]],
    [short, 'stops', ['--engine', 'stop']],
  ] as const;
  for (const [name, what, options] of usually(ways, ([one]) => one !== short)) {
    t.test(`${name}, ${what}: the guest goes on by itself`, async (t) => {
      const qemu = frozenGuest(t, name);
      const trace = join(scratchFolder(t), 'out.pftrace');
      const asked = [...options, ...probes, '-o', trace];
      const tracer = rsptraceProcess('--remote', qemu.socket, ...asked, elfPath(name));
      // On a busy host a guest without stops may end before its trace has grown.
      await (name === long ? tracer.shows('all without stops') : traceGrows(tracer, trace, enough));
      tracer.process.kill('SIGKILL');
      const { stderr } = await tracer.ended;
      t.match(stderr, /it was killed\. \d+ functions? restored in the target at .*, which runs on/);
      const lab = parseLab((await qemu.ended).stdout);
      t.equal(lab.done, true);
      t.equal(lab.checksum, guest(name).checksum);
    });
  }
}

t.test('run --keep-running: the guest runs on, and nothing of rsptrace is in it', async (t) => {
  const name = 'rv-o2-long';
  const asked = ['--engine', 'target', '--log', 'info', '--keep-running', '-o', join(scratchFolder(t), 'out.pftrace')];
  const tracer = rsptraceProcess('run', ...asked, elfPath(name), '--', ...qemuArgv(name));
  await tracer.shows('trampolines are installed');
  tracer.process.kill('SIGKILL');
  // QEMU writes to the same output, so this is its end too.
  const { stderr } = await tracer.ended;
  t.match(stderr, /it was killed\. \d+ functions restored in the target at unix:.*gdb, which runs on/);
});

t.test('its supervisor is killed too: it stands', async (t) => {
  const name = 'rv-o2-long';
  const qemu = frozenGuest(t, name);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const tracer = rsptraceProcess('--remote', qemu.socket, '--engine', 'stop', ...probes, '-o', trace, elfPath(name));
  await traceGrows(tracer, trace, enough);
  killAlone(tracer);
  const { stderr } = await tracer.ended;
  t.notMatch(stderr, 'it was killed');
  await sleep(500);
  t.equal(qemu.process.exitCode, null);
});
