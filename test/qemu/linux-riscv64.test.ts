// Debian's Linux for riscv64 (Sv57) with two CPUs, traced without stops.
import t from 'tap';
import { traceLinux } from '../support/linux/trace.js';

t.test('functions are called as often as QEMU carries them out', (t) =>
  traceLinux(t, 'riscv64', { behind: 8n, getppid: '__riscv_sys_getppid', words: [], harts: 2 }),
);
