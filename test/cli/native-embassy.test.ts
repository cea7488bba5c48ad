// The two releases of embassy-executor before the newest, under std: every task, its polls and its wakes, against what the program counts.
import t, { type Test } from 'tap';
import { variant } from '../support/long.js';
import { pollsProgram } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

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
  const { output, stdout } = await recorded<{ readonly tasks: readonly Task[] }>(t, [elf], ['--engine', 'target']);
  const { tasks } = output;
  const truth = counted(stdout);
  t.equal(truth.length, 6);
  const told = tasks.map(({ future, polls }) => `${/::(\w+)$/.exec(future)?.[1]} ${polls}`);
  t.strictSame(told.sort(), truth);
  // A task is polled when it is spawned, and then because it was woken, perhaps more than once.
  for (const { future, polls, wakes } of tasks) t.ok((wakes ?? 0) >= polls - 1, `${future}: ${wakes} wakes`);
}

variant(t, '0.8, optimised', (t) => check(t, 'embassy-08-o3'));
t.test('0.9, unoptimised', (t) => check(t, 'embassy-09-o0'));
