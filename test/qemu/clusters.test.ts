// Machines whose harts are of several kinds: QEMU's stub has a process for each cluster, and shows a client the first alone. The calls that the
// harts count, and their registers, which differ.
import { join } from 'node:path';
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { frozenQemu, rsptrace, scratchFolder, start } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { usually } from '../support/long.js';
import { clustersKernel } from '../support/tiny-kernels.js';

const HARTS = [0, 1, 2, 3, 4];
interface Recorded {
  readonly functions: readonly object[];
  readonly harts_unseen: number;
}

t.test('the calls of all five harts', { timeout: 120_000 }, async (t) => {
  const { elf, command } = clustersKernel(t);
  const trace = join(scratchFolder(t), 'out.json');
  const probes = ['-p', 'fn:work', '--until', 'drained'];
  const { status, stdout, stderr } = await rsptrace('run', '--json', ...probes, '-o', trace, elf, '--', ...command)
    .ended;
  t.equal(status, 0, stderr.slice(-300));
  const [, json = ''] = /^(\{.*\})$/m.exec(stdout) ?? [];
  const { functions, harts_unseen: unseen } = JSON.parse(json) as Recorded;
  t.equal(unseen, 0);
  t.notMatch(stderr, /to its debugger/);
  const counted = Number(/work (\d+)/.exec(stdout + stderr)?.[1]);
  t.equal(counted, 40 + 41 + 42 + 43 + 44, 'their own counter');
  t.match(functions, [{ function: 'work', calls: counted, lost: 0 }]);
});

for (const machine of usually(['sifive_u', 'microchip-icicle-kit'], (one) => one === 'sifive_u')) {
  t.test(`${machine}: the registers of each kind of hart`, { timeout: 120_000 }, async (t) => {
    const socket = join(scratchFolder(t), 'stub');
    const frozen = ['-smp', '5', '-m', '2G', '-bios', 'none', '-display', 'none', '-S'];
    const qemu = start('qemu-system-riscv64', ['-M', machine, ...frozen, '-gdb', `unix:${socket},server=on`]);
    t.teardown(() => qemu.signal('SIGTERM'));
    const session = await connect(`unix:${socket}`, { waitMs: 20_000 });
    const numbers: (bigint | undefined)[] = [];
    const supervisor: boolean[] = [];
    for (const { id } of await session.harts()) {
      const batch = session.batch(id);
      const [number, satp] = [batch.readRegister('mhartid'), batch.readRegister('satp')];
      await batch.send();
      numbers.push(number.value);
      supervisor.push(satp.value !== undefined);
    }
    t.strictSame(numbers, HARTS.map(BigInt));
    // The first is an E51, which has neither S-mode nor floating point: its CSRs have other numbers.
    t.strictSame(supervisor, [false, true, true, true, true]);
    t.equal(await (await session.stub()).processors(), HARTS.length, 'as many as the monitor has');
    await session.kill();
  });
}

t.test('a cluster that a stub does not let a client attach to is said once', { timeout: 120_000 }, async (t) => {
  const { elf, command } = clustersKernel(t);
  await using proxy = await FaultProxy.start(frozenQemu(t, command).socket, {
    // No machine has a process of this number.
    'to-stub': { edit: (text) => text.replace(/\$vAttach;2#../, '$vAttach;f#6c') },
  });
  const ran = await rsptrace('-r', `unix:${proxy.path}`, '--json', '-p', 'fn:work', '--max-events', '20', elf).ended;
  t.equal(ran.status, 0, ran.stderr.slice(-300));
  t.equal((JSON.parse(ran.stdout) as Recorded).harts_unseen, 4);
  t.equal(ran.stderr.match(/QEMU lists 1 hart of 5 to its debugger: 4 are not traced/g)?.length, 1, ran.stderr);
});
