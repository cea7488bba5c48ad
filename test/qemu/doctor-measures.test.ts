// `rsptrace doctor` lets guests run and measures: what it inserts, and that they are none the worse for it. How fast they were is not judged.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { hex } from '../../src/base/addr.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, scratchFolder } from '../support/command.js';
import { breakpointAt, type Doctored, monitored, runDoctor, standAt, wireBreakpoints } from '../support/doctor.js';
import { usually } from '../support/long.js';
import { elfPath, guest, parseLab } from './guests/guests.js';

function checkMeasured(t: Test, { hits, times }: Doctored): void {
  t.ok((hits.per_second ?? 0) > 0 && (hits.hits ?? 0) >= 2, `${hits.per_second} hits a second: ${hits.why}`);
  for (const each of Object.values(times)) t.ok((each?.median_us ?? 0) > 0, 'round trips take time');
}

// Either architecture at both moments under `--long`.
for (const name of usually(['rv-o2', 'x86-o2'] as const, (one) => one === 'x86-o2')) {
  t.test(`${name}-long: a guest in the middle of its work is measured, and ends as it does undisturbed`, async (t) => {
    const long = `${name}-long`;
    const qemu = frozenGuest(t, long);
    const path = elfPath(long);
    await standAt(qemu.socket, await breakpointAt(path, 'deep7'));
    const wire = join(scratchFolder(t), 'wire');
    const { found, status, stderr } = await runDoctor(qemu.socket, '--record-wire', wire, path);
    t.equal(status, 0, stderr);
    checkMeasured(t, found);
    t.equal(found.target.never_started, false);
    const { program, hits } = found;
    t.ok(
      program?.probes.some(({ address }) => address === hits.address),
      'hits were counted at a probe',
    );
    t.equal(program?.same, program?.compared);

    const { inserted, removed } = wireBreakpoints(wire);
    t.ok(inserted.length > 0);
    t.same([...removed].sort(), [...inserted].sort(), 'each is taken out as often as it was put in');

    const end = await qemu.ended;
    t.equal(parseLab(end.stdout).checksum, guest(long).checksum);
    t.equal(end.status, guest(long).exit);
  });
}

for (const name of usually(['rv-o2', 'x86-o2'] as const, (one) => one === 'rv-o2')) {
  t.test(`${name}-long: measured from its start, it stands again, and can go on`, async (t) => {
    const long = `${name}-long`;
    const qemu = frozenGuest(t, long);
    const { found, status, stderr } = await runDoctor(qemu.socket, elfPath(long));
    t.equal(status, 0, stderr);
    t.equal(found.target.never_started, true);
    // How far it has come when it is looked at depends on the host.
    const { hits } = found;
    t.ok((hits.per_second ?? 0) > 0 || hits.why !== undefined, 'hits, or why there are none');
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
