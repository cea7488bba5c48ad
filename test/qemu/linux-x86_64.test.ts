// Debian's Linux for amd64 (4-level paging), traced without stops.
import t from 'tap';
import { traceLinux } from '../support/linux/trace.js';

t.test('functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'x86_64', { behind: 5n, getppid: '__do_sys_getppid', words: ['nokaslr'] }),
);
