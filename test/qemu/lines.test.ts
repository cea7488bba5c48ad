// `line:FILE:LINE` on real kernels: every hit by the guest's own counters, the places and the hits by gdb's breakpoints on the same lines.
// x86_64 with stops only under `scripts/test --long`.

import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { frozenGuest, scratchFolder } from '../support/command.js';
import { gdbHits } from '../support/gdb-hits.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, type Lab, sourcePath } from './guests/guests.js';

interface Output extends Recording {
  readonly lines: readonly {
    readonly probe: string;
    readonly function: string;
    readonly address: string;
    readonly hits: number;
  }[];
}

interface ChromeRecord {
  readonly ph: string;
  readonly cat?: string;
  readonly name: string;
}

/** A line of a source file by what stands in it. */
function lineOf(file: string, text: string): string {
  const lines = readFileSync(sourcePath(file), 'utf8').split('\n');
  return `${file}:${lines.findIndex((line) => line.includes(text)) + 1}`;
}

/** In `Stat::begin`, which unoptimised code calls. */
const begun = lineOf('src/stats.rs', 'CALLS[id as usize]');
/** In `Stat::drop`, which the compiler inlines wherever an async fn ends. */
const dropped = lineOf('src/stats.rs', 'POLLS[self.id as usize]');
/** The last statement of deep7. */
const inDeep = lineOf('src/work.rs', 's & 0xff');

/** How many of the objects that count were made: the guest's counts, but for what it counts without such an object. */
function statsMade({ stats }: Lab): number {
  const sources = ['work', 'futs'].map((name) => readFileSync(sourcePath(`src/${name}.rs`), 'utf8')).join('\n');
  const without = new Set([...sources.matchAll(/poll_hit\(Id::(\w+)/g)].map(([, id]) => id ?? '').concat('poll_task'));
  return [...stats].reduce((sum, [id, { calls }]) => (without.has(id) ? sum : sum + calls), 0);
}

async function record(t: Test, name: string, ...options: string[]) {
  const { stdout, lab, trace } = await runLab(t, name, ['--json', ...options], { file: 'out.json' });
  const records = JSON.parse(readFileSync(trace, 'utf8')) as ChromeRecord[];
  return { output: JSON.parse(stdout) as Output, lab, records };
}

const rowsOf = ({ lines }: Output, probe: string) => lines.filter((row) => row.probe === probe);
const hitsOf = (output: Output, probe: string): number => rowsOf(output, probe).reduce((sum, row) => sum + row.hits, 0);

for (const name of usually(['rv-o0', 'x86-o0'], (one) => one === 'rv-o0')) {
  t.test(`${name}: as often as the guest has counted`, async (t) => {
    const { output, lab, records } = await record(t, name, '-p', `line:${begun}`, '-p', `line:${inDeep}`);
    const made = statsMade(lab);
    const deep = lab.stats.get('deep_calls')?.calls ?? 0;
    t.ok(made > 100 && deep > 100);
    t.equal(hitsOf(output, begun), made);
    t.equal(hitsOf(output, inDeep), deep);
    t.equal(output.events, made + deep);
    t.equal(records.filter(({ cat, name }) => cat === 'line' && name === begun).length, made);
  });
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: inlined copies, where gdb has them and as often`, async (t) => {
    const probes = [`line:${dropped}`, `line:${inDeep}`, 'fn:deep7'];
    const { output, lab, records } = await record(t, name, ...probes.flatMap((probe) => ['-p', probe]));
    const deep = lab.stats.get('deep_calls')?.calls ?? 0;
    t.ok(rowsOf(output, dropped).length > 20, 'a place for each inlined copy');
    t.equal(hitsOf(output, dropped), statsMade(lab));
    t.equal(hitsOf(output, inDeep), deep);
    t.match(rowsOf(output, inDeep), [{ function: 'labkern::work::deep7' }]);
    t.match(output.functions, [{ function: 'labkern::work::deep7', calls: deep }]);
    t.ok(output.records >= 2 * deep, 'the function is traced without stops');
    let open = 0;
    let outside = 0;
    for (const { ph, cat, name } of records) {
      if (cat === 'call' && ph === 'B') open++;
      if (cat === 'call' && ph === 'E') open--;
      if (cat === 'line' && name === inDeep && open !== 1) outside++;
    }
    t.equal(outside, 0, 'each hit stands inside its call');

    const { socket } = frozenGuest(t, name);
    const [copies, single] = await gdbHits(scratchFolder(t), elfPath(name), socket, [dropped, inDeep]);
    const addresses = (probe: string): bigint[] => rowsOf(output, probe).map(({ address }) => BigInt(address));
    t.same([...(copies?.addresses ?? [])].sort(), addresses(dropped).sort());
    t.same(single?.addresses, addresses(inDeep));
    t.equal(copies?.hits, hitsOf(output, dropped));
    t.equal(single?.hits, deep);
  });
}

for (const name of usually(['rv-o2', 'x86-o2'], (one) => one === 'x86-o2'))
  t.test(`${name}: as often without stops`, async (t) => {
    const probes = [`line:${dropped}`, `line:${inDeep}`].flatMap((probe) => ['-p', probe]);
    const { output, lab } = await record(t, name, '--engine', 'target', ...probes);
    t.strictSame([...new Set(output.probes.map(({ engine }) => engine))], ['target']);
    t.ok(output.stops < 5, `${output.stops} stops`);
    t.equal(hitsOf(output, dropped), statsMade(lab));
    t.equal(hitsOf(output, inDeep), lab.stats.get('deep_calls')?.calls);
  });
