// `rsptrace doctor` lets guests run and measures: what it inserts, and that they are none the worse for it. How fast they were is not judged.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { hex } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { disassemble } from '../arch/objdump.js';
import { frozenGuest, scratchFolder } from '../support/command.js';
import {
  breakpointAt,
  type Doctored,
  doctorShape,
  monitored,
  runDoctor,
  standAt,
  wireBreakpoints,
  withoutSupported,
} from '../support/doctor.js';
import { checkShape } from '../support/json-shape.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

function checkMeasured(t: Test, { hits, slow_down: slow, advice, program, times }: Doctored): void {
  t.ok((hits.per_second ?? 0) > 0 && (hits.hits ?? 0) >= 2, `${hits.per_second} hits a second: ${hits.why}`);
  for (const each of Object.values(times)) t.ok((each?.median_us ?? 0) > 0, 'round trips take time');
  const stops = program?.probes.filter(({ engine }) => engine === 'stop').length;
  t.equal(slow?.breakpoints, stops);
  t.ok((slow?.ratio ?? 0) > 0, `slow-down ${slow?.ratio} by ${slow?.by}: ${slow?.why}`);
  const warned = advice.some(({ code }) => code === 'slow-down');
  t.equal(warned, (slow?.ratio ?? 0) > 2, 'it warns above 2x');
  const said = stops === 1 ? '1 breakpoint makes the guest ' : `${stops} breakpoints make the guest `;
  if (warned) t.equal(advice[0]?.text.slice(0, said.length), said);
}

for (const name of ['rv-o2', 'x86-o2'] as const) {
  t.test(`${name}-long: a guest in the middle of its work is measured, and ends as it does undisturbed`, async (t) => {
    const long = `${name}-long`;
    const qemu = frozenGuest(t, long);
    const path = elfPath(long);
    await standAt(qemu.socket, await breakpointAt(path, 'deep7'));
    const wire = join(scratchFolder(t), 'wire');
    const { found, status, stderr } = await runDoctor(qemu.socket, '--record-wire', wire, path);
    t.equal(status, 0, stderr);
    t.same(checkShape(withoutSupported(found), doctorShape), [], 'as documented');
    checkMeasured(t, found);
    t.equal(found.target.never_started, false);
    const { program, slow_down: slow, hits } = found;
    t.ok(
      program?.probes.some(({ address }) => address === hits.address),
      'hits were counted at a probe',
    );
    t.equal(program?.same, program?.compared);

    // What was inserted to be as slow as with the probes is no place where code is run, on the same pages.
    const machine = name === 'rv-o2' ? 'riscv64' : 'x86_64';
    const starts = new Set(disassemble(machine, path).map(({ address }) => address.toString(16)));
    const { inserted, removed } = wireBreakpoints(wire);
    const shadows = [...new Set(inserted)].filter((address) => !starts.has(address));
    t.equal(shadows.length, slow?.measured);
    t.equal(slow?.measured, slow?.breakpoints);
    const page = (address: bigint): bigint => address >> 12n;
    const pages = (addresses: readonly string[]): bigint[] =>
      [...new Set(addresses.map((address) => page(BigInt(address))))].sort((a, b) => (a < b ? -1 : 1));
    t.same(pages(shadows.map((address) => `0x${address}`)), pages(program?.probes.map(({ address }) => address) ?? []));
    t.same([...removed].sort(), [...inserted].sort(), 'each is taken out as often as it was put in');
    t.match(slow?.counter, /^labkern::/, 'a static of its own tells the speed');

    const end = await qemu.ended;
    t.equal(parseLab(end.stdout).checksum, guest(long).checksum);
    t.equal(end.status, guest(long).exit);
  });

  t.test(`${name}-long: measured from its start, it stands again, and can go on`, async (t) => {
    const long = `${name}-long`;
    const qemu = frozenGuest(t, long);
    const { found, status, stderr } = await runDoctor(qemu.socket, elfPath(long));
    t.equal(status, 0, stderr);
    t.equal(found.target.never_started, true);
    // How far it has come when it is looked at depends on the host.
    const { hits, slow_down: slow } = found;
    t.ok((hits.per_second ?? 0) > 0 || hits.why !== undefined, 'hits, or why there are none');
    t.ok((slow?.ratio ?? 0) > 0 || slow?.why !== undefined, 'a slow-down, or why there is none');
    t.ok(found.advice.some(({ code }) => code === 'was-started'));
    const session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    t.match(await session.monitor('info status'), /^VM status: paused/);
    const deep = await breakpointAt(elfPath(long), 'deep7');
    await session.insertBreakpoint(deep);
    await session.resume();
    const at = monitored((await session.monitor('info registers')) ?? '', name === 'rv-o2' ? 'pc' : 'RIP');
    t.equal(hex(at), hex(deep.address), 'it goes on, and nothing stops it but this');
    session.close();
  });
}

t.test('few probes, and many', async (t) => {
  const path = elfPath('rv-o2-long');
  const many = ['-p', 'fn:labkern::**', '-p', 'poll:**'];
  for (const [probes, least] of [
    [['-p', 'fn:deep7'], 1],
    [many, 30],
  ] as const) {
    const qemu = frozenGuest(t, 'rv-o2-long');
    await standAt(qemu.socket, await breakpointAt(path, 'deep7'));
    const { found, status, stderr } = await runDoctor(qemu.socket, ...probes, path);
    t.equal(status, 0, stderr);
    checkMeasured(t, found);
    t.ok((found.slow_down?.measured ?? 0) >= least, `${found.slow_down?.measured} breakpoints took part`);
  }
});

t.test('-icount: instructions tell the speed', async (t) => {
  const qemu = frozenGuest(t, 'rv-o2-long', ['-icount', 'shift=0']);
  const path = elfPath('rv-o2-long');
  await standAt(qemu.socket, await breakpointAt(path, 'deep7'));
  const { found, status, stderr } = await runDoctor(qemu.socket, path);
  t.equal(status, 0, stderr);
  t.match(found.slow_down, { by: 'instructions', counter: 'minstret' });
  checkMeasured(t, found);
});
