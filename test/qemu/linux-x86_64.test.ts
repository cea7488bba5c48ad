// Debian's Linux for amd64 (4-level paging), traced without stops.
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { linuxGuest } from '../support/linux/boot.js';
import { traceLinux } from '../support/linux/trace.js';

t.test('functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'x86_64', { behind: 5n, getppid: '__do_sys_getppid', words: ['nokaslr'], harts: 1 }),
);

t.test('a kernel that moves itself is refused before it runs', async (t) => {
  const guest = linuxGuest(t, 'x86_64');
  for (const [words, moves] of [
    [[], true],
    [['nokaslrs', 'xnokaslr'], true],
    [['nokaslr'], false],
  ] as const) {
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
