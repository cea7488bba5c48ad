// A machine that is reset: QEMU loads everything anew, the device tree and the memory map too, and the RAM is hidden again.
import t from 'tap';
import { type Addr, addOffset, addr } from '../../../src/base/addr.js';
import { isRefusal } from '../../../src/probes/scratch/index.js';
import type { Session } from '../../../src/rsp/index.js';
import { elfPath, guest, parseLab, qemuArgv } from '../../qemu/guests/guests.js';
import { hiddenMachine, programOf } from '../../support/hidden.js';

const MIB = 2 ** 20;

async function pcOf(session: Session, name: string): Promise<bigint | undefined> {
  const batch = session.batch();
  const reply = batch.readRegister(name);
  await batch.send();
  return reply.value;
}

for (const [name, smp, base] of [
  ['rv-o2', 2, 0x8000_0000],
  ['rvm-o2', 1, 0x8000_0000],
  ['x86-o2', 1, 0],
] as const) {
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
