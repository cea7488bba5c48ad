import t from 'tap';
import { connect, type Session } from '../../src/rsp/index.js';
import { STATUS } from '../support/counted-program.js';
import { countUntil } from '../support/counting-engine.js';
import { usually } from '../support/long.js';
import { qemuSystem, qemuVersions, versionOf } from '../support/stub-servers.js';

const HARTS = 4;

async function pcs(session: Session, harts: readonly string[]): Promise<(bigint | undefined)[]> {
  const replies = [];
  for (const hart of harts) {
    const batch = session.batch(hart);
    replies.push(batch.readRegister('pc'));
    await batch.send();
  }
  return replies.map((reply) => reply.value);
}

async function counters(session: Session, address: bigint): Promise<number[]> {
  const bytes = await session.memory().read(address as never, 8 * HARTS);
  return [...new BigUint64Array((bytes ?? new Uint8Array(8 * HARTS)).slice().buffer)].map(Number);
}

// Every other test has the distribution's own.
for (const binary of usually(qemuVersions, (one) => one === qemuVersions.at(-1))) {
  const server = qemuSystem('riscv64', HARTS, binary);

  t.test(
    `${server.name}, QEMU ${versionOf(binary)}: the tracer's engine sees each hart's calls, none lost, none twice`,
    async (t) => {
      const { address, program, guest } = await server.start(t);
      const session = await connect(address, { waitMs: 60_000 });
      const work = program.symbol('work');
      const { hits } = await countUntil(session, 'riscv64', [work, program.symbol('arrived')]);
      const each = program.calls / HARTS;
      t.same(
        [0, 1, 2, 3].map((hart) => hits.get(hart)?.get(work)),
        Array(HARTS).fill(each),
      );
      t.same(await counters(session, program.symbol('counters')), Array(HARTS).fill(each), "the program's own count");
      await session.memory().write(program.symbol('release'), new Uint8Array([1]));
      await session.detach();
      t.equal((await guest.ended).status, STATUS);
    },
  );

  t.test(
    `${server.name}, QEMU ${versionOf(binary)}: harts at a breakpoint at once, and one stepped with the others held`,
    async (t) => {
      const { address, program } = await server.start(t);
      await using session = await connect(address, { waitMs: 60_000 });
      const harts = (await session.harts()).map(({ id }) => id);
      t.equal(harts.length, HARTS);
      const work = { type: 0, address: program.symbol('work'), kind: 2 } as const;
      const counted = program.symbol('counters');
      await session.insertBreakpoint(work);
      const hits = new Map<string, number>();
      let together = 0;
      for (let stops = 0; stops < 300; stops++) {
        const stop = await session.resume();
        if (stop.kind !== 'signal' || stop.hart === undefined) throw new Error(`it stops with ${stop.kind}`);
        const before = await pcs(session, harts);
        const here = harts.indexOf(stop.hart);
        if (before[here] !== work.address) continue;
        hits.set(stop.hart, (hits.get(stop.hart) ?? 0) + 1);
        if (before.filter((pc) => pc === work.address).length > 1) together++;

        const held = await counters(session, counted);
        // Not as far as the store that counts.
        for (let steps = 0; steps < 3; steps++) {
          const after = await session.stepOver(stop.hart, work);
          if (after.kind !== 'signal' || after.hart !== stop.hart) t.match(after, { kind: 'signal', hart: stop.hart });
        }
        const now = await pcs(session, harts);
        if (now[here] === before[here]) t.fail(`${stop.hart} has not moved`);
        now[here] = before[here];
        if (now.some((pc, index) => pc !== before[index])) t.same(now, before, 'the others are held');
        if (JSON.stringify(await counters(session, counted)) !== JSON.stringify(held)) t.fail('somebody has counted');
      }
      t.ok(together > 10, `${together} stops with more than one hart at the breakpoint`);
      // Who waits at the breakpoint was not reported for that call; who is inside may not have counted it yet.
      const waiting = await pcs(session, harts);
      const own = await counters(session, counted);
      for (const [index, hart] of harts.entries()) {
        const pc = waiting[index] ?? 0n;
        const inside = pc > work.address && pc < work.address + 32n && hits.get(hart) !== own[index] ? 1 : 0;
        t.equal(hits.get(hart) ?? 0, (own[index] ?? 0) + inside, `hart ${index}`);
      }
    },
  );
}
