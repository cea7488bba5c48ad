// Debian's Linux for amd64 (4-level paging), riscv64 (Sv57) with two CPUs and aarch64, traced without stops from their start.

import { join } from 'node:path';
import t from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { connect } from '../../src/rsp/index.js';
import { rsptrace, rsptraceWithin, start } from '../support/command.js';
import { linuxGuest } from '../support/linux/boot.js';
import { asLinuxCounts } from '../support/linux/own-counts.js';
import { traceLinux } from '../support/linux/trace.js';
import { usually, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';

t.test('x86_64: functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'x86_64', { behind: 5n, getppid: '__do_sys_getppid', words: ['nokaslr'], harts: 1 }),
);

variant(t, 'riscv64: functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'riscv64', { behind: 8n, getppid: '__riscv_sys_getppid', words: [], harts: 2 }),
);

variant(t, 'x86_64: interrupts and context switches are as many as Linux counts', asLinuxCounts);

t.test('a kernel that moves itself is refused before it runs', async (t) => {
  const guest = linuxGuest(t, 'x86_64');
  const kernels = [
    [[], true],
    [['nokaslrs', 'xnokaslr'], true],
    [['nokaslr'], false],
  ] as const;
  // What is not refused is traced above.
  for (const [words, moves] of usually(kernels, ([{ length }]) => length === 2)) {
    const options = ['--max-events', '1', '--json', '-o', `${guest.elf}.txt`, '-p', 'fn:start_kernel'];
    const { status, stdout, stderr } = await rsptrace('run', ...options, guest.elf, '--', ...guest.command(...words))
      .ended;
    if (moves) {
      t.not(status, 0);
      t.match(JSON.parse(stdout), { error: { code: 'KERNEL_MOVES', hint: /nokaslr/ } });
    } else {
      t.equal(status, 0, stderr.slice(-300));
      t.match(JSON.parse(stdout), { end: 'max-events', functions: [{ function: 'start_kernel', calls: 1 }] });
    }
  }
});

t.test('a kernel that has moved itself is refused when it runs already', async (t) => {
  const guest = linuxGuest(t, 'x86_64');
  const [socket, trace] = [`${guest.elf}.gdb`, `${guest.elf}.txt`];
  const stub = ['-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
  const [program = '', ...args] = [...guest.command(), ...stub];
  const qemu = start(program, args, 100_000);
  t.teardown(() => void qemu.process.kill('SIGKILL'));
  // It has a console long before it has its first program, and stands when nobody is there any more.
  await qemu.shows('Linux version');
  (await connect(`unix:${socket}`)).close();
  const options = ['--json', '--duration', '1s', '-o', trace, '-p', 'fn:vfs_open'];
  const { status, stdout } = await rsptrace('--remote', `unix:${socket}`, ...options, guest.elf).ended;
  t.not(status, 0);
  t.match(JSON.parse(stdout), { error: { code: 'KERNEL_MOVES', message: /0xffffffff/, hint: /nokaslr/ } });
});

variant(t, 'aarch64: functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'aarch64', { behind: 4n, getppid: '__arm64_sys_getppid', words: ['nokaslr'], harts: 1 }),
);

// With the virtualization host extensions Linux stays at EL2.
variant(t, 'aarch64 at EL2: functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'aarch64', {
    ...{ behind: 4n, getppid: '__arm64_sys_getppid', words: ['nokaslr'], harts: 1 },
    machine: ['-M', 'virtualization=on', '-cpu', 'max,pauth-impdef=on'],
  }),
);

interface Output extends Recording {
  readonly engines: object;
}

/** Some that the kernel calls thousands of times, most of them when it reads its own BTF. */
const frequent = [
  'blake2s_compress_generic',
  'bpf_lsm_inode_permission',
  'btf_array_check_meta',
  'btf_func_check_meta',
  'btf_name_valid_identifier',
  'btf_ref_type_check_meta',
  'btf_struct_check_meta',
];

// That too many are left out is decided in test/engines/engine-choice.test.ts; Linux itself only with `--long`.
variant(t, 'thousands of breakpoints do not bring a boot to a halt', async (t) => {
  const guest = linuxGuest(t, 'riscv64');
  const { symbols } = await ElfFile.open(guest.elf);
  const addressOf = (name: string): bigint => symbols.named(name)[0]?.address ?? 0n;
  const places = new Map(frequent.map((name) => [name, addressOf(name) + 8n]));
  const options = ['--json', '-o', join(guest.elf, '../out.json'), '-p', 'fn:b*'];
  const command = [...guest.command(), ...guest.counting([...places.values()], [addressOf('rest_init')])];
  const output = await rsptraceWithin(200_000, 'run', ...options, guest.elf, '--', ...command).json<Output>();
  t.equal(output.end, 'guest-ended');
  t.ok(output.stops < 10, `${output.stops} stops`);
  t.equal(output.missing, 0);
  t.match(output.gaps, [{ from_ns: 0, why: 'the last page table was not in use yet' }]);
  const leftOut = output.probes.filter(({ engine }) => engine !== 'target');
  t.ok(leftOut.length > 50, `${leftOut.length} of ${output.probes.length}`);
  for (const { engine, why } of leftOut) {
    if (engine !== 'none' || !why?.startsWith('so many breakpoints would slow all code near them: ')) t.fail(`${why}`);
  }
  t.match(output.engines, { left_out: leftOut.length, stopping: 0, advice: { code: 'engine-mixed' } });
  const counts = guest.counts();
  for (const [name, place] of places) {
    const counted = counts.get(place)?.reduce((sum, count) => sum + count, 0);
    t.equal(output.functions.find((row) => row.function === name)?.calls, counted, `${name}: as often as QEMU ran it`);
  }
});
