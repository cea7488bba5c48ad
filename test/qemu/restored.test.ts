// When a recording without stops is over, the target's bytes are as they were.
// Two more guests of riscv64 in supervisor mode under `scripts/test --long`.
import { join } from 'node:path';
import t from 'tap';
import { addr, hex } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { checkLoaded, read } from '../support/loaded-bytes.js';
import { usually } from '../support/long.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

/** The end of RAM that no guest of these uses. */
const given = {
  riscv64: 0x87c0_0000n,
  x86_64: 0x7c0_0000n,
  aarch64: 0x47c0_0000n,
  loongarch64: 0x9000_0000_bfc0_0000n,
} as const;
const givenSize = 0x10_0000;

const ends = [
  ...usually(['rv-o2-long'], () => false).map((name) => ({ name, options: ['-d', '1s'], end: 'duration' })),
  ...usually(['rv-o0', 'rv-o2', 'rvm-o2', 'x86-o2'], (one) => one === 'x86-o2').map((name) => ({
    name,
    options: ['--until', 'labkern::stats::report'],
    end: 'until',
  })),
];

for (const { name, options, end } of ends) {
  t.test(`${name} ${options.join(' ')}: afterwards all is as it was`, async (t) => {
    const qemu = frozenGuest(t, name);
    const elf = await ElfFile.open(elfPath(name));
    const place = addr(given[guest(name).arch]);
    const before = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    const was = await read(before, place, givenSize);
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
    const scratch = ['--scratch', `${hex(place)},${givenSize}`, '--engine', 'target'];
    const probes = ['-p', 'poll:chain_task', '-p', 'fn:deep*'];
    const trace = join(scratchFolder(t), 'out.pftrace');
    const record = ['--remote', proxy.path, '--json', ...scratch, ...probes, ...options, '-o', trace, elfPath(name)];
    const output = await rsptrace(...record).json<{ end: string; records: number; trampolines_stay: boolean }>();
    t.equal(output.end, end);
    // Where the time is up says nothing of how far a busy machine has come.
    if (end !== 'duration') t.ok(output.records > 500, `${output.records} records without a stop`);
    const after = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    await checkLoaded(t, after, elf);
    // When the time is up, a call may be open that returns through its trampoline yet.
    if (end === 'until') t.notOk(output.trampolines_stay);
    if (!output.trampolines_stay) t.ok((await read(after, place, givenSize)).equals(was), 'the memory that was given');
    await after.detach();
    const ended = await qemu.ended;
    const lab = parseLab(ended.stdout);
    t.equal(lab.done, true);
    t.equal(lab.checksum, guest(name).checksum);
    t.equal(ended.status, guest(name).exit);
  });
}
