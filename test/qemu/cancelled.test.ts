// Futures that are dropped before they are ready, against the guest's own counts: those that began and were never ready.
import { readFileSync } from 'node:fs';
import t from 'tap';
import { long, usually } from '../support/long.js';
import { tracePolls } from '../support/polls.js';
import { children, protoc, readPerfetto } from '../trace/decode-perfetto.js';

/** `LAB stat NAME calls=N polls=N`: how many of each async fn were polled at least once. */
function callsOf(console: string): Map<string, number> {
  const lines = console.matchAll(/^LAB stat (\w+) calls=(\d+) /gm);
  // Two are not counted, because they are dropped outside of their polls.
  return new Map(
    [...lines].map(([, name = '', calls]) => [name, Number(calls)] as const).filter(([, calls]) => calls > 0),
  );
}

interface Row {
  readonly future: string;
  readonly kind: string;
  readonly ready: number;
  readonly at_least: boolean;
  readonly cancelled: number;
  readonly cancelled_at_least: boolean;
}

/** The rows of an async fn of the guest, or of the block in a function. */
function rowsNamed(rows: readonly Row[], name: string): Row[] {
  const [functions, blocks] = ['', '::{async_block#0}'].map((block) =>
    rows.filter(({ future }) => future.endsWith(`::work::${name}${block}`)),
  ) as [Row[], Row[]];
  return functions.length > 0 ? functions : blocks;
}

const known = new Map<string, ReturnType<typeof tracePolls>>();

/** Each is asked for several things. */
function recorded(guest: string, engine: string): ReturnType<typeof tracePolls> {
  const key = `${guest} ${engine}`;
  const found = known.get(key) ?? tracePolls(t, guest, [], ['--engine', engine]);
  known.set(key, found);
  return found;
}

/** Of `least` async fns every drop leaves a mark in this build. */
const builds = [
  ['rv-asynctask-o0', 9],
  ['rv-asynctask-o3', 1],
  ['rv-embassy-o0', 4],
  ['rv-embassy-o3', 1],
] as const;
for (const [guest, least] of usually(builds, ([guest]) => guest === 'rv-embassy-o3')) {
  t.test(`${guest}: what began and was never ready`, async (t) => {
    const { output, console } = await recorded(guest, 'target');
    let [exact, dropped] = [0, 0];
    for (const [name, calls] of callsOf(console)) {
      const rows = rowsNamed(output.futures as unknown as Row[], name);
      if (rows.length === 0 || rows.some((row) => row.at_least)) continue;
      const sum = (of: (row: Row) => number): number => rows.reduce((all, row) => all + of(row), 0);
      const expected = calls - sum(({ ready }) => ready);
      const found = sum(({ cancelled }) => cancelled);
      dropped += found;
      if (rows.some((row) => row.cancelled_at_least)) t.ok(found <= expected, `${name}: ${found} of ${expected}`);
      else {
        exact++;
        t.equal(found, expected, name);
      }
    }
    t.ok(exact >= least, `${exact} are exact`);
    if (guest.endsWith('o0')) t.ok(dropped >= 10, 'the losers of selects, and boxes');

    if (!long && guest !== 'rv-asynctask-o0') return;
    const { slices } = readPerfetto(children(protoc(readFileSync(output.trace)), 'packet'));
    const events = slices.filter(({ category }) => category === 'cancelled');
    t.equal(
      events.length,
      output.futures.reduce((all, row) => all + (row as unknown as Row).cancelled, 0),
      'an instant each',
    );
  });
}

// The task is polled 25 times or so, and dropped by the executor, which runs it once more.
const ways = [
  ['rv-asynctask-o0', 'target'],
  ['rv-asynctask-o0', 'stop'],
  ['rv-asynctask-o3', 'target'],
  ['rv-asynctask-o3', 'stop'],
] as const;
for (const [guest, engine] of usually(ways, ([guest, engine]) => engine === 'target' && guest.endsWith('o3'))) {
  t.test(`${guest} --engine ${engine}: the task that is cancelled, and no other`, async (t) => {
    const { output, console } = await recorded(guest, engine);
    const polls = Number(/^LAB task \d+ cancelled polls=(\d+)$/m.exec(console)?.[1]);
    const cancelled = output.tasks.filter(({ state }) => state === 'cancelled');
    t.strictSame(
      cancelled.map((row) => [/::work::(\w+)/.exec(row.instance)?.[1], row.polls]),
      [['cancelled', polls]],
    );
    t.ok((cancelled[0]?.ended_ns ?? 0) > (cancelled[0]?.first_poll_ns ?? 0));
    const findings = (output as unknown as { findings: readonly { kind: string; times_ns: number[]; by: string }[] })
      .findings;
    const dropped = findings.filter(({ kind }) => kind === 'dropped-pending');
    t.strictSame(
      dropped.map(({ times_ns }) => times_ns),
      [[cancelled[0]?.ended_ns]],
    );
    t.match(dropped[0]?.by, /no task, in async_task::/);
    t.equal(output.tasks.filter(({ state }) => state === 'dropped').length, 0);
  });
}
