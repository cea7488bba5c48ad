// A machine that ends itself while it is traced without stops: its RAM ends with it, and the last records must not. The
// kernels know how often they call.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { architectureOf } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { powerOffPlaces, qemuOptions } from '../../src/target/index.js';
import { type Frozen, frozenGuest, frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { powerOffKernel } from '../support/tiny-kernels.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

const CALLS = 1000;

async function record(
  t: Test,
  qemu: Frozen,
  elf: string,
  ...probes: string[]
): Promise<Recording & { readonly stderr: string }> {
  const files = ['--json', '-o', join(scratchFolder(t), 'out.pftrace')];
  const asked = probes.flatMap((probe) => ['-p', probe]);
  const ran = await rsptrace('--remote', qemu.socket, ...files, ...asked, elf).ended;
  t.equal(ran.status, 0, ran.stderr.slice(-500));
  return { ...(JSON.parse(ran.stdout) as Recording), stderr: ran.stderr };
}

const ways = [
  { way: 0, name: "SiFive's test device, passed", status: 0 },
  { way: 1, name: "SiFive's test device, failed", status: 3 },
  { way: 2, name: "SBI's System Reset Extension", status: 0 },
  { way: 3, name: "SBI's legacy shutdown", status: 0 },
  { way: 4, name: "semihosting's SYS_EXIT", status: 0 },
] as const;

// Three instructions end a guest.
for (const { way, name, status } of usually(ways, ({ way }) => way === 0 || way === 2 || way === 4)) {
  t.test(`${name}: every call is there, up to the last one`, async (t) => {
    const { elf, command } = powerOffKernel(t, CALLS, way);
    const qemu = frozenQemu(t, command);
    const { functions, tail_lost, missing, end } = await record(t, qemu, elf, 'fn:work', 'fn:last');
    t.equal((await qemu.ended).status, status);
    t.same({ end, tail_lost, missing }, { end: 'guest-ended', tail_lost: false, missing: 0 });
    const calls = new Map(functions.map((row) => [row.function, row.calls]));
    t.same([calls.get('work'), calls.get('last')], [CALLS, 1]);
  });
}

// Release and debug; x86 ends by isa-debug-exit.
for (const name of usually(['rv-o2', 'x86-o2', 'x86-o0', 'arm-o2', 'arm-o0'], (one) => one === 'x86-o2')) {
  t.test(`${name}: kernels in Rust, without any option`, async (t) => {
    const qemu = frozenGuest(t, name);
    const output = await record(t, qemu, elfPath(name), 'fn:labkern::work::deep*', 'fn:labkern::arch::**shutdown');
    const { functions, stops, stderr, tail_lost, missing } = output;
    const ended = await qemu.ended;
    t.equal(ended.status, guest(name).exit);
    t.same({ tail_lost, missing }, { tail_lost: false, missing: 0 });
    const counted = parseLab(ended.stdout).stats.get('deep_calls')?.calls;
    const callsOf = (end: string) => functions.find((row) => row.function.endsWith(end))?.calls;
    t.same([callsOf('deep0'), callsOf('::shutdown')], [counted, 1]);
    t.match(stderr, /16 MiB of the guest's RAM are kept from it.*--scratch none leaves it all/);
    // The steps from there on are stops, too.
    t.ok(stops < 1500, `${stops} stops`);
  });
}

t.test('places are instructions of the program, as objdump has them', async (t) => {
  const options = qemuOptions(['-device', 'isa-debug-exit,iobase=0xf4']);
  for (const name of usually(['rv-o2', 'rv-o0', 'x86-o2', 'x86-o0', 'arm-o2', 'arm-o0'], (one) => one.endsWith('o2'))) {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (arch === undefined) throw new Error(name);
    await arch.prepare();
    const places = powerOffPlaces(elf, arch, options);
    const objdump = arch.name === 'x86_64' ? 'objdump' : `${arch.name}-linux-gnu-objdump`;
    const text = execFileSync(objdump, ['-d', '--no-show-raw-insn', elfPath(name)], { maxBuffer: 2 ** 28 }).toString();
    const lines = new Map(text.split('\n').map((line) => [Number.parseInt(line, 16), line]));
    t.ok(places.length > 0, name);
    for (const place of places)
      t.match(lines.get(Number(place)), /\b(1365|819|1911)\b|\$0xf4,|movk\tw\d, #0x8400|mov\tx0, #0x18\b/, name);
  }
});
