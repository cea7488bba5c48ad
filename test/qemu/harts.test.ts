// Several harts in the same functions at once, or a timer of 10 kHz: every hart's calls against its own counters, each record whole, in order.
// RSPTRACE_CALLS=625000 makes ten million events of the first one; 12500 without.
import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { type HartCounts, hartCounts, hartsKernel } from '../support/tiny-kernels.js';
import type { ChromeRecord } from '../trace/decode-chrome.js';

interface Output {
  readonly end: string;
  readonly events: number;
  readonly records: number;
  readonly missing: number;
  readonly scratch?: string;
  readonly probes: readonly { readonly engine: string }[];
  readonly functions: readonly { readonly function: string; readonly calls: number; readonly lost: number }[];
}

interface Counted {
  readonly counts: readonly { readonly function: string; readonly calls: number }[];
  readonly histograms: readonly { readonly function: string; readonly argument: string; readonly buckets: object[] }[];
}

/** What one hart's track tells. */
interface Told {
  readonly calls: Map<string, number>;
  readonly open: { readonly name: string; readonly call: number }[];
  last: number;
}

/** Reads a trace record by record, each against what the program must have done; counts by the hart that the track is named after. */
async function readCalls(path: string): Promise<{ readonly harts: Map<number, Told>; readonly wrong: string[] }> {
  const numbers = new Map<number, number>();
  const harts = new Map<number, Told>();
  const wrong: string[] = [];
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (!line.startsWith('{')) continue;
    const { ph, tid, name, ts, args } = JSON.parse(line.replace(/,$/, '')) as ChromeRecord;
    if (name === 'thread_name') numbers.set(tid, Number(/^CPU#(\d+)$/.exec(String(args.name))?.[1]));
    if (ph !== 'B' && ph !== 'E') continue;
    const hart = numbers.get(tid) ?? -1;
    const told = harts.get(hart) ?? { calls: new Map<string, number>(), open: [], last: 0 };
    harts.set(hart, told);
    if (ts < told.last) wrong.push(`hart ${hart} goes back in time: ${line}`);
    told.last = ts;
    if (ph === 'B') {
      const call = told.calls.get(name) ?? 0;
      const around = told.open.at(-1);
      if (args.arguments !== `call: ${call}, hart: ${hart}`) wrong.push(`hart ${hart}, call ${call}: ${line}`);
      // An interrupt may come anywhere, and ordinary calls nest in one way only.
      const expected = name === 'inner' ? around?.name === 'outer' && around.call === call : around?.name !== name;
      if (!expected) wrong.push(`hart ${hart}, in ${around?.name} ${around?.call}: ${line}`);
      told.calls.set(name, call + 1);
      told.open.push({ name, call });
    } else {
      const { name: ended, call = 0 } = told.open.pop() ?? {};
      const result = ended === 'tick' ? call : 3 * call + hart + (ended === 'outer' ? 1 : 0);
      if (ended !== name || args.returned !== String(result)) wrong.push(`hart ${hart}, ${ended} ${call}: ${line}`);
    }
  }
  return { harts, wrong };
}

const many = Number(process.env.RSPTRACE_CALLS ?? 12_500);
const kilohertz10 = 1000;

const cases = [
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
] as const;

for (const [engine, calls] of [
  ['target', 20_000],
  ['stop', 60],
] as const) {
  t.test(`four harts, only counted, by engine ${engine}`, { timeout: 100_000 }, async (t) => {
    const { elf, command } = hartsKernel(t, { harts: 4, calls, period: 0 });
    const folder = scratchFolder(t);
    const [trace, kept] = [join(folder, 'out.json'), join(folder, 'console')];
    const probes = ['count:outer', `count:inner if call < ${calls - 7}`, 'hist(call):outer', 'hist(hart):inner'];
    // Each alone in the target: of two things at one place the client does the counting.
    for (const some of engine === 'target' ? [probes.slice(0, 2), probes.slice(2)] : [probes]) {
      const args = ['run', '--json', '--engine', engine, ...some.flatMap((probe) => ['-p', probe])];
      const { status, stdout, stderr } = await rsptrace(...args, '-o', trace, '--console', kept, elf, '--', ...command)
        .ended;
      t.equal(status, 0, stderr.slice(-300));
      const { counts, histograms, ...output } = JSON.parse(stdout) as Output & Counted;
      t.same([output.end, output.missing, output.events], ['guest-ended', 0, 0]);
      t.equal(output.records, 0, 'no record at all');
      t.strictSame(new Set(output.probes.map((probe) => probe.engine)), new Set([engine]));
      const counted = hartCounts(readFileSync(kept, 'latin1'));
      t.equal(counted.length, 4);
      const sum = (name: 'outer' | 'inner'): number => counted.reduce((total, one) => total + one[name], 0);
      t.equal(sum('outer'), 4 * calls, 'the program did what it does untraced');
      const wanted = [
        { function: 'inner', calls: sum('inner') - 4 * 7 },
        { function: 'outer', calls: sum('outer') },
      ];
      if (some.includes('count:outer')) {
        t.strictSame(
          counts.map((row) => ({ function: row.function, calls: row.calls })),
          wanted,
          "the harts' own counters",
        );
      }
      if (!some.includes('hist(call):outer')) continue;
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
    }
  });
}

for (const { what, harts, calls, period, engine, options } of cases) {
  t.test(what, { timeout: 100_000 + many }, async (t) => {
    const { elf, command } = hartsKernel(t, { harts, calls, period });
    const folder = scratchFolder(t);
    const [trace, kept] = [join(folder, 'out.json'), join(folder, 'console')];
    const probes = ['-p', 'fn:outer', '-p', 'fn:inner', '-p', 'fn:tick'];
    const record = ['run', '--json', '--engine', engine, ...options, ...probes, '-o', trace, '--console', kept];
    const until = options.includes('--until' as never);
    const keep = until ? ['--keep-running'] : [];
    const { status, stdout, stderr } = await rsptrace(...record, ...keep, elf, '--', ...command).ended;
    t.equal(status, 0, stderr.slice(-300));
    const output = JSON.parse(stdout) as Output;
    t.equal(output.end, until ? 'until' : 'guest-ended');
    t.equal(output.missing, 0, 'nothing is missing');
    t.strictSame(new Set(output.probes.map((probe) => probe.engine)), new Set([engine]));
    const counted = hartCounts(readFileSync(kept, 'latin1'));
    t.same(
      counted.map(({ outer, inner, sum }) => ({ outer, inner, sum })),
      Array.from({ length: harts }, (_, hart) => ({
        outer: calls,
        inner: calls,
        sum: (3 * calls * (calls - 1)) / 2 + calls * (hart + 1),
      })),
      'the program computed what it computes untraced',
    );
    const told = await readCalls(trace);
    t.strictSame(told.wrong.slice(0, 5), [], `${told.wrong.length} events are not what the program did`);
    const own = (of: HartCounts): object => ({ outer: of.outer, inner: of.inner, tick: of.ticks });
    t.strictSame(
      Array.from({ length: harts }, (_, hart) => {
        const count = (name: string): number => told.harts.get(hart)?.calls.get(name) ?? 0;
        return { outer: count('outer'), inner: count('inner'), tick: count('tick') };
      }),
      counted.map(own),
      "each hart's own counters",
    );
    for (const { open } of told.harts.values()) t.strictSame(open, [], 'every call has returned');
    const sums = (name: 'outer' | 'inner' | 'ticks'): number => counted.reduce((sum, one) => sum + one[name], 0);
    for (const row of output.functions) {
      const all = row.function === 'tick' ? sums('ticks') : sums('outer');
      t.same([row.calls, row.lost], [all, 0], `the table's ${row.function}`);
    }
    if (period > 0) t.ok(sums('ticks') > 0, `${sums('ticks')} interrupts`);
    t.comment(`${output.events} events, ${sums('ticks')} interrupts`);
  });
}
