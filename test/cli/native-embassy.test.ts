// The two releases of embassy-executor before the newest, under std: every task, its polls and its wakes, against what the program counts.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { gdbserver, pollsProgram } from '../support/native.js';

interface Task {
  readonly future: string;
  readonly polls: number;
  readonly wakes: number | null;
}

/** The polls of each task, by its name. */
function counted(stdout: string): string[] {
  return Array.from(stdout.matchAll(/^task (\w+) polls=(\d+)$/gm), ([, name, polls]) => `${name} ${polls}`).sort();
}

async function check(t: Test, build: 'embassy-08-o3' | 'embassy-09-o0') {
  const elf = pollsProgram(t, build);
  const file = join(scratchFolder(t), 'out.txt');
  const server = await gdbserver(t, elf);
  const ran = await rsptrace('-r', server.address, '--json', '--engine', 'target', '-o', file, elf).ended;
  if (!t.equal(ran.status, 0, ran.stderr.slice(-300))) return;
  const truth = counted((await server.ended).stdout);
  t.equal(truth.length, 6);
  const { tasks } = JSON.parse(ran.stdout) as { readonly tasks: readonly Task[] };
  const told = tasks.map(({ future, polls }) => `${/::__(\w+)_task::/.exec(future)?.[1]} ${polls}`);
  t.strictSame(told.sort(), truth);
  // A task is polled when it is spawned, and then because it was woken, perhaps more than once.
  for (const { future, polls, wakes } of tasks) t.ok((wakes ?? 0) >= polls - 1, `${future}: ${wakes} wakes`);
}

t.test('0.8, optimised', (t) => check(t, 'embassy-08-o3'));
t.test('0.9, unoptimised', (t) => check(t, 'embassy-09-o0'));
