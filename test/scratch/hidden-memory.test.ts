// RAM that the guest does not know of, on real machines: the guest neither sees nor touches it, and behaves as without it.

import t from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/errors.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { HiddenMemory, type HiddenMemoryPlan, planHiddenMemory } from '../../src/scratch/index.js';
import { elfPath, guest, parseLab, qemuArgv, TIMING_DEPENDENT } from '../qemu/guests/guests.js';
import { frozenGuest } from '../support/command.js';
import { hiddenMachine, plainRun, programOf } from '../support/hidden.js';
import { usually } from '../support/long.js';

const MIB = 2 ** 20;

/** The lines that say what the guest did, without those that depend on when the timer came. */
function labLines(console: string): string[] {
  return [...console.replaceAll('\r', '').matchAll(/LAB (?!tick).*\n/g)]
    .map(([line]) => line)
    .filter(
      (line) => !TIMING_DEPENDENT.has(line.split(' ')[2] ?? '') && !/^LAB exec/.test(line) && !/^LAB task/.test(line),
    );
}

const machines = [
  ['rv-o2', 0x8800_0000, 14 * MIB],
  ['rvm-o2', 0x8800_0000, 14 * MIB],
  ['x86-o2', 0x800_0000, 14 * MIB],
] as const;
for (const [name, start0, size] of usually(machines, ([name]) => name !== 'rvm-o2')) {
  t.test(`${name}: the guest runs as without the hidden RAM, and does not touch it`, async (t) => {
    const plain = plainRun(t, qemuArgv(name));
    const machine = await hiddenMachine(t, qemuArgv(name));
    const { plan, session, hidden } = machine;
    const { elf, arch } = await programOf(elfPath(name));
    const poll = [...elf.symbols].find((symbol) => /9poll_task/.test(symbol.name));
    t.ok(poll, 'a function of the kernel');
    const text = poll?.address ?? addr(0);
    t.equal(hidden.start, addr(start0));
    t.equal(hidden.size, size);
    const file = plan.file?.piece(0, plan.file.size);
    t.ok(file, plan.notShared ?? 'shared');

    const base = arch.name === 'riscv64' ? 0x8000_0000 : 0;
    const offset = start0 - base;
    const whole = Buffer.alloc(size, 'never to be seen by the guest. ');
    file?.write(offset, whole);

    let scratch = await hidden.map(arch, { text, pages: arch.name === 'x86_64' });
    if (arch.name === 'x86_64') {
      t.match(scratch, { refused: /paging/, later: true });
      await session.insertBreakpoint({ type: 1, address: text, kind: 1 });
      await session.resume();
      await session.removeBreakpoint({ type: 1, address: text, kind: 1 });
      scratch = await hidden.map(arch, { text, pages: true });
    }
    if (isRefusal(scratch)) throw new Error(scratch.refused);
    t.match(scratch.source, /^hidden RAM 0x[0-9a-f]+\.\.0x[0-9a-f]+, shared through a file$/);
    t.equal(scratch.code.address, addOffset(hidden.start, 0x1000));
    t.equal(scratch.data.address, addOffset(hidden.start, 2 * MIB));
    // Without the last guard page, and 16 pages for page tables.
    t.equal(scratch.data.size, size - 2 * MIB - 17 * 0x1000);

    // What is written through the file is what the stub reads, and the other way round.
    const memory = session.memory();
    const near = { there: addOffset(scratch.data.address, 0x12345), offset: 0x12345 };
    scratch.shared?.write(near.offset, Buffer.from('by the file'));
    t.same(Buffer.from((await memory.read(near.there, 11)) ?? []).toString(), 'by the file');
    t.ok(await memory.write(near.there, Buffer.from('by the stub')));
    const back = Buffer.alloc(11);
    scratch.shared?.read(near.offset, back);
    t.equal(back.toString(), 'by the stub');
    const expected = Buffer.alloc(size);
    file?.read(offset, expected);

    await session.resume();
    const { status } = await machine.ended;
    t.equal(status, guest(name).exit);
    const untraced = await plain;
    t.same(labLines(machine.console()), labLines(untraced), 'what the guest prints');
    t.ok(labLines(untraced).length > 20, 'there are lines to compare');
    t.equal(parseLab(machine.console()).checksum, guest(name).checksum);
    const after = Buffer.alloc(size);
    file?.read(offset, after);
    t.ok(after.equals(expected), 'every byte of the hidden RAM is as it was');
    t.equal(await scratch.verifyGuards(), undefined);
    scratch.shared?.write(scratch.data.size - 1, Buffer.of(1));
    t.equal(await scratch.verifyGuards(), undefined, 'the last byte of the data is not in a guard page');
    file?.write(offset + size - 1, Buffer.of(1));
    t.match(await scratch.verifyGuards(), /somebody wrote to the guard page behind the data/);
  });
}

t.test(
  'more RAM than jumps reach over: on x86 it is hidden below 2 GiB, on riscv64 it cannot be used without paging',
  async (t) => {
    for (const [name, at, refused] of [
      ['rv-o2', 0x1_8000_0000, true],
      ['x86-o2', 0x7f00_0000, false],
    ] as const) {
      const { session, hidden, console, ended } = await hiddenMachine(t, qemuArgv(name, ['-m', '4G']));
      const { elf, arch } = await programOf(elfPath(name));
      const text = [...elf.symbols].find((symbol) => /9poll_task/.test(symbol.name))?.address ?? addr(0);
      t.equal(hidden.start, addr(at));
      await session.insertBreakpoint({ type: 1, address: text, kind: 1 });
      await session.resume();
      await session.removeBreakpoint({ type: 1, address: text, kind: 1 });
      const scratch = await hidden.map(arch, { text, pages: !refused });
      if (refused) t.match(scratch, { refused: /0x180000000 is out of reach of the text at 0x8020/, later: false });
      else t.match(scratch, { code: { address: addr(at + 4096) } });
      await session.resume();
      await ended;
      t.equal(parseLab(console()).checksum, guest(name).checksum);
    }
  },
);

/** Where a machine at its reset vector has its device tree, and its bytes. */
async function deviceTree(session: Session): Promise<{ at: bigint; bytes: Buffer }> {
  const memory = session.memory();
  const pointer = Buffer.from((await memory.read(addr(0x1020), 8)) ?? []);
  const at = addr(pointer.readBigUInt64LE());
  const header = Buffer.from((await memory.read(at, 8)) ?? []);
  return { at, bytes: Buffer.from((await memory.read(at, header.readUInt32BE(4))) ?? []) };
}

/** The properties of a device tree, whatever node they are of. */
function* properties(blob: Buffer): Generator<{ name: string; at: number; length: number }> {
  const strings = blob.readUInt32BE(12);
  for (let at = blob.readUInt32BE(8), token = 0; token !== 9; ) {
    token = blob.readUInt32BE(at);
    at += 4;
    if (token === 1) at = (blob.indexOf(0, at) + 4) & ~3;
    if (token !== 3) continue;
    const length = blob.readUInt32BE(at);
    const name = strings + blob.readUInt32BE(at + 4);
    yield { name: blob.toString('latin1', name, blob.indexOf(0, name)), at: at + 8, length };
    at = (at + 8 + length + 3) & ~3;
  }
}

for (const size of usually(['128', '512', '1G', '2G'], (one) => one === '2G')) {
  t.test(`virt with -m ${size}: the device tree is that of a machine without the hidden RAM`, async (t) => {
    const machine = ['-m', size];
    const plain = frozenGuest(t, 'rv-o2', machine);
    const session = await connect(plain.socket, { waitMs: 60_000 });
    t.teardown(() => session.close());
    const wanted = await deviceTree(session);
    const hidden = await hiddenMachine(t, qemuArgv('rv-o2', machine));
    const found = await deviceTree(hidden.session);
    // The seed for random numbers is another each time.
    const unseeded = (bytes: Buffer): Buffer => {
      const seed = [...properties(bytes)].find(({ name }) => name === 'rng-seed');
      return Buffer.from(bytes).fill(0, seed?.at ?? 0, (seed?.at ?? 0) + (seed?.length ?? 0));
    };
    t.ok(wanted.bytes.length > 2000);
    t.ok(unseeded(found.bytes).equals(unseeded(wanted.bytes)), 'byte for byte');
    t.equal(found.at, wanted.at, 'in the same place');
  });
}

t.test(
  'what does not fit is refused: another machine, a device tree of two pieces, RAM that is not there',
  async (t) => {
    const plan = async (...command: string[]): Promise<HiddenMemoryPlan> => {
      const made = await planHiddenMemory(command);
      if (isRefusal(made)) throw new Error(made.refused);
      t.teardown(() => made[Symbol.dispose]());
      return made;
    };
    const riscv = await plan('qemu-system-riscv64', '-M', 'virt');
    const pc = await plan('qemu-system-x86_64', '-kernel', elfPath('x86-o2'));
    const nodes = ['-m', '256', '-object', 'memory-backend-ram,id=a,size=128M', '-numa', 'node,memdev=a'];
    const two = [...nodes, '-object', 'memory-backend-ram,id=b,size=128M', '-numa', 'node,memdev=b', '-smp', '2'];
    for (const [name, extra, wrong, why] of [
      ['rv-o2', ['-m', '128'], riscv, /has 134217728 bytes of RAM instead of 150994944/],
      ['rv-o2', two, riscv, /more than one piece/],
      ['x86-o2', [], riscv, /no device tree/],
      ['x86-o2', ['-m', '8'], pc, /no 16 MiB of RAM to spare/],
      ['rv-o2', [], pc, /kernel's entry/],
    ] as const) {
      const qemu = frozenGuest(t, name, extra);
      const session = await connect(qemu.socket, { waitMs: 60_000 });
      const refused = await HiddenMemory.reserve(session, wrong);
      t.match(refused, { refused: why }, `${name} ${extra.join(' ')}`);
      session.close();
      qemu.process.kill('SIGKILL');
    }
  },
);
