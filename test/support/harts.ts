// Several harts in the same functions at once, or a timer of 10 kHz: every hart's calls against its own counters, each record whole, in order.
// `scripts/test --long` makes ten million events of the first one.

import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import type { ChromeRecord } from '../trace/decode-chrome.js';
import { rsptraceWithin, scratchFolder } from './command.js';
import { long } from './long.js';
import type { Recording } from './recording.js';
import { type HartCounts, type HartsOptions, hartCounts, hartsKernel } from './tiny-kernels.js';

/** What one hart's track says. */
interface LogEntry {
  readonly calls: Map<string, number>;
  readonly open: { readonly name: string; readonly call: number; readonly args: Record<string, unknown> }[];
  last: number;
}

/** Reads a trace record by record, each against what the program must have done; counts by the hart that the track is named after. */
async function readCalls(path: string): Promise<{ readonly harts: Map<number, LogEntry>; readonly wrong: string[] }> {
  const numbers = new Map<number, number>();
  const harts = new Map<number, LogEntry>();
  const wrong: string[] = [];
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (!line.startsWith('{')) continue;
    const { ph, cat, tid, name, ts, args } = JSON.parse(line.replace(/,$/, '')) as ChromeRecord;
    if (name === 'thread_name') numbers.set(tid, Number(/^CPU#(\d+)$/.exec(String(args.name))?.[1]));
    if (ph !== 'B' && ph !== 'E' && cat !== 'detail') continue;
    const hart = numbers.get(tid) ?? -1;
    const told = harts.get(hart) ?? { calls: new Map<string, number>(), open: [], last: 0 };
    harts.set(hart, told);
    if (ts < told.last) wrong.push(`hart ${hart} goes back in time: ${line}`);
    told.last = ts;
    const around = told.open.at(-1);
    if (cat === 'detail') {
      if (around) Object.assign(around.args, args);
      else wrong.push(`hart ${hart}, in no call: ${line}`);
    } else if (ph === 'B') {
      const call = told.calls.get(name) ?? 0;
      // An interrupt may come anywhere, and ordinary calls nest in one way only.
      const expected = name === 'inner' ? around?.name === 'outer' && around.call === call : around?.name !== name;
      if (!expected) wrong.push(`hart ${hart}, in ${around?.name} ${around?.call}: ${line}`);
      told.calls.set(name, call + 1);
      told.open.push({ name, call, args: {} });
    } else {
      const { name: ended, call = 0, args: seen = {} } = told.open.pop() ?? {};
      if (seen.arguments !== `call: ${call}, hart: ${hart}`) wrong.push(`hart ${hart}, call ${call}: ${line}`);
      const result = ended === 'tick' ? call : 3 * call + hart + (ended === 'outer' ? 1 : 0);
      if (ended !== name || seen.returned !== String(result)) wrong.push(`hart ${hart}, ${ended} ${call}: ${line}`);
    }
  }
  return { harts, wrong };
}

export interface HartsCase extends HartsOptions {
  readonly what: string;
  readonly engine: 'target' | 'stop';
  readonly options: readonly string[];
}

/** How often each of four harts calls `outer`. */
export const many = long ? 625_000 : 2_500;
/** Of the 10 MHz timer. */
export const kilohertz10 = 1000;

/** Records a run of the kernel, and compares each event with what it must have done. */
export async function traceHarts(t: Test, arch: 'riscv64' | 'x86_64' | 'aarch64', wanted: HartsCase): Promise<void> {
  const { harts, calls, period, engine, options } = wanted;
  const { elf, command } = hartsKernel(t, arch, wanted);
  const folder = scratchFolder(t);
  const [trace, kept] = [join(folder, 'out.json'), join(folder, 'console')];
  const probes = ['-p', 'fn:outer', '-p', 'fn:inner', '-p', 'fn:tick'];
  const record = ['run', '--json', '--engine', engine, ...options, ...probes, '-o', trace, '--console', kept];
  const until = options.includes('--until');
  const keep = until ? ['--keep-running'] : [];
  const output = await rsptraceWithin(100_000 + many, ...record, ...keep, elf, '--', ...command).json<Recording>();
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
}
