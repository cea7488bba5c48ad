// Several harts in the same functions at once, or a timer of 10 kHz. The processors of x86-64 only their APICs distinguish.
import t from 'tap';
import { type HartsCase, kilohertz10, many, traceHarts } from '../support/harts.js';
import { long, usually } from '../support/long.js';

/** `calls`: in the usual run and in the long one. `ring`: a small one there, which is read at stops. */
function cases(calls: { readonly ring: number; readonly stops: number }, ring: string) {
  const usual = { harts: 4, calls: many, period: 0, engine: 'target', options: [] } as const;
  const fast = { ...usual, period: kilohertz10, calls: long ? 4000 : 1000 } as const;
  const small = { ...fast, calls: calls.ring, options: ['--scratch', `${ring},256K`, '--until', 'drained'] };
  return [
    { ...usual, what: 'four harts, without stops' },
    { ...small, what: 'four harts at 10 kHz, a ring that is read at stops' },
    { ...fast, what: 'four harts at 10 kHz, without stops' },
    { ...usual, what: 'four harts, with a stop at each event', calls: calls.stops, engine: 'stop' },
  ] satisfies HartsCase[];
}

const riscv: readonly HartsCase[] = [
  ...cases({ ring: long ? 3000 : 1500, stops: long ? 60 : 20 }, '0x84000000'),
  {
    ...{ what: 'one hart at 10 kHz, without stops', harts: 1, calls: long ? 8000 : 2500, period: kilohertz10 },
    ...{ engine: 'target', options: [] },
  },
];
const x86: readonly HartsCase[] = cases({ ring: 1000, stops: long ? 30 : 15 }, '0x4000000').map((each) =>
  each.calls === many ? { ...each, calls: Math.ceil(many / 2) } : each,
);

const arm: readonly HartsCase[] = cases({ ring: 1000, stops: long ? 30 : 15 }, '0x44000000');

const chosen = ['four harts at 10 kHz, without stops', 'four harts, with a stop at each event'];
for (const [arch, all] of [['riscv64', riscv] as const, ['x86_64', x86] as const, ['aarch64', arm] as const])
  for (const each of usually(all, ({ what }) => chosen.includes(what) && (arch === 'riscv64' || what === chosen[0])))
    t.test(`${arch}: ${each.what}`, { timeout: 600_000 }, (t) => traceHarts(t, arch, each));
