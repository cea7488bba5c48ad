// Tasks that are polled inside another poll are tasks of their own: in tokio's threads, whose loop is a poll, in a LocalSet and in an
// executor, which are Futures. What a Future polls itself is none, also in a list of its own. The program counts tasks and polls.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { long, usually } from '../support/long.js';
import { gdbserver, pollsProgram } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

interface Task {
  readonly instance: string;
  readonly polls: number;
  readonly wakes: number | null;
}

/** A line a kind: the tasks, and the polls of all of them. */
type Counts = ReadonlyMap<string, { readonly tasks: number; readonly polls: number }>;

/** What the program counted. */
function printed(stdout: string): Counts {
  const lines = stdout.matchAll(/^kind (\w+) tasks=(\d+) polls=(\d+)$/gm);
  return new Map(Array.from(lines, ([, kind = '', n, polls]) => [kind, { tasks: Number(n), polls: Number(polls) }]));
}

/** The tasks of the program's own, by the innermost async fn or block of each. */
function counted(tasks: readonly Pick<Task, 'instance' | 'polls'>[], kindOf: (name: string) => string): Counts {
  const counts = new Map<string, { tasks: number; polls: number }>();
  for (const { instance, polls } of tasks) {
    const [, inside, whole] = /\bCounted<nested_program::(\w+)::|^nested_program::(\w+)$/.exec(instance) ?? [];
    const name = inside ?? whole;
    if (name === undefined) continue;
    const kind = kindOf(name);
    const { tasks: before, polls: sum } = counts.get(kind) ?? { tasks: 0, polls: 0 };
    counts.set(kind, { tasks: before + 1, polls: sum + polls });
  }
  return counts;
}

const sorted = (counts: Counts) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1));

/** A saved trace's report. */
interface Saved {
  readonly task: readonly { readonly instance: string; readonly calls: number }[];
}

async function check(t: Test, build: 'nested-o0' | 'nested-o3', way: string, ...options: string[]) {
  const elf = pollsProgram(t, build);
  const { output, stdout, file } = await recorded<{ readonly tasks: readonly Task[] }>(t, [elf, way], options);
  const { tasks } = output;
  const truth = printed(stdout);
  // They are Futures inside a task.
  t.equal(truth.has('inside'), way === 'unordered');
  const wanted = sorted(truth).filter(([kind]) => kind !== 'inside');
  const kindOf = (name: string) => (truth.has(name) ? name : 'main');
  t.strictSame(sorted(counted(tasks, kindOf)), wanted);
  // Each of their polls but the first was caused by one wake, which names the task. Only without stops wakes are seen.
  const woken = tasks.filter(
    ({ instance, polls }) => polls > 1 && instance.includes('Counted<nested_program::first::'),
  );
  // Where it lies in a Future of the executor's here, and in a task of tokio's elsewhere, nothing says which it is.
  const isUnknown = build === 'nested-o3' && way === 'executor' && options.length === 0;
  const wakesOf = ({ polls }: Task) => (isUnknown ? null : polls - 1);
  if (!options.includes('stop')) t.ok(woken.every((task) => task.wakes === wakesOf(task)));
  const rows = (await rsptrace('report', '--by', 'task', '--json', file).json<Saved>()).task;
  const read = rows.map(({ instance, calls }) => ({ instance, polls: calls }));
  t.strictSame(sorted(counted(read, kindOf)), wanted, 'as the trace has them');
}

const ways = ['threads', 'place', 'local', 'executor', 'unordered'];
/** An executor's tasks are seen in a debug build by the default probes, below. */
const chosen = ['threads'];
for (const build of ['nested-o0', 'nested-o3'] as const) {
  for (const way of usually(ways, (one) => build === 'nested-o3' && chosen.includes(one))) {
    t.test(`${build} ${way}: poll:**`, (t) => check(t, build, way, '--engine', 'target', '-p', 'poll:**'));
  }
  if (!long) continue;
  for (const way of build === 'nested-o3' ? ['threads', 'place'] : ['local']) {
    t.test(`${build} ${way}, with stops: poll:**`, (t) => check(t, build, way, '--engine', 'stop', '-p', 'poll:**'));
  }
}

if (long) t.test("a LocalSet's tasks, with the default probes", (t) => check(t, 'nested-o3', 'local'));
// In a debug build async-executor polls them through a Future of its own.
for (const build of usually(['nested-o0', 'nested-o3'] as const, (one) => one === 'nested-o0'))
  t.test(`${build}: an executor's tasks, with the default probes`, (t) => check(t, build, 'executor'));

// A library's Future is the task, and what it polls is none. Both branches wake it in each poll: it is polled as often as the one that decides.
for (const build of usually(['nested-o0', 'nested-o3'] as const, (one) => one === 'nested-o3')) {
  t.test(`${build}: a join and a select that are tasks themselves, with the default probes`, async (t) => {
    const elf = pollsProgram(t, build);
    const server = await gdbserver(t, elf, 'joins');
    const file = join(scratchFolder(t), 'out.pftrace');
    const ran = await rsptrace('-r', server.address, '--json', '-o', file, elf).ended;
    t.equal(ran.status, 0, ran.stderr.slice(-300));
    const truth = printed((await server.ended).stdout);
    const { tasks } = JSON.parse(ran.stdout) as {
      readonly tasks: readonly (Task & { readonly future: string; readonly state: string })[];
    };
    // Of an inlined poll memory may not tell the result.
    t.ok(tasks.every(({ state }) => state === 'ready' || (build === 'nested-o3' && state === 'unknown')));
    const ofLibrary = tasks.filter(({ future }) => future.startsWith('futures_util::'));
    t.strictSame(
      ofLibrary.map(({ future, polls }) => [future.split('::').at(-1), polls]),
      [
        ['Join', truth.get('long')?.polls],
        ['Select', truth.get('near')?.polls],
      ],
    );
    t.strictSame(
      tasks.filter(({ instance }) => instance.startsWith('nested_program::Counted<')),
      [],
      'no branch is a task',
    );
  });
}
