// Four harts of riscv64 whose calls are counted, and their arguments added up, in the target or at stops: against their own counters.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { hartCounts, hartsKernel } from '../support/tiny-kernels.js';

interface Counted {
  readonly end: string;
  readonly events: number;
  readonly records: number;
  readonly missing: number;
  readonly probes: readonly { readonly engine: string }[];
  readonly counts: readonly { readonly function: string; readonly calls: number }[];
  readonly sums: readonly { readonly function: string; readonly calls: number; readonly sum: number }[];
  readonly averages: readonly { readonly calls: number; readonly avg: number }[];
  readonly histograms: readonly { readonly function: string; readonly argument: string; readonly buckets: object[] }[];
}

for (const [engine, calls] of [
  ['target', 20_000],
  ['stop', 60],
] as const) {
  t.test(`four harts, by engine ${engine}`, { timeout: 600_000 }, async (t) => {
    const { elf, command } = hartsKernel(t, 'riscv64', { harts: 4, calls, period: 0 });
    const folder = scratchFolder(t);
    const [trace, kept] = [join(folder, 'out.json'), join(folder, 'console')];
    const probes = ['count:outer', `count:inner if call < ${calls - 7}`, 'hist(call):outer', 'hist(hart):inner'];
    probes.push('sum(call):outer', `sum(call):inner if hart == 2`, 'avg(call):outer');
    const args = ['run', '--json', '--engine', engine, ...probes.flatMap((probe) => ['-p', probe])];
    const words = [...args, '-o', trace, '--console', kept, elf, '--', ...command];
    const { counts, histograms, sums, averages, ...output } = await rsptrace(...words).json<Counted>();
    t.same([output.end, output.missing, output.events], ['guest-ended', 0, 0]);
    t.equal(output.records, 0, 'no record at all');
    t.strictSame(new Set(output.probes.map((probe) => probe.engine)), new Set([engine]));
    const counted = hartCounts(readFileSync(kept, 'latin1'));
    t.equal(counted.length, 4);
    const total = (name: 'outer' | 'inner'): number => counted.reduce((all, one) => all + one[name], 0);
    t.equal(total('outer'), 4 * calls, 'the program did what it does untraced');
    t.strictSame(
      counts.map((row) => ({ function: row.function, calls: row.calls })),
      [
        { function: 'inner', calls: total('inner') - 4 * 7 },
        { function: 'outer', calls: total('outer') },
      ],
      "the harts' own counters",
    );
    const byHart = [
      { from: 0, below: 1, calls },
      { from: 1, below: 2, calls },
      { from: 2, below: 4, calls: 2 * calls },
    ];
    const byCall = Array.from({ length: Math.floor(Math.log2(calls - 1)) + 1 }, (_, power) => {
      const [from, below] = [2 ** power, 2 ** (power + 1)];
      return { from, below, calls: 4 * (Math.min(below, calls) - from) };
    });
    t.strictSame(
      histograms.map((row) => ({ function: row.function, argument: row.argument, buckets: row.buckets })),
      [
        { function: 'inner', argument: 'hart', buckets: byHart },
        { function: 'outer', argument: 'call', buckets: [{ from: 0, below: 1, calls: 4 }, ...byCall] },
      ],
    );
    const one = (calls * (calls - 1)) / 2;
    t.same(
      sums.map((row) => [row.function, row.calls, row.sum]),
      [
        ['inner', calls, one],
        ['outer', 4 * calls, 4 * one],
      ],
      'every call of all harts is added up once',
    );
    t.same([averages[0]?.calls, averages[0]?.avg], [4 * calls, (calls - 1) / 2]);
  });
}
