// `rsptrace tasks` on a tokio program under a real gdbserver, against the program's own list of live tasks.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace } from '../support/command.js';
import { usually } from '../support/long.js';
import { pollsProgram, waitingProgram } from '../support/native.js';

interface Node {
  readonly future: string;
  readonly fate: string;
  readonly facts: Readonly<Record<string, string | number>>;
  readonly awaits: readonly Node[];
}
interface Report {
  readonly runtimes: readonly string[];
  readonly tasks: readonly Node[];
  readonly others: readonly Node[];
  readonly notes: readonly string[];
  readonly unread: number;
  readonly stoodMs: number;
}

/** What memory says: not how much of it there was, nor how long the target stood. */
function told(json: string): unknown {
  const { stoodMs, searched, ...rest } = JSON.parse(json) as Report & { readonly searched: number };
  return rest;
}

/** gdb writes the core of the process, while it goes on. */
async function fromCore(t: Test, pid: string, elf: string): Promise<unknown> {
  const core = join(t.testdir(), 'core');
  execFileSync('gdb', ['-q', '-batch', '-p', pid, '-ex', `gcore ${core}`], { stdio: 'ignore' });
  const ran = await rsptrace('tasks', '--json', '--core', core, elf).ended;
  t.equal(ran.stderr, '');
  return told(ran.stdout);
}

for (const mode of usually(['ct', 'mt', 'local'], (one) => one !== 'ct')) {
  t.test(`${mode}: as many tasks as the program says, by the same numbers`, async (t) => {
    const elf = pollsProgram(t, 'tasks');
    const { process, pid, printed, tasks } = await waitingProgram(t, elf, [mode]);
    const live = new Map([...printed.matchAll(/^live (\d+) (\w+)$/gm)].map(([, id, name]) => [Number(id), name]));
    const untaken = Number(/^untaken (\d+)$/m.exec(printed)?.[1]);
    t.ok(live.size > 15, printed);
    const json = await tasks('--json');
    const report = JSON.parse(json) as Report;
    t.strictSame(report.runtimes[0], 'tokio');
    // What main blocks on is no task. Where stale bytes on its stack look like it, that is noted; they differ by machine.
    t.strictSame(
      report.notes.filter((note) => !/which a thread blocks on in .* may lie in \d+ places of the stack/.test(note)),
      [],
    );
    const nameOf = (future: string): string => future.replaceAll('::{async_block#0}', '').split('::').at(-1) ?? '';
    const found = new Map(report.tasks.map(({ future, facts: { id } }) => [id, nameOf(future)]));
    for (const [id, name] of live) {
      const expected = name === 'block' ? 'work' : name === 'work' ? 'main' : name;
      t.equal(found.get(id), expected, `task ${id}`);
    }
    t.equal(report.tasks.length, live.size, 'and no others');
    t.equal(report.others.filter(({ fate }) => fate === 'ended').length, untaken, 'results that nobody took');
    const internal = { ct: 0, mt: 2, local: 1 }[mode];
    t.equal(report.others.filter(({ fate }) => fate === 'internal').length, internal, 'of the blocking pool');
    t.ok(report.stoodMs > 0);
    t.equal(process.exitCode, null, 'and it runs on');
    // With more threads its core is large.
    if (mode === 'ct') t.strictSame(await fromCore(t, pid, elf), told(json), 'its core tells the same');
  });
}

t.test('an executor of its own: those that live, and what was dropped apart', async (t) => {
  const elf = pollsProgram(t, 'executor');
  const program = await waitingProgram(t, elf);
  const json = await program.tasks('--json');
  const { runtimes, tasks, others } = JSON.parse(json) as Report;
  t.strictSame(runtimes, ['search']);
  // As the program prints: 17, 4 and 1 live, 60 were dropped. The 120 that have ended are in no box any more.
  t.equal(tasks.filter(({ future }) => future.endsWith('::long')).length, 17);
  t.equal(tasks.filter(({ future }) => future.endsWith('::nested')).length, 4);
  // Of three jobs two are over with what they hold, and still in their boxes.
  t.equal(tasks.filter(({ future }) => future.endsWith('::Job')).length, 1);
  t.equal(tasks.length, 22);
  const stale = others.filter(({ fate }) => fate === 'unreferenced');
  t.equal(stale.length, others.length);
  t.ok(stale.length > 0 && stale.length <= 60, `${stale.length} dropped boxes are still to be seen`);
  t.strictSame(await fromCore(t, program.pid, elf), told(json), 'its core has the marks of the heap, too');
});
