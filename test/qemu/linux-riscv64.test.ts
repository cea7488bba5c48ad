// Debian's Linux for riscv64 (Sv57), traced without stops: with two CPUs from its start, and with one by who comes later.
import t from 'tap';
import { traceAttached } from '../support/linux/attached.js';
import { traceLinux } from '../support/linux/trace.js';

t.test('functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'riscv64', { behind: 8n, getppid: '__riscv_sys_getppid', words: [], harts: 2 }),
);

t.test('a kernel that runs already gives memory of its own', (t) =>
  traceAttached(t, 'riscv64', { behind: 8n, words: [] }),
);
