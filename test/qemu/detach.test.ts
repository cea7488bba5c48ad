// `rsptrace detach` takes out what a killed rsptrace has left, and one that is asked to stop leaves every byte as it was.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, rsptraceProcess, scratchFolder } from '../support/command.js';
import { detach } from '../support/detach.js';
import { killAlone } from '../support/kill.js';
import { long, usually } from '../support/long.js';
import { tracedQemu } from '../support/orphan.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

/** A hundred million instructions a second, so that a busy host does not see a guest end before it is frozen. */
const slow = ['-icount', 'shift=3,align=on'];

for (const name of usually(['rv-o2-long', 'x86-o2-long'], (one) => one === 'rv-o2-long')) {
  t.test(`${name}: detach while the guest runs on`, async (t) => {
    const qemu = await tracedQemu(t, name, [], slow);
    qemu.freeze();
    await qemu.orphan();
    const first = await detach(t, qemu.socket, name, qemu.thaw);
    t.ok(first.restored.length > 10, 'its functions are restored');
    t.same(first.different, []);
    await qemu.ended();
    t.equal(qemu.lab().checksum, guest(name).checksum);
  });
}

/** End of RAM that no guest of these uses. */
const scratch = { 'rv-o2-long': '0x87c00000,0x100000', 'x86-o2-long': '0x7c00000,0x100000' } as const;

const full = ['rv-o2-long', 'x86-o2-long'] as const;
for (const name of usually(full, () => false)) {
  t.test(`${name} --scratch: a guest that stands at a full ring goes on after detach`, async (t) => {
    const qemu = frozenGuest(t, name);
    const options = ['--scratch', scratch[name], '--log', 'info', '--engine', 'auto', '--probe', 'fn:labkern::**'];
    const trace = join(scratchFolder(t), 'out.pftrace');
    const words = ['--remote', qemu.socket, ...options, '--probe', 'poll:**', '-o', trace, elfPath(name)];
    const tracer = rsptraceProcess(...words);
    await tracer.shows('trampolines are installed');
    await sleep(200);
    killAlone(tracer);
    const { signal, stderr } = await tracer.ended;
    t.equal(signal, 'SIGKILL', stderr);
    await sleep(2000);
    t.equal(qemu.process.exitCode, null, 'the guest has not ended');
    const { restored, different } = await detach(t, qemu.socket, name);
    t.ok(restored.length > 20, `${restored.length} functions restored`);
    t.same(different, []);
    const lab = parseLab((await qemu.ended).stdout);
    t.equal(lab.done, true);
    t.equal(lab.checksum, guest(name).checksum);
  });
}

t.test('nothing to do is a success', async (t) => {
  const qemu = frozenGuest(t, 'x86-o2');
  const { status, stdout } = await rsptrace('detach', '--remote', qemu.socket, elfPath('x86-o2')).ended;
  t.equal(status, 0);
  t.match(stdout, /^nothing to do: no function of \d+ jumps to a trampoline\n$/);
  t.equal(parseLab((await qemu.ended).stdout).checksum, guest('x86-o2').checksum);
});

t.test('an ELF that does not run there', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2');
  const { status, stderr } = await rsptrace('detach', '--remote', qemu.socket, elfPath('rv-o0')).ended;
  t.equal(status, 1);
  t.match(stderr, '[ELF_MISMATCH]');
  // It stands as before: the right one lets it go.
  t.equal((await rsptrace('detach', '--remote', qemu.socket, elfPath('rv-o2')).ended).status, 0);
  t.equal(parseLab((await qemu.ended).stdout).checksum, guest('rv-o2').checksum, 'the guest was left as it was');
});

/** gABI, chapter 4: `sh_flags` of a section with code. */
const SHF_EXECINSTR = 4;

/** Every byte of the program's code as the target has it, with its ELF's. */
async function textsOf(t: Test, socket: string, name: string, thaw: () => void): Promise<void> {
  const elf = await ElfFile.open(elfPath(name));
  const connected = connect(`unix:${socket}`, { waitMs: 60_000 });
  await sleep(100);
  thaw();
  const session = await connected;
  let compared = 0;
  for (const { address, size, flags } of elf.sections) {
    if ((flags & SHF_EXECINSTR) === 0 || size === 0) continue;
    const expected = elf.bytesAt(address, size);
    const found = await session.memory().read(address, size);
    t.ok(expected && found && Buffer.compare(expected, found) === 0, `${size} bytes at 0x${address.toString(16)}`);
    compared += size;
  }
  t.ok(compared > 10_000, `${compared} bytes of code`);
  await session.detach();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  const guests = ['rv-o2-long', 'x86-o2-long'] as const;
  // Each signal and way once; all eight under `--long`. What is put back on x86 is in left-alone.test.ts, too.
  for (const name of usually(guests, (one) => signal === 'SIGTERM' && one === 'rv-o2-long')) {
    t.test(`${name}: after ${signal} while armed every byte of code is as in the ELF`, async (t) => {
      // SIGTERM would end QEMU too.
      // Of all probes so much is recorded that it takes seconds to be understood.
      const probes = long ? ['poll:**', 'fn:labkern::**'] : ['poll:labkern::work::*er', 'fn:labkern::work::deep*'];
      const args = ['--keep-running', ...probes.flatMap((probe) => ['--probe', probe])];
      const qemu = await tracedQemu(t, name, args, slow);
      await sleep(100);
      qemu.tracer.process.kill(signal);
      await qemu.tracer.shows('the guest runs on');
      qemu.freeze();
      await textsOf(t, qemu.socket, name, qemu.thaw);
      await qemu.ended();
      t.equal(qemu.lab().checksum, guest(name).checksum);
      t.equal((await qemu.tracer.ended).status, 0);
    });
  }

  for (const name of usually(guests, (one) => signal === 'SIGINT' && one === 'rv-o2-long')) {
    t.test(`${name} --scratch: after ${signal} while armed every byte of code is as in the ELF`, async (t) => {
      const qemu = frozenGuest(t, name, slow);
      // Some of the probes, so that little is left to be understood while the guest runs on.
      const probes = ['-p', 'poll:labkern::work::*er', '-p', 'fn:labkern::work::deep*'];
      const options = ['--scratch', scratch[name], '--log', 'info', '--engine', 'target', ...probes];
      const trace = join(scratchFolder(t), 'out.pftrace');
      const tracer = rsptrace('--remote', qemu.socket, ...options, '-o', trace, elfPath(name));
      await tracer.shows('trampolines are installed');
      await sleep(100);
      tracer.signal(signal);
      t.equal((await tracer.ended).status, 0);
      qemu.process.kill('SIGSTOP');
      await textsOf(t, qemu.socket, name, () => qemu.process.kill('SIGCONT'));
      t.equal(parseLab((await qemu.ended).stdout).checksum, guest(name).checksum);
    });
  }
}
