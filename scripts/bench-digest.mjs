// Understanding records that were kept (--keep-records), without a target: records a second of CPU time by the stage up
// to which they are understood. Several builds are compared in turn, so that load falls on all; medians of the rounds.
//   rsptrace run --keep-records -o a.pftrace ...
//   node scripts/bench-digest.mjs a.pftrace.records [--dist FOLDER]... [--stage NAME]... [--rounds N] [--again N]
// Stages: `events` (made, and dropped), `tables` (also counted), `slices` (also nested), a format's extension (written),
// `all` (counted, and written into a .pftrace, as a recording does). `--again`: so many times more in the same process,
// whose code is compiled then; the least of these is what a long recording comes to.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dist: { type: 'string', multiple: true, default: [resolve(import.meta.dirname, '../dist')] },
    stage: { type: 'string', multiple: true, default: ['events', 'tables', 'slices', '.pftrace', '.jsonl'] },
    rounds: { type: 'string', default: '5' },
    again: { type: 'string', default: '0' },
    child: { type: 'boolean', default: false },
  },
});
const [records] = positionals;
if (records === undefined) throw new Error('name a file of records');
if (values.child) await child(resolve(values.dist[0]), values.stage[0]);
else parent();

function parent() {
  for (const stage of values.stage) {
    const taken = values.dist.map(() => []);
    for (let round = 0; round < Number(values.rounds); round++)
      for (const [i, dist] of values.dist.entries()) taken[i].push(once(dist, stage));
    const medians = taken.map((list) => list.toSorted((a, b) => a.us - b.us)[Math.floor(list.length / 2)]);
    for (const [i, dist] of values.dist.entries()) {
      const { us, count, peak } = medians[i];
      const least = Math.min(...taken[i].map((one) => one.us));
      const ratio = i === 0 ? '' : `, ${(medians[0].us / us).toFixed(2)} times as fast as the first`;
      const warm = Math.min(...taken[i].map((one) => one.warm ?? Number.POSITIVE_INFINITY)) / count;
      const again = Number.isFinite(warm) ? `, again ${warm.toFixed(3)}` : '';
      console.log(
        `${stage.padEnd(9)} ${(us / count).toFixed(3)} us of CPU a record (least ${(least / count).toFixed(3)}${again}), ` +
          `${(count / us).toFixed(2)} M a second, ${peak} MB${ratio}  ${dist}`,
      );
    }
  }
}

function once(dist, stage) {
  const args = [import.meta.filename, records, '--child', '--dist', dist, '--stage', stage, '--again', values.again];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Understands the records once, and says how many microseconds of CPU that took. */
async function child(dist, stage) {
  const load = (room) => import(join(dist, room, 'index.js'));
  const [{ KeptRecords, prepare }, { parseProbe }, trace] = await Promise.all(['record', 'probes', 'trace'].map(load));
  const first = new KeptRecords(records);
  const { asked } = first;
  const { elf, engine, probe, threshold } = asked;
  const how = { inlined: engine === 'target' ? 'patched' : 'auto', wakes: asked.wakes };
  const program = await prepare(
    elf,
    probe.map((text) => parseProbe(text)),
    undefined,
    how,
  );
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-digest-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const functions = { values: asked.args, maxDepth: asked['max-depth'] };
  const options = { program, engine, functions, thresholdNs: threshold, stackDepth: asked.bt, until: undefined };
  first.close();
  const runs = [];
  for (let i = 0; i <= Number(values.again); i++) {
    const again = new KeptRecords(records);
    const sink = sinkOf(trace, stage, folder);
    const before = process.cpuUsage();
    const { records: count } = await again.recover({ ...options, sink });
    const { user, system } = process.cpuUsage(before);
    runs.push({ us: user + system, user, count });
    again.close();
  }
  const [whole, ...others] = runs;
  const warm = others.length > 0 ? Math.min(...others.map(({ us }) => us)) : undefined;
  console.log(JSON.stringify({ ...whole, warm, peak: Math.round(process.resourceUsage().maxRSS / 1024) }));
}

function sinkOf(trace, stage, folder) {
  const { Summary, TaskSummary, Findings, FunctionSummary, tee, onEvents, Lanes, openTrace } = trace;
  if (stage === 'events') return onEvents(() => {});
  const tables = [new Summary(), new TaskSummary(), new Findings(), new FunctionSummary()];
  if (stage === 'tables') return tee(tables);
  if (stage === 'all') return tee([...tables, openTrace(join(folder, 'trace.pftrace'), { force: true })]);
  if (stage === 'slices') return new Lanes({});
  return openTrace(join(folder, `trace${stage}`), { force: true });
}
