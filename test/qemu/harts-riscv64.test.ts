// Several harts of riscv64 in the same functions at once, or a timer of 10 kHz.
import t from 'tap';
import { type HartsCase, kilohertz10, many, traceHarts } from '../support/harts.js';

const cases: readonly HartsCase[] = [
  { what: 'four harts, without stops', harts: 4, calls: many, period: 0, engine: 'target', options: [] },
  {
    what: 'four harts at 10 kHz, a ring that is read at stops',
    harts: 4,
    calls: 3000,
    period: kilohertz10,
    engine: 'target',
    options: ['--scratch', '0x84000000,256K', '--until', 'drained'],
  },
  {
    what: 'one hart at 10 kHz, without stops',
    harts: 1,
    calls: 8000,
    period: kilohertz10,
    engine: 'target',
    options: [],
  },
  {
    what: 'four harts at 10 kHz, without stops',
    harts: 4,
    calls: 4000,
    period: kilohertz10,
    engine: 'target',
    options: [],
  },
  { what: 'four harts, with a stop at each event', harts: 4, calls: 60, period: 0, engine: 'stop', options: [] },
];

for (const each of cases) t.test(each.what, { timeout: 600_000 }, (t) => traceHarts(t, 'riscv64', each));
