// Hidden RAM under a kernel that pages: leaf entries beside its text, in both of its address spaces, and nothing left of them.
import t from 'tap';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { isRefusal } from '../../src/base/errors.js';
import { currentAddressSpace, turnsPagingOn } from '../../src/target/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { hiddenMachine, programOf } from '../support/hidden.js';
import { pagingKernel, WORK_CALLS } from '../support/tiny-kernels.js';

const MIB = 2 ** 20;

/** A trampoline that counts in memory and does nothing else, and the jump to it. */
function counting(arch: 'riscv64' | 'x86_64', code: Addr, counter: Addr, work: Addr): { code: Buffer; patch: Buffer } {
  if (arch === 'x86_64') {
    // lock incq counter(%rip); jmp work+5      and at work: jmp code
    const jump = Buffer.from('f048ff0500000000e900000000', 'hex');
    jump.writeInt32LE(Number(counter - code) - 8, 4);
    jump.writeInt32LE(Number(work - code) + 5 - 13, 9);
    const patch = Buffer.from('e900000000', 'hex');
    patch.writeInt32LE(Number(code - work) - 5, 1);
    return { code: jump, patch };
  }
  const words = (...list: number[]): Buffer =>
    Buffer.concat(list.map((word) => Buffer.from(Uint32Array.of(word).buffer)));
  const high = (distance: bigint): number => Number(((distance + 0x800n) >> 12n) & 0xf_ffffn) << 12;
  const low = (distance: bigint): number => Number(distance & 0xfffn) << 20;
  const T0 = 5;
  const T1 = 6;
  const toCounter = counter - code;
  const back = addOffset(work, 8) - addOffset(code, 16);
  const there = code - work;
  return {
    code: words(
      high(toCounter) | (T0 << 7) | 0x17, // auipc t0
      low(toCounter) | (T0 << 15) | (T0 << 7) | 0x13, // addi t0, t0
      (1 << 20) | (T1 << 7) | 0x13, // li t1, 1
      (T1 << 20) | (T0 << 15) | (3 << 12) | 0x2f, // amoadd.d zero, t1, (t0)
      high(back) | (T0 << 7) | 0x17, // auipc t0
      low(back) | (T0 << 15) | 0x67, // jr t0
    ),
    patch: words(high(there) | (T0 << 7) | 0x17, low(there) | (T0 << 15) | 0x67),
  };
}

// Bytes of code that are asked for, and the MiB that there are then, guard pages included.
for (const [name, levels, codeSize, codePages] of [
  ['riscv64', 3, 3 * MIB, 4],
  ['riscv64', 4, 0, 2],
  ['riscv64', 5, 64 * MIB, 6],
  ['x86_64', 4, 3 * MIB, 4],
  ['x86_64', 5, 0, 2],
] as const) {
  t.test(`${name}, ${levels} levels`, async (t) => {
    const kernel = pagingKernel(t, name, levels);
    const { elf, arch } = await programOf(kernel.elf);
    const address = (symbol: string): Addr => elf.symbols.named(symbol)[0]?.address ?? addr(0);
    const work = address('work');
    const machine = await hiddenMachine(t, kernel.command);
    const { session, hidden } = machine;
    const pages = turnsPagingOn(elf, arch) === true;
    t.equal(pages, true);
    t.match(await hidden.map(arch, { text: work, pages }), { refused: /paging/, later: true }, 'not yet');

    const settled = { type: 1, address: address('settled'), kind: 1 } as const;
    await session.insertBreakpoint(settled);
    await session.resume();
    await session.removeBreakpoint(settled);
    const mem = name === 'riscv64' ? 'info mem' : 'info tlb';
    const before = await session.monitor(mem);
    const scratch = await hidden.map(arch, { text: work, pages, codeSize });
    if (isRefusal(scratch)) throw new Error(scratch.refused);
    t.match(scratch.source, /^hidden RAM .*, mapped at 0xffffffff[89a-f][0-9a-f]{7}, shared through a file$/);
    const distance = Number(scratch.code.address - work);
    t.ok(Math.abs(distance) < 2 ** 30, `${distance} bytes from the text`);
    t.equal(scratch.code.physical, addOffset(hidden.start, 0x1000));
    t.equal(scratch.data.address, addOffset(scratch.code.address, codePages * MIB - 0x1000));
    t.equal(scratch.code.size, codePages * MIB - 0x2000);

    const space = await currentAddressSpace(session, arch);
    if (isRefusal(space)) throw new Error(space.refused);
    const lastPage = addOffset(scratch.code.address, scratch.code.size - 0x1000);
    for (const page of [scratch.code.address, lastPage])
      t.match(await space.translate(page), { executable: true, writable: false, user: false });
    t.match(await space.translate(scratch.data.address), { executable: false, writable: true, user: false });
    t.equal(await space.translate(addOffset(hidden.start, 0)), undefined, 'nothing else has changed');

    // Runs under both roots and through both leaves.
    const counter = addOffset(scratch.data.address, 64);
    const { code, patch } = counting(name, lastPage, counter, work);
    const memory = session.memory();
    const original = (await memory.read(work, patch.length)) ?? new Uint8Array(0);
    t.ok(await memory.write(lastPage, code));
    t.same(Buffer.from((await memory.read(lastPage, code.length)) ?? []), code);
    t.ok(await memory.write(work, patch));
    const atWork = { type: 1, address: work, kind: 1 } as const;
    await session.insertBreakpoint(atWork);
    const hart = (await session.harts())[0]?.id ?? '';
    await session.resume();
    for (let call = 0; call < 2; call++) {
      await session.stepOver(hart, atWork);
      await session.resume();
    }
    await session.removeBreakpoint(atWork);
    const count = Buffer.alloc(8);
    scratch.shared?.read(64, count);
    t.equal(count.readBigUInt64LE(0), 2n, 'two calls, seen through the file while the target stands');
    t.equal(await scratch.verifyGuards(), undefined);

    if (levels === 4) {
      // Taken out half way: the kernel runs on with its own text.
      t.ok(await memory.write(work, original));
      await scratch.release();
      await scratch.release();
      t.equal(await session.monitor(mem), before, 'the page tables are what they were');
    }
    await session.resume();
    await machine.ended;
    scratch.shared?.read(64, count);
    t.equal(Number(count.readBigUInt64LE(0)), levels === 4 ? 2 : WORK_CALLS);
    t.match(machine.console(), new RegExp(`(^|[^0-9])${WORK_CALLS}\n`), 'the kernel has counted the same');
    t.equal(await scratch.verifyGuards(), undefined, 'even now');
  });
}

t.test('programs that never turn paging on', async (t) => {
  for (const [name, pages] of [
    ['rv-o2', false],
    ['rvm-o2', false],
    ['x86-o2', true],
  ] as const) {
    const { elf, arch } = await programOf(elfPath(name));
    t.equal(turnsPagingOn(elf, arch), pages, name);
  }
});
