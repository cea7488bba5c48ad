// The guest's clocks, on real QEMUs, each against another way to read the same hardware.
import t, { type Test } from 'tap';
import { riscv64, x86_64 } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { findClock } from '../../src/clock/clock.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { frozenGuest } from '../support/command.js';
import { stubServers } from '../support/stub-servers.js';

async function attach(t: Test, name: string): Promise<Session> {
  const session = await connect(frozenGuest(t, name).socket, { waitMs: 60_000 });
  t.teardown(() => session.close());
  return session;
}

async function runFor(session: Session, ms: number): Promise<void> {
  const stopped = session.resume();
  await new Promise((resolve) => setTimeout(resolve, ms));
  await session.interrupt();
  await stopped;
}

async function read(session: Session, clock: Awaited<ReturnType<typeof findClock>>): Promise<number> {
  const batch = session.batch();
  const time = clock.request(batch);
  await batch.send();
  return time();
}

const number = (bytes: Uint8Array | undefined): bigint => Buffer.from(bytes ?? []).readBigUInt64LE();

t.test('riscv: the time CSR, whose number follows from other CSRs, is mtime', async (t) => {
  const session = await attach(t, 'rv-o2-long');
  const clock = await findClock(session, riscv64, () => 0);
  t.same(clock.info, { name: 'riscv-time', resolutionNs: 100, guest: true });
  for (let i = 0; i < 3; i++) {
    await runFor(session, 50);
    const batch = session.batch();
    const time = clock.request(batch);
    const mtime = batch.readMemory(addr(0x200bff8n), 8);
    await batch.send();
    t.equal(time(), Number(number(mtime.value)) * 100, 'in nanoseconds of a 10 MHz clock');
  }
  const slower = await findClock(session, riscv64, () => 0, 'time', { timebaseHz: 1_000_000 });
  t.equal(await read(session, slower), 10 * (await read(session, clock)), '--timebase');
  await t.rejects(
    findClock(session, riscv64, () => 0, 'hpet'),
    { code: 'CLOCK_UNAVAILABLE' },
  );
});

t.test('riscv: what QEMU in user mode has for a time CSR is the ticks of its host', async (t) => {
  const server = stubServers.find(({ name }) => name === 'qemu-riscv64 -g');
  if (!server) throw new Error('no qemu-riscv64');
  const { address } = await server.start(t, 2);
  const session = await connect(address, { waitMs: 10_000 });
  t.teardown(() => session.close());
  t.same((await findClock(session, riscv64, () => 0)).info.guest, false);
  await t.rejects(
    findClock(session, riscv64, () => 0, 'time'),
    { code: 'CLOCK_UNAVAILABLE' },
  );
});

t.test('OpenOCD: a hart without a time CSR, for which it answers zeros', async (t) => {
  const server = stubServers.find(({ name }) => name.startsWith('OpenOCD'));
  if (!server) throw new Error('no OpenOCD');
  const { address } = await server.start(t, 2);
  const session = await connect(address, { waitMs: 10_000 });
  t.teardown(() => session.close());
  const batch = session.batch();
  const answer = batch.readRegister('time');
  await batch.send();
  t.equal(answer.value, 0n, 'no error');
  t.same((await findClock(session, riscv64, () => 0)).info.guest, false);
  await t.rejects(
    findClock(session, riscv64, () => 0, 'time'),
    { code: 'CLOCK_UNAVAILABLE', hint: /others here: intervals$/ },
  );
});

t.test('x86: the ACPI PM timer, across the wraps of its 24 bits', async (t) => {
  const session = await attach(t, 'x86-o2-long');
  let ran = 0;
  await runFor(session, 500);
  const clock = await findClock(session, x86_64, () => ran);
  t.equal(clock.info.name, 'x86-acpi-pm');
  const first = await read(session, clock);
  t.equal(await read(session, clock), first, 'stands still while the guest is stopped');
  await runFor(session, 100);
  const second = await read(session, clock);
  t.ok(second > first, 'goes on with it');
  // 24 bits at 3.58 MHz are 4.687 s: when the guest has run for two wraps more, the count must show it.
  const wrap = (2 ** 24 / 3_579_545) * 1e9;
  ran += 2 * wrap;
  t.ok(Math.abs((await read(session, clock)) - (second + 2 * wrap)) < 1000);
});

t.test('x86: HPET only where the guest has started it, and then in its own ticks', async (t) => {
  const session = await attach(t, 'x86-o2-long');
  await runFor(session, 500);
  await t.rejects(
    findClock(session, x86_64, () => 0, 'hpet'),
    { code: 'CLOCK_UNAVAILABLE' },
  );
  const physical = await session.physicalMemory();
  t.ok(await physical?.write(addr(0xfed00010n), Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0)));
  const clock = await findClock(session, x86_64, () => 0);
  t.equal(clock.info.name, 'x86-hpet');
  t.equal(clock.info.resolutionNs, 10, "QEMU's HPET runs at 100 MHz");
  await runFor(session, 100);
  const batch = session.batch();
  const time = clock.request(batch);
  const memory = batch.readRegister('cr3');
  await batch.send();
  const monitor = /: (0x[0-9a-f]+)/.exec((await session.monitor('xp /1gx 0xfed000f0')) ?? '');
  t.equal(time(), Number(BigInt(monitor?.[1] ?? '0')) * 10, "as QEMU's own monitor reads it");
  t.ok(memory.value !== undefined, 'and memory is virtual again');
});

t.test('without a clock of the guest, the time that it ran', async (t) => {
  const session = await attach(t, 'rv-o2');
  let ran = 5;
  const clock = await findClock(session, riscv64, () => ran, 'intervals');
  t.equal(clock.info.guest, false);
  t.equal(await read(session, clock), 5);
  ran = 1e9;
  t.equal(await read(session, clock), 1e9);
});
