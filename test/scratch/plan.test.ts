// What is added to a QEMU command, what keeps us from it, and that QEMU understands what was added.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { isRefusal } from '../../src/base/errors.js';
import { planHiddenMemory } from '../../src/scratch/index.js';
import { SharedFile } from '../../src/scratch/shared-file.js';
import { keyValues, nanosPerInstruction, qemuOptions, qemuSize } from '../../src/target/qemu-options.js';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder } from '../support/command.js';

const MIB = 2 ** 20;
const riscv = ['qemu-system-riscv64', '-M', 'virt'];
const kernel = ['-kernel', elfPath('x86-o2')];
const x86 = ['qemu-system-x86_64', ...kernel];

/** Bytes that the guest sees, or why there is no plan. */
async function planned(...command: string[]): Promise<number | string> {
  const plan = await planHiddenMemory(command);
  if (isRefusal(plan)) return plan.refused;
  plan[Symbol.dispose]();
  return plan.visible;
}

t.test('-m in every spelling', async (t) => {
  for (const [args, bytes] of [
    [[], 128 * MIB],
    [['-m', '256'], 256 * MIB],
    [['--m', '256'], 256 * MIB],
    [['-m', '256M'], 256 * MIB],
    [['-m', '1G'], 1024 * MIB],
    [['-m', '0.5g'], 512 * MIB],
    [['-m', '262144k'], 256 * MIB],
    [['-m', 'size=192M'], 192 * MIB],
    [['-m', '64', '-m', 'size=192'], 192 * MIB],
    [['-m', '0'], 128 * MIB],
    [['-m', '0x100'], 256 * MIB],
    // The value of another option.
    [['-append', '-m'], 128 * MIB],
    [['-nographic', '-m', '96'], 96 * MIB],
  ] as const) {
    t.equal(await planned(...riscv, ...args), bytes, args.join(' '));
    t.equal(await planned(...x86, ...args), bytes, args.join(' '));
  }
});

t.test('machines', async (t) => {
  const q = 'qemu-system-riscv64';
  const x = 'qemu-system-x86_64';
  for (const args of [
    ['-M', 'virt,aclint=on'],
    ['--machine', 'type=virt'],
    ['-machine', 'spike', '-M', 'virt'],
    ['-accel', 'tcg,thread=single', '-M', 'virt'],
  ]) {
    t.equal(await planned(q, ...args), 128 * MIB, args.join(' '));
  }
  for (const args of [[], ['-M', 'q35'], ['-M', 'pc'], ['-M', 'pc-q35-7.2'], ['-machine', 'pc-i440fx-7.2,usb=off']]) {
    t.equal(await planned(x, ...args, ...kernel), 128 * MIB, args.join(' '));
  }
  for (const args of [[], ['-M', 'q35'], ['-bios', 'OVMF.fd']]) {
    t.equal(await planned(x, ...args), 128 * MIB, `a disk: ${args.join(' ')}`);
  }
  t.equal(await planned('/opt/qemu/bin/qemu-system-riscv64', '-M', 'virt'), 128 * MIB);
});

t.test('what is refused, and why', async (t) => {
  const small = join(scratchFolder(t), 'short');
  writeFileSync(small, 'MZ');
  const cut = join(scratchFolder(t), 'cut.elf');
  writeFileSync(cut, Buffer.from('7f454c46020101', 'hex'));
  for (const [command, why] of [
    [[], /not known to be a QEMU/],
    [['./run.sh', ...riscv], /run\.sh is not known to be a QEMU/],
    [['qemu-system-sparc64', '-M', 'virt'], /not known to be a QEMU/],
    [['qemu-system-riscv64'], /the default one/],
    [['qemu-system-riscv64', '-M', 'sifive_u'], /sifive_u/],
    [[...riscv, '-m', '12X'], /-m 12X is not a size/],
    [[...riscv, '-m', '1025B'], /-m 1025B is not a size/],
    [[...riscv, '-m', '128,slots=2,maxmem=1G'], /maxmem/],
    [[...riscv, '-numa', 'node'], /-numa/],
    [[...riscv, '-dtb', 'x.dtb'], /-dtb/],
    [[...riscv, '-mem-path', '/tmp'], /-mem-path/],
    [[...riscv, '-readconfig', 'x'], /-readconfig/],
    [[...riscv, '-incoming', 'defer'], /-incoming/],
    [['qemu-system-riscv64', '-M', 'virt,memory-backend=ram'], /memory-backend=/],
    [[...riscv, '-machine', 'dtb=x'], /dtb=/],
    [['qemu-system-x86_64', '-M', 'microvm', ...kernel], /microvm/],
    [['qemu-system-x86_64', '-M', 'q35,acpi=off'], /as a module only, for which the machine needs the ACPI/],
    [['qemu-system-x86_64', '-no-acpi'], /as a module only/],
    [['qemu-system-x86_64', '-kernel', '/nowhere/vmlinuz'], /\/nowhere\/vmlinuz cannot be read/],
    [['qemu-system-x86_64', '-kernel', small], /is no bzImage/],
    [['qemu-system-x86_64', '-kernel', elfPath('rv-o2')], /nor a PVH entry note/],
    [['qemu-system-x86_64', '-kernel', cut], /ELF/],
    [[...x86, '-enable-kvm'], /kvm/],
    [[...x86, '-accel', 'kvm'], /kvm/],
    [[...x86, '-M', 'pc,accel=kvm:tcg'], /kvm/],
    [[...x86, '-m', '3575M'], /above 4 GiB/],
    [[...x86, '-M', 'q35', '-m', '2808M'], /above 4 GiB/],
  ] as const) {
    t.match(await planned(...command), why, command.join(' '));
  }
});

t.test('what is added: QEMU has the RAM, in the file', async (t) => {
  const own = [...riscv, '-m', '100M', '-display', 'none', '-serial', 'none', '-monitor', 'stdio', '-S'];
  const plan = await planHiddenMemory(own);
  if (isRefusal(plan)) throw new Error(plan.refused);
  t.teardown(() => plan[Symbol.dispose]());
  t.same(plan.command.slice(0, own.length), own, 'what stood there stands there');
  t.same(plan.command.slice(own.length, own.length + 2), ['-m', `${116 * MIB}B`]);
  t.equal(plan.hidden, 16 * MIB);
  t.equal(plan.notShared, undefined);
  const [program = '', ...args] = plan.command;
  const said = execFileSync(program, args, { input: 'info mtree -f\ninfo memdev\nquit\n', encoding: 'latin1' });
  t.match(said, /0000000080000000-00000000873fffff \(prio 0, ram\): rsptrace-ram/);
  t.match(said, new RegExp(`size: +${116 * MIB}[^]*share: true`));
  t.same(
    readdirSync('/dev/shm').filter((name) => name.startsWith(`rsptrace-${process.pid}-`)),
    [],
    'no name is left',
  );
});

t.test('a PC that boots from a disk: its RAM is as it was, and a module lies above 4 GiB', async (t) => {
  const own = ['qemu-system-x86_64', '-m', '100M', '-display', 'none', '-serial', 'none', '-monitor', 'stdio', '-S'];
  const plan = await planHiddenMemory(own);
  if (isRefusal(plan)) throw new Error(plan.refused);
  t.teardown(() => plan[Symbol.dispose]());
  t.equal(plan.visible, 100 * MIB);
  const [program = '', ...args] = plan.command;
  const said = execFileSync(program, args, { input: 'info mtree -f\nquit\n', encoding: 'latin1' });
  t.match(said, /0000000000000000-[0-9a-f]+ \(prio 0, ram\): pc\.ram/);
  t.match(said, /0000000100000000-0000000100ffffff \(prio 0, ram\): rsptrace-ram/);
});

t.test('no room for a file: the RAM all the same', async (t) => {
  // More than any machine has in /dev/shm.
  const plan = await planHiddenMemory([...riscv, '-m', '64T']);
  if (isRefusal(plan)) throw new Error(plan.refused);
  t.equal(plan.file, undefined);
  t.match(plan.notShared, /\/dev\/shm has \d+ MiB left for 67108880 MiB/);
  t.same(plan.command, [...riscv, '-m', '64T', '-m', `${64 * 2 ** 40 + 16 * MIB}B`]);
});

t.test('a shared file is gone when it is closed', async (t) => {
  const file = SharedFile.create(8192);
  if (isRefusal(file)) throw new Error(file.refused);
  const piece = file.piece(4096, 100);
  piece.write(98, Buffer.of(1, 2));
  const all = Buffer.alloc(100);
  piece.read(0, all);
  t.same(all.subarray(97), Buffer.of(0, 1, 2));
  t.throws(() => piece.write(99, Buffer.of(1, 2)), RangeError);
  t.throws(() => piece.read(-1, all), RangeError);
  t.throws(() => file.piece(8000, 200), RangeError);
  t.equal(existsSync(file.path), true);
  piece.close();
  t.throws(() => piece.read(0, all), { code: 'SCRATCH_CLOSED' });
  file[Symbol.dispose]();
  file[Symbol.dispose]();
  t.throws(() => file.piece(0, 10).read(0, Buffer.alloc(1)), { code: 'SCRATCH_CLOSED' });
});

t.test('the syntax of options', async (t) => {
  t.same(qemuOptions(['disk.img', '-S', '-m', '5', '--drive', 'file=-m', '-append', '-m 7', '-nographic', '-kernel']), [
    { name: 'S', value: '' },
    { name: 'm', value: '5' },
    { name: 'drive', value: 'file=-m' },
    { name: 'append', value: '-m 7' },
    { name: 'nographic', value: '' },
    { name: 'kernel', value: '' },
  ]);
  t.same(
    [...keyValues('virt,a=b,,c,d', 'type')],
    [
      ['type', 'virt'],
      ['a', 'b,c'],
      ['d', 'on'],
    ],
  );
  t.same([...keyValues('a=b=c', 'type')], [['a', 'b=c']]);
  t.same([...keyValues('', 'type')], []);
  const icounts: [string, number | undefined][] = [
    ['shift=7,sleep=off', 128],
    ['0', 1],
    ['align=off,shift=10', 1024],
    ['shift=11', undefined],
    ['auto', undefined],
    ['sleep=off', undefined],
  ];
  for (const [value, nanos] of icounts) t.equal(nanosPerInstruction(['-S', '-icount', value]), nanos, value);
  t.equal(nanosPerInstruction(['qemu', '-append', 'icount 7']), undefined);
  t.equal(qemuSize('1.5k', MIB), 1536);
  t.equal(qemuSize('', MIB), undefined);
  t.equal(qemuSize('9999999999999T', MIB), undefined);
  fc.assert(
    fc.property(fc.array(fc.string()), fc.string(), (args, text) => {
      qemuOptions(args);
      keyValues(text, 'x');
      qemuSize(text, 1);
    }),
    { seed: 5, numRuns: 500 },
  );
});

t.test('as much RAM is hidden as the trampolines of many probes need', async (t) => {
  for (const [options, codeSize, hidden] of [
    [[], 0, 16],
    [[], 6 * MIB, 16],
    [[], 20 * MIB, 30],
    // 3.5 GiB is where a PC's RAM is cut in two.
    [['-m', '3560M'], 20 * MIB, 16],
  ] as const) {
    const plan = await planHiddenMemory([...x86, ...options], codeSize);
    if (isRefusal(plan)) throw new Error(plan.refused);
    plan[Symbol.dispose]();
    t.equal(plan.hidden / MIB, hidden, `${codeSize / MIB} MiB of code with ${options.join(' ')}`);
  }
});
