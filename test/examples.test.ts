// The programs of examples/, as their first lines say: their output against what the guest says of itself.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { elfPath, type Lab, parseLab, qemuArgv } from './qemu/guests/guests.js';
import { scratchFolder } from './support/command.js';

const folder = join(import.meta.dirname, '..', 'examples');
const name = 'rv-o2';

async function run(t: Test, program: string, ...args: string[]): Promise<{ lab: Lab; lines: string[] }> {
  const words = ['--import=tsx', join(folder, program), elfPath(name), ...args, '--', ...qemuArgv(name)];
  const child = spawn(process.execPath, words, { timeout: 300_000 });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const status = await new Promise((resolve) => child.once('close', resolve));
  t.equal(status, 0, stderr.slice(-600));
  return { lab: parseLab(stderr), lines: stdout.trimEnd().split('\n') };
}

t.test('each is short, and tested here', async (t) => {
  const programs = readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const own = readFileSync(import.meta.filename, 'utf8');
  t.equal(programs.length, 5);
  for (const file of [...programs, 'plugin.mjs', 'executors.mjs'])
    t.ok(readFileSync(join(folder, file), 'utf8').trimEnd().split('\n').length <= 40, `${file} has at most 40 lines`);
  for (const file of programs) t.ok(own.includes(`'${file}'`), `${file} is run`);
});

t.test('a histogram by task', async (t) => {
  const { lab, lines } = await run(t, 'histogram-by-task.ts', 'fn:labkern::exec::poll_task', 't.id');
  t.equal(lines[0], 'guest-ended, by target');
  const polls = new Map(
    lines.slice(1).map((line) => /^task (\d+): #+ (\d+) polls/.exec(line)?.slice(1).map(Number) as [number, number]),
  );
  t.equal(polls.size, lab.exec?.spawned);
  // One that was woken during its last poll is taken from the queue once more.
  for (const task of lab.tasks) t.ok([task.polls, task.polls + 1].includes(polls.get(task.id) ?? 0), `task ${task.id}`);
  t.equal(
    [...polls.values()].reduce((sum, each) => sum + each, 0),
    lab.stats.get('poll_task')?.calls,
  );
});

t.test('a boot check', async (t) => {
  const { lines } = await run(t, 'boot-check.ts', 'labkern::exec::run');
  t.equal(lines[0], 'booted: came to labkern::exec::run');
  // The guest has not come to its report: it spawns as many in every run.
  t.equal(lines[1], '14 tasks are waiting');
  t.ok(lines.slice(2).every((line) => line.endsWith(' Unresumed')));
});

t.test('a runtime', async (t) => {
  const { lab, lines } = await run(t, 'runtime.ts', 'labkern::exec::READY', 'labkern::exec::run');
  t.equal(lines[0], `ready-queue: ${lab.exec?.spawned} tasks`);
  t.equal(lines.filter((line) => line.startsWith('labkern::work::chain_task')).length, 3);
});

t.test('a format', async (t) => {
  const file = join(scratchFolder(t), 'out.csv');
  const { lab, lines } = await run(t, 'format.ts', 'fn:deep0', file);
  const calls = lab.stats.get('deep_calls')?.calls ?? 0;
  t.equal(lines[0], `guest-ended: ${2 * calls} events in ${file}`);
  const [head, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n');
  t.equal(head, 'time_ns,hart,event,name');
  t.equal(rows.filter((row) => row.endsWith(',0,call-begin,labkern::work::deep0')).length, calls);
  t.equal(rows.filter((row) => row.endsWith(',0,call-end,labkern::work::deep0')).length, calls);
});

t.test('a kind of probe', async (t) => {
  const { lab, lines } = await run(t, 'custom-probe.ts', 'symbol:timer_tick');
  const hits = Number(/symbol:timer_tick: (\d+) hits/.exec(lines[0] ?? '')?.[1]);
  const ticks = lab.exec?.ticks ?? 0;
  // Ticks go on after the report, until the guest ends.
  t.ok(hits >= ticks && hits <= ticks + 20, `${hits} hits, ${ticks} ticks`);
});
