// What is kept of a machine between two looks at it.
import t from 'tap';
import { MachineKept } from '../../src/api/machine-kept.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { architectureFor } from '../../src/target/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { frozenQemu } from '../support/command.js';

t.test('RAM is as large as QEMU was told', async (t) => {
  const backend = ['-object', 'memory-backend-ram,id=all,size=2T,reserve=off', '-machine', 'memory-backend=all'];
  for (const [extra, bytes] of [
    [backend, 2 ** 41],
    // Less than a piece that is read past the wire.
    [['-m', '1M'], 2 ** 20],
  ] as const) {
    const { socket } = frozenQemu(t, ['qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', ...extra]);
    const session = await connect(socket, { waitMs: 60_000 });
    t.teardown(() => session.close());
    using kept = new MachineKept();
    t.same(await kept.ram(session), [{ start: 0x8000_0000n, length: bytes }]);
  }
});

t.test('each program has stacks of its own', async (t) => {
  using kept = new MachineKept();
  const open = async (name: string) => {
    const elf = await ElfFile.open(elfPath(name));
    return { elf, debug: DebugInfo.load(elf) };
  };
  const [one, other] = [await open('rv-o2'), await open('rv-o0')];
  const arch = architectureFor(one.elf);
  t.equal(kept.stacks(one, arch), kept.stacks(one, arch));
  t.not(kept.stacks(other, arch), kept.stacks(one, arch));
});
