// Reading, reporting and converting a saved trace: events a second of CPU time and of wall time, bytes an event, peak
// memory; beside `uftrace dump` of the same trace. The trace is made up: calls and polls, nested up to eight deep.
//   node scripts/bench-trace.mjs [--events N] [--folder PATH] [--format EXTENSION]...
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { formats, openTrace } from '../dist/trace/index.js';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '2000000' },
    folder: { type: 'string' },
    format: { type: 'string', multiple: true, default: formats.map(({ extensions }) => extensions[0]) },
  },
});
const events = Number(values.events);
const root = resolve(import.meta.dirname, '..');
const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'rsptrace-trace-'));
mkdirSync(folder, { recursive: true });
if (values.folder === undefined) process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const place = { file: 'src/work.rs', line: 12 };
const functions = Array.from({ length: 40 }, (_, key) => {
  const name = `kernel::work::function_${key}`;
  return { key, name, instance: name, address: 0xffff_ffff_8000_0000n + BigInt(key * 64), ...place };
});
const futures = Array.from({ length: 20 }, (_, key) => {
  const future = `kernel::net::future_${key}`;
  return { key, future, instance: `${future}::{async_fn_env#0}`, kind: 'async_fn', ...place };
});
const roots = futures.map((future, key) => ({ key, future, address: 0x8040_0000n + BigInt(key * 256) }));
const state = { name: 'Suspend0', ...place };
const chains = futures.map((future) => [{ future, typeName: future.future, address: undefined, state }]);

/** The same events each time: a linear congruential generator. */
function record(sink) {
  const clock = { name: 'riscv-time', resolutionNs: 100, guest: true };
  sink.begin({ program: 'kernel', buildId: 'c0ffee', arch: 'riscv64', clock, harts: [{ number: 0, name: 'hart 0' }] });
  const open = [];
  let seed = 12_345;
  let time = 0;
  for (let n = 0; n < events; n++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    time += 100 + (seed >>> 24);
    if (open.length === 0 || (open.length < 8 && ((seed >>> 16) & 1) === 0)) {
      const at = { time, hart: 0, depth: open.length, around: open.at(-1) };
      const which = (seed >>> 12) % 20;
      const root = roots[which];
      const begin =
        ((seed >>> 8) & 3) === 0
          ? { type: 'poll-begin', ...at, root, future: root.future, address: root.address, state }
          : {
              type: 'call-begin',
              ...at,
              function: functions[(seed >>> 12) % 40],
              arguments: (seed & 4096) === 0 ? [] : [{ name: 'x', value: String(seed & 255) }],
            };
      open.push(begin);
      sink.event(begin);
    } else sink.event(endOf(open.pop(), time, open.length));
  }
  sink.end();
}

function endOf(begin, time, depth) {
  const common = { time, hart: 0, depth, began: begin.time, begin };
  if (begin.type === 'call-begin') return { type: 'call-end', ...common, function: begin.function };
  const { root, future, address } = begin;
  return {
    type: 'poll-end',
    ...common,
    root,
    future,
    address,
    result: 'pending',
    state,
    chain: chains[future.key],
  };
}

function sizeOf(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.size;
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}

/** Runs a command and prints its rate, by its CPU and its wall time, and its peak memory, as GNU time has them. */
function measure(title, words, made) {
  const usage = join(folder, 'usage');
  const timed = ['--quiet', '-f', '%e %U %S %M', '-o', usage, ...words];
  const run = spawnSync('/usr/bin/time', timed, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' });
  if (run.status !== 0) throw new Error(run.stderr);
  const [wall, user, system, peak] = readFileSync(usage, 'utf8').trim().split(' ').map(Number);
  const size = made === undefined ? '' : `${(sizeOf(made) / events).toFixed(1).padStart(8)} bytes an event`;
  const rate = (seconds) => `${(events / seconds / 1e6).toFixed(2)} M/s`.padStart(10);
  const memory = `${(peak / 1024).toFixed(0).padStart(5)} MB`;
  console.log(`${title.padEnd(34)} ${rate(user + system)} CPU ${rate(wall)} wall ${memory} ${size}`);
}

const trace = join(folder, 'made.pftrace');
const began = performance.now();
record(openTrace(trace, { force: true }));
console.log(
  `written: ${events} events, ${(sizeOf(trace) / events).toFixed(1)} bytes each, ${(events / (performance.now() - began) / 1e3).toFixed(2)} M/s`,
);
const main = join(root, 'dist/cli/main.js');
const library = join(root, 'dist/trace/index.js');
const idle = `{ begin() {}, event() {}, hart() {}, flush() {}, end() {} }`;
const read = `import { readTrace } from ${JSON.stringify(library)}; await readTrace(${JSON.stringify(trace)}, ${idle});`;
measure('read', [process.execPath, '--input-type=module', '-e', read]);
measure('report', [process.execPath, main, 'report', trace]);
for (const extension of values.format) {
  const path = join(folder, `out${extension}`);
  measure(`convert to ${extension}`, [process.execPath, main, 'convert', trace, '-o', path, '--force'], path);
  if (extension === '.uftrace') {
    measure('uftrace dump of the same', ['uftrace', 'dump', '-d', path, '--no-pager']);
    measure('uftrace report of the same', ['uftrace', 'report', '-d', path, '--no-pager']);
  }
  rmSync(path, { recursive: true });
}
