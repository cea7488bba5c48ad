// The free blocks of a kernel's own allocator, against gdb's walk over the same list, on a guest that stands.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { freeBlocks } from '../../../src/async/tasks/free-memory.js';
import type { Snapshot } from '../../../src/async/tasks/snapshot.js';
import { addr } from '../../../src/base/addr.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { connect } from '../../../src/rsp/index.js';
import { elfPath, guest } from '../../qemu/guests/guests.js';
import { addressesNamed } from '../../support/addresses-named.js';
import { frozenGuest, scratchFolder } from '../../support/command.js';
import { usually } from '../../support/long.js';

/** The list as the guest's source lays it out: a pointer, and blocks that begin with their size and the next pointer. */
const walk = (head: bigint) => `
set language c
set $n = *(unsigned long long *)${head}
while $n != 0
printf "block %#llx %llu\\n", $n, *(unsigned long long *)$n
set $n = *(unsigned long long *)($n + 8)
end
`;

for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(name, async (t) => {
    const path = elfPath(name);
    const qemu = frozenGuest(t, name);
    const elf = await ElfFile.open(path);
    const debug = DebugInfo.load(elf);
    const session = await connect(qemu.socket, { waitMs: 60_000 });
    const [at] = addressesNamed(debug, 'labkern::exec::poll_task');
    const breakpoint = { type: 0, address: addr(at ?? 0n), kind: 2 } as const;
    // What the first polls have allocated is partly free by then.
    for (let i = 0; i < 60; i++) {
      const [{ id }] = (await session.harts()) as [{ id: string }];
      if (i > 0) await session.resume({ kind: 'step', hart: id });
      await session.insertBreakpoint(breakpoint);
      await session.resume();
      await session.removeBreakpoint(breakpoint);
    }
    const found = await freeBlocks({ debug, memory: session.memory() as unknown as Snapshot });
    session.close();
    const args = ['-nx', '-batch', path, '-ex', `target remote ${qemu.socket}`];
    const [, head] = /^([0-9a-f]+) \w \S*heap5ALLOC$/m.exec(execFileSync('nm', [path], { encoding: 'utf8' })) ?? [];
    const script = join(scratchFolder(t), 'walk.gdb');
    writeFileSync(script, walk(BigInt(`0x${head}`)));
    const printed = execFileSync('gdb-multiarch', [...args, '-x', script, '-ex', 'disconnect'], {
      ...{ encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 20_000 },
    });
    const expected = [...printed.matchAll(/^block (0x[0-9a-f]+) (\d+)$/gm)].map(([, start = '', length]) => ({
      start: BigInt(start),
      length: Number(length),
    }));
    t.ok(expected.length >= 3, `${expected.length} free blocks`);
    t.same(found, expected);
    // gdb has left it standing.
    await (await connect(qemu.socket)).detach();
    t.equal((await qemu.ended).status, guest(name).exit, 'and the guest ran on to its end');
  });
}
