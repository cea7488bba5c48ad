// The wire is damaged exactly while the engine without stops changes the target's code: its patches come out all the same.
// Every harm on riscv64, and one on x86_64, whose patches are other bytes; both whole under `scripts/test --long`.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addr, hex } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, type Ran, rsptrace, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { checkLoaded } from '../support/loaded-bytes.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

/** The end of RAM that no guest of these uses. */
const given = {
  riscv64: 0x87c0_0000n,
  x86_64: 0x7c0_0000n,
  aarch64: 0x47c0_0000n,
  loongarch64: 0x9000_0000_bfc0_0000n,
} as const;
const givenSize = 0x10_0000;

/** What becomes of the text with the one packet that matches. */
type Harm = (text: string, packet: RegExp, proxy: FaultProxy) => string;

const dropped: Harm = (text, packet) => text.replace(packet, '');

const harms: Record<string, Harm> = {
  'the checksum is wrong': (text, packet) => text.replace(packet, (all) => `${all.slice(0, -4)}~${all.slice(-3)}`),
  'the packet is dropped': dropped,
  'the end of it is dropped': (text, packet) => text.replace(packet, (all) => all.slice(0, -4)),
  'the answer is dropped': (text, _, proxy) => {
    proxy.faults['to-client'] = { edit: once(/\$OK#9a/, '') };
    return text;
  },
  'there is a storm of NAKs': (text, _, proxy) => {
    const storm = setInterval(() => proxy.say('-'.repeat(200)), 1);
    setTimeout(() => clearInterval(storm), 20);
    return text;
  },
};

function once(from: RegExp, to: string): (text: string) => string {
  let done = false;
  return (text) => {
    if (done || !from.test(text)) return text;
    done = true;
    return text.replace(from, to);
  };
}

/** A recording with a packet harmed, the `nth` that writes one probed function's first bytes; how it ended. */
async function harmed(t: Test, name: string, nth: number, harm: Harm): Promise<Ran> {
  const qemu = frozenGuest(t, name);
  const elf = await ElfFile.open(elfPath(name));
  const probed = [...elf.symbols].find((symbol) => symbol.name.includes('deep7'));
  const packet = new RegExp(`\\$M${(probed?.address ?? 0n).toString(16)},[^#]*#..`);
  const detached = /\$D(;[0-9a-f.]+)?#[0-9a-f]{2}/;
  let writes = 0;
  await using proxy = await FaultProxy.start(qemu.socket, {
    'to-stub': {
      edit: (text, to) => {
        const passed = packet.test(text) && ++writes === nth ? harm(text, packet, to) : text;
        if (!detached.test(passed)) return passed;
        // The guest is not let go, so that it can be looked at as it was left.
        to.say('+$OK#9a');
        return passed.replace(detached, '');
      },
    },
  });
  const trace = join(scratchFolder(t), 'out.pftrace');
  const scratch = ['--scratch', `${hex(addr(given[guest(name).arch]))},${givenSize}`, '--engine', 'target'];
  const options = [...scratch, '-p', 'fn:deep*', '--until', 'labkern::stats::report'];
  const record = ['--remote', proxy.path, '--timeout', '1s', '--json', ...options, '-o', trace, elfPath(name)];
  const ran = await rsptrace(...record).ended;
  t.ok(writes >= nth, `${writes} writes`);
  const after = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
  await checkLoaded(t, after, elf);
  await after.detach();
  const ended = await qemu.ended;
  t.equal(parseLab(ended.stdout).checksum, guest(name).checksum);
  t.equal(ended.status, guest(name).exit);
  return ran;
}

/** What has been done and is asked again: the packet that is dropped is so at a patch, below. */
const chosen = new Set(['the answer is dropped']);

for (const name of ['rv-o2', 'x86-o2']) {
  const some = usually(Object.entries(harms), ([what]) => name === 'rv-o2' && chosen.has(what));
  for (const [what, harm] of some) {
    // The first one puts the jump there.
    t.test(`${name}, a function's bytes are put back, and ${what}`, async (t) => {
      const { status, stdout, stderr } = await harmed(t, name, 2, harm);
      t.equal(status, 0, stderr);
      t.ok((JSON.parse(stdout) as Recording).records > 500);
    });
  }
  if (name === 'x86-o2' && !long) continue;
  t.test(`${name}, a function is patched, and the packet is dropped`, async (t) => {
    const { status, stdout } = await harmed(t, name, 1, dropped);
    t.equal(status, 3);
    t.equal((JSON.parse(stdout) as Recording).error?.code, 'RSP_TIMEOUT');
  });
}
