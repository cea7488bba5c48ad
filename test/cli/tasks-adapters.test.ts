// `rsptrace tasks` on streams of the futures crate that hold Futures beside what they receive from, and on locks of
// futures-intrusive, against the program's own book.
import t from 'tap';
import { pollsProgram, waitingProgram } from '../support/native.js';

interface Report {
  readonly tasks: readonly {
    readonly future: string;
    readonly waits?: readonly {
      readonly kind: string;
      readonly detail: string | null;
      readonly by: readonly { readonly task: number }[];
    }[];
  }[];
  readonly deadlocks: readonly { readonly cycle: readonly { readonly task: number }[]; readonly likely: boolean }[];
  readonly notes: readonly string[];
}

t.test('what streams wait for beside their Futures, and locks of futures-intrusive', async (t) => {
  const { printed, tasks: text } = await waitingProgram(t, pollsProgram(t, 'adapters'));
  const { tasks, deadlocks, notes } = JSON.parse(await text('--json')) as Report;
  const nameOf = (index: number): string => tasks[index]?.future.replace(/^adapters_program::/, '') ?? '?';
  const said = tasks.flatMap(({ waits = [] }, index) =>
    waits.map(({ kind, by }) => `${nameOf(index)} ${kind} ${by.map(({ task }) => nameOf(task)).join()}`),
  );
  const booked = [...printed.matchAll(/^waits (.*)$/gm)].map(([, line]) => line);
  t.equal(booked.length, 20);
  const isReleased = (line: string): boolean => line.startsWith('wants_released ');
  t.strictSame(said.filter((line) => !isReleased(line)).sort(), booked.sort());
  t.strictSame(notes, []);
  // Of all others that wait for each other one waits for somebody else, too.
  t.strictSame(
    deadlocks.map(({ cycle, likely }) => [cycle.map(({ task }) => nameOf(task).split('_')[0]), likely]),
    [[['stuck', 'stuck'], false]],
  );
  t.match(printed, /^locked false$/m);
  t.match(
    tasks.find(({ future }) => future.endsWith('::wants_released'))?.waits,
    [{ kind: 'Mutex', detail: 'free by now', by: [] }],
    'the place of the old guard is not believed',
  );
});
