// `rsptrace doctor` at guests that stand: what it says against QEMU's own monitor, and what it leaves behind.
import { join } from 'node:path';
import t from 'tap';
import { addr, hex } from '../../src/base/addr.js';
import { placeName } from '../../src/doctor/report-json.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { frozenGuest, frozenQemu, rsptrace, scratchFolder, start } from '../support/command.js';
import { STATUS } from '../support/counted-program.js';
import { breakpointAt, monitored, runDoctor, standAt } from '../support/doctor.js';
import { qemuSystem } from '../support/stub-servers.js';
import { diskKernel, movedKernel, pagingKernel } from '../support/tiny-kernels.js';
import { elfPath } from './guests/guests.js';

const modes = {
  riscv64: [3, 'sv39', 'supervisor'],
  x86_64: [5, '5-level', 'long'],
} as const;

for (const [arch, [levels, scheme, mode]] of Object.entries(modes)) {
  t.test(`${arch}: a guest that stands and pages: its registers are those of the monitor`, async (t) => {
    const { elf, command } = pagingKernel(t, arch as keyof typeof modes, levels);
    const socket = join(scratchFolder(t), 'gdb');
    const [program = '', ...args] = command;
    const stub = ['-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
    const qemu = start(program, [...args, ...stub]);
    t.teardown(() => void qemu.process.kill('SIGKILL'));
    const said = await standAt(socket, await breakpointAt(elf, 'work'));
    const { found, status, stderr } = await runDoctor(socket, '--no-run', elf);
    t.equal(status, 0, stderr);
    const [hart] = found.harts;
    const riscv = arch === 'riscv64';
    for (const name of riscv ? ['satp', 'mstatus'] : ['cr0', 'cr3', 'cr4', 'efer']) {
      const value = hart?.registers.find((each) => each.name === name)?.value;
      t.equal(value, hex(monitored(said, name)), name);
    }
    const table = riscv
      ? (monitored(said, 'satp') % (1n << 44n)) * 4096n
      : monitored(said, 'cr3') & 0xf_ffff_ffff_f000n;
    t.match(hart, { pc: hex(monitored(said, riscv ? 'pc' : 'RIP')), function: 'work', mode });
    t.match(hart?.paging, { scheme, root: hex(table) });
    t.match(found.stub, { server: 'qemu-system', breakpoints: [0, 1, 2, 3, 4], packet_size: 4096, no_ack: false });
    t.match(found.stub.server_version, /^\d+\.\d+/);
    t.match(found.hits, { per_second: null, why: '--no-run', guest_ended: false });
    t.match(found.program, { problem: null, no_probes: { code: 'FUTURES_NONE' } });
    t.equal(found.clocks.filter(({ chosen }) => chosen).length, 1);
    const end = await qemu.ended;
    t.match(end.stdout, /\b1000\b/, 'it runs on, and counts as it does alone');
  });
}

for (const name of ['rv-o2', 'x86-o2'] as const) {
  t.test(`${name}: a guest that was never started: --no-run leaves it so`, async (t) => {
    const qemu = frozenGuest(t, name);
    const { found, status, stderr } = await runDoctor(qemu.socket, '--no-run', elfPath(name));
    t.equal(status, 0, stderr);
    t.equal(found.target.never_started, true);
    t.match(found.harts[0], { pc: name === 'rv-o2' ? '0x1000' : '0xfff0' });
    const shown = ['doctor', '--trampolines', '--remote', qemu.socket, elfPath(name)];
    if (name === 'rv-o2') t.match(await rsptrace(...shown).ended, { status: 0 });
    await using session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    t.match(await session.monitor('info status'), /prelaunch/);
    session.close();
  });
}

t.test('scratch memory is looked at and put back', async (t) => {
  const path = elfPath('rv-o2');
  const qemu = frozenGuest(t, 'rv-o2');
  const start = addr(0x8500_0000);
  const pattern = new Uint8Array(1 << 16).map((_, index) => index * 7);
  const memory = async (write?: Uint8Array): Promise<Uint8Array | undefined> => {
    const session = await connect(`unix:${qemu.socket}`, { waitMs: 60_000 });
    const physical = await session.physicalMemory();
    if (write) await physical?.write(start, write);
    const bytes = await physical?.read(start, pattern.length);
    session.close();
    return bytes;
  };
  await memory(pattern);
  const { found, status, stderr } = await runDoctor(qemu.socket, '--no-run', '--scratch', '0x85000000,64K', path);
  t.equal(status, 0, stderr);
  t.match(found.program?.scratch, { source: /--scratch/ });
  t.ok(
    found.program?.probes.some(({ engine }) => engine === 'target'),
    'probes go without stops',
  );
  t.same(await memory(), pattern, 'its contents are as they were');
  const bad = await runDoctor(qemu.socket, '--no-run', '--scratch', '0x1000,64K', path);
  t.equal(bad.status, 1);
  t.match(bad.stderr, /\[SCRATCH_UNUSABLE\]/);
  t.match(bad.found.program, { problem: { code: 'SCRATCH_UNUSABLE' } });
  t.notOk(bad.found.program?.probes.some(({ engine }) => engine === 'target'));
});

t.test('a guest that ends while it is measured', async (t) => {
  const { address, program, guest } = await qemuSystem('riscv64', 1).start(t, 2);
  const session = await connect(address, { waitMs: 60_000 });
  t.equal(
    await session.memory().write(program.symbol('release'), new Uint8Array([1])),
    true,
    'it does not wait for us',
  );
  session.close();
  const { found, status, stderr } = await runDoctor(address, program.elf);
  t.equal(status, 0, stderr);
  t.equal(found.hits.guest_ended, true);
  t.match(found.advice.find(({ code }) => code === 'was-started')?.text, /it has run to its end now\. Start it anew/);
  t.equal((await guest.ended).status, STATUS);
});

t.test('no ELF, another ELF, several harts', async (t) => {
  const running = frozenGuest(t, 'rv-o2-long', ['-smp', '2']);
  await standAt(running.socket, await breakpointAt(elfPath('rv-o2-long'), 'deep7'));
  const none = await runDoctor(running.socket);
  t.equal(none.status, 0, none.stderr);
  t.equal(none.found.program, null);
  t.equal(none.found.hart_count, 2);
  t.equal(none.found.harts_unseen, 0);
  t.equal(none.found.harts[0]?.function, null);
  t.ok(none.found.advice.some(({ code }) => code === 'smp'));
  t.ok((none.found.hits.per_second ?? 0) > 0 || none.found.hits.why !== undefined);

  const qemu = frozenGuest(t, 'rv-o2');
  const other = await runDoctor(qemu.socket, '--no-run', elfPath('rv-o0'));
  t.equal(other.status, 1);
  t.match(other.stderr, /\[ELF_MISMATCH\]/);
  t.match(other.found.program, { problem: { code: 'ELF_MISMATCH' }, probes: [] });
  const arch = await rsptrace('doctor', '-r', qemu.socket, '--no-run', elfPath('x86-o2')).ended;
  t.equal(arch.status, 1);
  t.match(arch.stderr, /\[ARCH_MISMATCH\]/);
  t.match(arch.stdout, /^elf .*is NOT what runs/m);
  const text = await rsptrace('doctor', '-r', qemu.socket, '--no-run', elfPath('rv-o2')).ended;
  for (const title of ['stub', 'target', 'clocks', 'times', 'hits', 'elf', 'probes', 'advice']) {
    t.match(text.stdout, new RegExp(`^${title} +\\S`, 'm'));
  }
  const wrong = await rsptrace('doctor', '-r', qemu.socket, '-p', 'poll:nothing_of_that_name', elfPath('rv-o2')).ended;
  t.equal(wrong.status, 1, wrong.stderr);
  t.match(wrong.stderr, /PROBE_NO_MATCH/);
});

t.test('a disk that was not booted yet: its kernel may come, and has run nowhere', async (t) => {
  const { elf, command } = diskKernel(t, 1);
  const qemu = frozenQemu(t, command);
  const { stdout } = await rsptrace('doctor', '--no-run', '--remote', qemu.socket, '-p', 'fn:work', elf).ended;
  t.match(stdout, /^elf +\S+ may run there later: 1 place, whose code is not loaded yet$/m);
});

t.test('no function is named by addresses at which its loader will not leave a kernel', async (t) => {
  const elf = await ElfFile.open(movedKernel(t, 1).elf);
  const work = elf.symbols.named('work')[0]?.address ?? addr(0);
  t.equal(placeName(elf, work), undefined);
  const moved = elf.loadedAt(0x8020_0000n);
  t.equal(placeName(moved, addr(work + 0x8020_0000n)), 'work');
});
