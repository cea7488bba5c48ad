// Debian's Linux for amd64 (4-level paging), traced without stops.
import t from 'tap';
import { connect } from '../../src/rsp/index.js';
import { rsptrace, start } from '../support/command.js';
import { linuxGuest } from '../support/linux/boot.js';
import { traceLinux } from '../support/linux/trace.js';
import { usually } from '../support/long.js';

t.test('functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'x86_64', { behind: 5n, getppid: '__do_sys_getppid', words: ['nokaslr'], harts: 1 }),
);

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
