// The same on x86-64, whose processors only their APICs tell apart.
import t from 'tap';
import { type HartsCase, kilohertz10, many, traceHarts } from '../support/harts.js';
import { long, usually } from '../support/long.js';

const cases: readonly HartsCase[] = [
  { what: 'four harts, without stops', harts: 4, calls: Math.ceil(many / 2), period: 0, engine: 'target', options: [] },
  {
    what: 'four harts at 10 kHz, a ring that is read at stops',
    harts: 4,
    calls: 1000,
    period: kilohertz10,
    engine: 'target',
    options: ['--scratch', '0x4000000,256K', '--until', 'drained'],
  },
  {
    what: 'four harts at 10 kHz, without stops',
    harts: 4,
    calls: long ? 4000 : 1000,
    period: kilohertz10,
    engine: 'target',
    options: [],
  },
  {
    what: 'four harts, with a stop at each event',
    harts: 4,
    calls: long ? 30 : 15,
    period: 0,
    engine: 'stop',
    options: [],
  },
];

const chosen = ['four harts at 10 kHz, without stops', 'four harts, with a stop at each event'];
for (const each of usually(cases, ({ what }) => chosen.includes(what)))
  t.test(each.what, { timeout: 600_000 }, (t) => traceHarts(t, 'x86_64', each));
