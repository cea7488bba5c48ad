// A machine that is reset: QEMU loads everything anew, the device tree and the memory map too, and the RAM is hidden again.
import t, { type Test } from 'tap';
import { riscv64 } from '../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/errors.js';
import type { Session } from '../../src/rsp/index.js';
import { ResetVector } from '../../src/target/index.js';
import { elfPath, guest, parseLab, qemuArgv } from '../qemu/guests/guests.js';
import { open } from '../rsp/open.js';
import { type HiddenMachine, hiddenMachine, programOf } from '../support/hidden.js';
import { usually } from '../support/long.js';

const MIB = 2 ** 20;

t.test('a hart alone at the reset vector is none that was reset', async (t) => {
  const { machine, late } = await lateHart(t);
  const { session, vector } = machine;
  await session.insertBreakpoint(vector.breakpoint);
  const stop = await session.resume();
  t.match(stop, { kind: 'signal', hart: late.id });
  t.equal(await pcOf(session, 'pc'), 0x1000n);
  t.equal(await vector.stopped(0x1000n, late.id), 'passed');
  t.equal(await pcOf(session, 'pc'), 0x1004n, 'and it goes on');
  await session.removeBreakpoint(vector.breakpoint);
  await session.resume();
  await machine.ended;
  t.equal(parseLab(machine.console()).checksum, guest('rv-o2').checksum);
});

t.test('a step at the reset vector that executes nothing is made again', async (t) => {
  const words = (pc: number): string => Buffer.from(Uint32Array.of(pc, 0).buffer).toString('hex');
  let steps = 0;
  const { stub, session } = await open(t, {
    p20: () => words(steps < 3 ? 0x1000 : 0x1004),
    'vCont;s*': () => {
      steps++;
      return 'T05thread:p01.01;';
    },
    'Z0,1000,4': 'OK',
  });
  const vector = await ResetVector.find(session, riscv64);
  if (vector === undefined) throw new Error('it stands there');
  t.equal(await vector.watch(), true);
  t.equal(steps, 3);
  t.equal(stub.heard.filter((each) => each.startsWith('Z')).length, 1);
  steps = -1000;
  await t.rejects(vector.watch(), { code: 'TARGET_STUCK' });
  t.equal(steps, -900, 'and not for ever');
});

/** A machine whose second hart has executed nothing yet. On a busy host it may have, when the first one is stepped. */
async function lateHart(t: Test): Promise<{ readonly machine: HiddenMachine; readonly late: { readonly id: string } }> {
  for (let attempt = 1; attempt <= 10; attempt++) {
    const machine = await hiddenMachine(t, qemuArgv('rv-o2', ['-smp', '2']));
    const [first, late] = await machine.session.harts();
    if (!first || !late) throw new Error('two harts');
    // As if the first step of the other one had executed nothing.
    await machine.session.resume({ kind: 'step', hart: first.id });
    if ((await pcOf(machine.session, 'pc', late.id)) === 0x1000n) return { machine, late };
  }
  throw new Error('the second hart never stands at the reset vector');
}

async function pcOf(session: Session, name: string, hart?: string): Promise<bigint | undefined> {
  const batch = session.batch(hart);
  const reply = batch.readRegister(name);
  await batch.send();
  return reply.value;
}

const machines = [
  ['rv-o2', 2, 0x8000_0000],
  ['rvm-o2', 1, 0x8000_0000],
  ['x86-o2', 1, 0],
] as const;
for (const [name, smp, base] of usually(machines, ([name]) => name !== 'rvm-o2')) {
  t.test(`${name}: reset half way, twice`, async (t) => {
    // A guest that ends QEMU when it resets would not come back.
    const command = qemuArgv(name, ['-smp', String(smp)]).filter((word) => word !== '-no-reboot');
    const machine = await hiddenMachine(t, command);
    const { session, hidden, plan, vector } = machine;
    const { elf, arch } = await programOf(elfPath(name));
    const text = [...elf.symbols].find((symbol) => /9poll_task/.test(symbol.name))?.address ?? addr(0);
    const offset = Number(hidden.start) - base;
    const mark = Buffer.alloc(hidden.size, 'stays through a reset ');
    const file = plan.file?.piece(offset, hidden.size);
    file?.write(0, mark);
    t.equal(await vector.watch(), true);
    const poll: { type: 1; address: Addr; kind: number } = { type: 1, address: text, kind: 1 };
    for (let round = 0; round < 2; round++) {
      await session.insertBreakpoint(poll);
      await session.resume();
      t.equal(await pcOf(session, arch.pc), text, 'the kernel runs');
      await session.removeBreakpoint(poll);
      await session.monitor('system_reset');
      await session.resume();
      const reset = await pcOf(session, arch.pc);
      t.equal(reset, arch.name === 'riscv64' ? 0x1000n : 0xfff0n);
      t.equal(await vector.stopped(reset ?? 0n, undefined), 'reset');
      await session.removeBreakpoint(vector.breakpoint);
      t.equal(await hidden.hideAgain(), undefined);
      t.equal(await vector.watch(), true);
    }
    const scratch = await hidden.map(arch, { text, pages: false });
    if (isRefusal(scratch)) throw new Error(scratch.refused);
    await session.resume();
    await machine.ended;
    t.equal(parseLab(machine.console()).checksum, guest(name).checksum);
    const after = Buffer.alloc(hidden.size);
    file?.read(0, after);
    const guards = [0, 2 * MIB - 4096, hidden.size - 4096];
    for (const at of guards) mark.copy(after, at, at, at + 4096);
    t.ok(after.equals(mark), 'and the hidden RAM is as it was');
    t.equal(addOffset(hidden.start, 0x1000), scratch.code.address);
  });
}
