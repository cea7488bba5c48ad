// Findings on tokio, in a debug and a release build: one poll stops its thread, one task is aborted. The program itself
// says which task, which line and how long. Without the two faults it has no finding.

import t, { type Test } from 'tap';
import { usually } from '../support/long.js';
import { pollsProgram } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

type Build = 'tokio-faults-o0' | 'tokio-faults-o3';

interface Output {
  readonly findings: readonly {
    readonly kind: string;
    readonly task: number;
    readonly future: string;
    readonly file: string | null;
    readonly line: number | null;
    readonly count: number;
    readonly worst: number | null;
  }[];
  readonly tasks: readonly {
    readonly number: number;
    readonly future: string;
    readonly file: string | null;
    readonly line: number | null;
    readonly id: number | null;
  }[];
}

async function traced(t: Test, build: Build, ...mode: readonly string[]) {
  // A busy machine makes any poll long: only the 300 ms of the fault are longer than this.
  const made = await recorded<Output>(t, [pollsProgram(t, build), ...mode], ['--long-poll', '200ms']);
  const { stdout: printed } = made;
  const { findings, tasks } = made.output;
  const told = [...printed.matchAll(/^task (\w+) id=(\d+) line=(\d+)$/gm)];
  t.equal(told.length, 3, printed);
  for (const [, name, id, line] of told) {
    const task = tasks.find((each) => each.id === Number(id));
    t.match(task, { future: `tokio_faults_program::${name}`, file: '/native/src/main.rs', line: Number(line) });
  }
  const idOf = (number: number) => tasks.find((each) => each.number === number)?.id;
  return { printed, found: findings.map(({ task, ...finding }) => ({ ...finding, id: idOf(task) })) };
}

function numbers(printed: string, pattern: RegExp): readonly number[] {
  return (pattern.exec(printed) ?? []).slice(1).map(Number);
}

for (const build of ['tokio-faults-o0', 'tokio-faults-o3'] as const) {
  // Each build and each runtime once.
  for (const threads of usually(['ct', 'mt'], (one) => one === 'mt' && build === 'tokio-faults-o3')) {
    t.test(`${build} ${threads}: a poll that blocks its thread, and a task that is aborted`, async (t) => {
      const { printed, found } = await traced(t, build, 'faults', threads);
      const [blocking] = numbers(printed, /^task blocks id=(\d+)/m);
      const [slept = Number.NaN, from] = numbers(printed, /^slept (\d+) from (\d+)$/m);
      const [aborted, at] = numbers(printed, /^dropped waits id=(\d+) at (\d+)$/m);
      const [long, dropped, ...others] = [...found].sort((a, b) => (a.kind < b.kind ? 1 : -1));
      const file = '/native/src/main.rs';
      t.match(long, { kind: 'long-poll', future: 'tokio_faults_program::blocks', id: blocking, file, line: from });
      t.equal(long?.count, 1);
      t.ok((long?.worst ?? 0) >= slept, `${long?.worst} of ${slept}`);
      t.match(dropped, { kind: 'dropped-pending', future: 'tokio_faults_program::waits', id: aborted, file, line: at });
      t.equal(dropped?.count, 1);
      t.strictSame(others, []);
    });
    t.test(`${build} ${threads}: the same without the faults`, async (t) => {
      const { printed, found } = await traced(t, build, 'clean', threads);
      t.match(printed, /^aborted false$/m);
      t.strictSame(found, []);
    });
  }
}
