// Executors of their own that run a thread each: monoio, compio and glommio. The program counts its polls, and says which tasks wait.
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { pollsPrinted, pollsProgram, waitingProgram } from '../support/native.js';

interface Found {
  readonly future: string;
  readonly facts: { readonly state: string };
}

const runtimes = ['monoio', 'compio', 'glommio'];

t.test('tasks: those of each runtime that wait, and none that has ended', async (t) => {
  const elf = pollsProgram(t, 'rings');
  const { tasks, printed } = await waitingProgram(t, elf);
  const report = JSON.parse(await tasks('--json')) as {
    readonly runtimes: readonly string[];
    readonly tasks: readonly Found[];
    readonly others: readonly Found[];
  };
  t.strictSame(report.runtimes.toSorted(), ['compio', 'glommio', 'monoio', 'search']);
  const isMain = ({ future }: Found): boolean => future.startsWith('rings_program::main::');
  const isKept = ({ future }: Found): boolean => future.startsWith('rings_program::kept_');
  t.strictSame(
    report.tasks
      .flatMap((task) => (isMain(task) || isKept(task) ? [] : [`${task.future} ${task.facts.state.split(',')[0]}`]))
      .sort(),
    runtimes.flatMap((name) => Array(3).fill(`rings_program::${name}_waits idle`)).sort(),
  );
  // Wakers are kept of what has ended, too: the program says of which it has dropped the Futures.
  const [, over = ''] = /^over (.*)$/m.exec(printed) ?? [];
  const stateOf = ({ future, facts: { state } }: Found): string => `${future.replace(/^.*::/, '')} ${state}`;
  t.strictSame(over.split(' ').sort(), ['kept_dropped', 'kept_ended']);
  t.strictSame(report.tasks.filter(isKept).map(stateOf), ['kept_cancelled idle, cancelled']);
  t.strictSame(report.others.filter(isKept).map(stateOf).sort(), ['kept_dropped cancelled', 'kept_ended complete']);
  // The first of glommio's is a task itself, and has not returned from its poll. The others are no tasks.
  t.equal(report.tasks.filter(isMain).length, 1);
});

t.test('run: each task of them is a task of its own, also where it is first polled inside another one', async (t) => {
  const trace = join(scratchFolder(t), 'trace.jsonl');
  const elf = pollsProgram(t, 'rings');
  const { tasks } = await rsptrace('run', '--json', '-o', trace, elf, '--', 'end').json<{
    readonly tasks: readonly { readonly future: string; readonly runtime: string | null; readonly polls: number }[];
  }>();
  const printed = pollsPrinted((await start(elf, ['end']).ended).stdout);
  for (const name of runtimes) {
    const own = tasks.filter(({ future }) => future.startsWith(`rings_program::${name}_`));
    t.strictSame(own.map(({ polls }) => polls).sort(), [2, 3, 4, 5, 6], name);
    t.ok(
      own.every(({ runtime }) => runtime === name),
      `the runtime of each task of ${name}`,
    );
    t.equal(
      own.reduce((sum, { polls }) => sum + polls, 0),
      printed.get(name),
      name,
    );
  }
});
