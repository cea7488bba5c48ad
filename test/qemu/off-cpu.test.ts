// The off-CPU profile against a kernel that notes when each of its awaits began and ended.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { elfPath, qemuArgv } from './guests/guests.js';

const folder = scratchFolder(t);
const trace = join(folder, 'waits.pftrace');

async function ok(...words: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const ran = await rsptrace(...words).ended;
  if (ran.status !== 0) throw new Error(ran.stderr);
  return ran;
}

const { stdout: said } = await ok(
  ...['run', '--deterministic', '-p', 'poll:waits::**', '-o', trace, elfPath('rv-waits')],
  ...['--', ...qemuArgv('rv-waits')],
);

/** By line: how often it was awaited, and for how long, in nanoseconds. */
const noted = new Map<number, { count: number; time: number }>();
for (const [, line, began, ended] of said.matchAll(/LAB await line=(\d+) began=(\d+) ended=(\d+)/g)) {
  const sum = noted.get(Number(line)) ?? { count: 0, time: 0 };
  noted.set(Number(line), { count: sum.count + 1, time: sum.time + Number(ended) - Number(began) });
}

interface Row {
  readonly task: string;
  readonly await: string;
  readonly woken_by: string;
  readonly waits: number;
  readonly total_ns: number;
  readonly runnable_ns: number;
}

t.test('every await takes as long as the guest itself has noted', async (t) => {
  const path = join(folder, 'waits.folded');
  await ok('profile', trace, '--off-cpu', '-o', path);
  const stacks = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const at = line.lastIndexOf(' ');
      return { frames: line.slice(0, at).split(';'), nanos: Number(line.slice(at + 1)) };
    });
  t.equal(noted.size, 7);
  for (const [line, { time }] of noted) {
    const inside = stacks.filter(({ frames }) => frames.some((frame) => frame.endsWith(`waits.rs:${line}`)));
    const found = inside.reduce((sum, { nanos }) => sum + nanos, 0);
    t.ok(Math.abs(found / time - 1) < 0.01, `line ${line}: ${found} ns, and ${time} by the guest itself`);
  }
});

t.test('who ends the waits: the timer, or the task that puts a value', async (t) => {
  const { stdout } = await ok('profile', trace, '--off-cpu', '--json');
  const { waits } = JSON.parse(stdout) as { readonly waits: readonly Row[] };
  const innermost = new Map<string, number>();
  for (const { task, await: at, woken_by: by, waits: count, total_ns: total, runnable_ns: runnable } of waits) {
    innermost.set(at, (innermost.get(at) ?? 0) + count);
    if (task === 'waits::receiver') t.match(by, /^waits::sender in /);
    else t.match(by, /^no task in .*timer_tick/);
    t.ok(runnable > 0 && runnable < total);
  }
  // The caller's own line is never the innermost one.
  for (const [at, count] of innermost) t.equal(count, noted.get(Number(at.split(':').at(-1)))?.count, at);
  t.equal(innermost.size, 6);
});

t.test('a report by await has a row a line, named after the function that stands there', async (t) => {
  const { stdout } = await ok('report', trace, '--by', 'await', '--json');
  const { await: rows } = JSON.parse(stdout) as {
    readonly await: readonly { readonly name: string; readonly line: number; readonly calls: number }[];
  };
  const source = readFileSync(join(import.meta.dirname, 'guests/kern/src/waits.rs'), 'utf8').split('\n');
  for (const { name, line, calls } of rows) {
    t.equal(calls, noted.get(line)?.count, `line ${line}`);
    const head = source.slice(0, line).findLast((text) => text.includes('async fn '));
    t.equal(name, `waits::${/async fn (\w+)/.exec(head ?? '')?.[1]}`, `line ${line}`);
  }
  t.equal(rows.length, 6);
});
