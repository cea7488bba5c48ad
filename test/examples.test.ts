// The programs of examples/, as their first lines say: their output against what the guest says of itself.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { elfPath, type Lab, parseLab, qemuArgv } from './qemu/guests/guests.js';
import { scratchFolder, start } from './support/command.js';

const folder = join(import.meta.dirname, '..', 'examples');
const name = 'rv-o2';
const csv = join(scratchFolder(t), 'out.csv');

const runs: readonly (readonly [program: string, ...args: string[]])[] = [
  ['histogram-by-task.ts', 'fn:labkern::exec::poll_task', 't.id'],
  ['boot-check.ts', 'labkern::exec::run'],
  ['runtime.ts', 'labkern::exec::READY', 'labkern::exec::run'],
  ['format.ts', 'fn:deep0', csv],
  ['custom-probe.ts', 'symbol:deep7'],
];

/** What stands behind each program's output, and behind what its guest prints. */
const MARK = '\x1e';
const ONE_AFTER_ANOTHER = `
for (const [program, ...args] of JSON.parse(process.argv[1])) {
  process.argv = [process.execPath, program, ...args];
  await import(program);
  for (const stream of [process.stdout, process.stderr]) stream.write('${MARK}');
}`;

/** All of them, as their first lines say, but in one process: what one has loaded and compiled the next one finds. */
async function runAll(): Promise<Map<string, { readonly lab: Lab; readonly lines: readonly string[] }>> {
  const words = runs.map(([program, ...args]) => [
    ...[join(folder, program), elfPath(name)],
    ...[...args, '--', ...qemuArgv(name)],
  ]);
  const node = ['--import=tsx', '--input-type=module', '-e', ONE_AFTER_ANOTHER, JSON.stringify(words)];
  const { status, stdout, stderr } = await start(process.execPath, node).ended;
  if (status !== 0) throw new Error(stderr.slice(-600));
  const [outputs, consoles] = [stdout, stderr].map((text) => text.split(MARK)) as [string[], string[]];
  return new Map(
    runs.map(([program], i) => [
      program,
      { lab: parseLab(consoles[i] ?? ''), lines: (outputs[i] ?? '').trimEnd().split('\n') },
    ]),
  );
}

const ran = await runAll();

function outputOf(program: string): { readonly lab: Lab; readonly lines: readonly string[] } {
  const found = ran.get(program);
  if (found === undefined) throw new Error(`${program} has not run`);
  return found;
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
  const { lab, lines } = outputOf('histogram-by-task.ts');
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
  const { lines } = outputOf('boot-check.ts');
  t.equal(lines[0], 'booted: came to labkern::exec::run');
  // The guest has not come to its report: it spawns as many in every run.
  t.equal(lines[1], '14 tasks are waiting');
  t.ok(lines.slice(2).every((line) => line.endsWith(' Unresumed')));
});

t.test('a runtime', async (t) => {
  const { lab, lines } = outputOf('runtime.ts');
  t.equal(lines[0], `ready-queue: ${lab.exec?.spawned} tasks`);
  t.equal(lines.filter((line) => line.startsWith('labkern::work::chain_task')).length, 3);
});

t.test('a format', async (t) => {
  const { lab, lines } = outputOf('format.ts');
  const calls = lab.stats.get('deep_calls')?.calls ?? 0;
  t.equal(lines[0], `guest-ended: ${2 * calls} events in ${csv}`);
  const [head, ...rows] = readFileSync(csv, 'utf8').trimEnd().split('\n');
  t.equal(head, 'time_ns,hart,event,name');
  t.equal(rows.filter((row) => row.endsWith(',0,call-begin,labkern::work::deep0')).length, calls);
  t.equal(rows.filter((row) => row.endsWith(',0,call-end,labkern::work::deep0')).length, calls);
});

t.test('a kind of probe', async (t) => {
  const { lab, lines } = outputOf('custom-probe.ts');
  const hits = Number(/symbol:deep7: (\d+) hits/.exec(lines[0] ?? '')?.[1]);
  t.equal(hits, lab.stats.get('deep_calls')?.calls);
});
