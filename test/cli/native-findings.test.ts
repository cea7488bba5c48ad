// Each finding on a program with one fault, which says itself how often its tasks were polled and woken; and none without a fault.
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { readTrace, type TraceFacts } from '../../src/trace/index.js';
import { rsptrace } from '../support/command.js';
import { gdbserver, pollsProgram } from '../support/native.js';

interface Finding {
  readonly kind: string;
  readonly task: number;
  readonly future: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly count: number;
  readonly times_ns: readonly number[];
  readonly worst: number | null;
}
interface Output {
  readonly findings: readonly Finding[];
  readonly tasks: readonly {
    readonly number: number;
    readonly future: string;
    readonly polls: number;
    readonly wakes: number | null;
    readonly wakes_at_least: boolean;
    readonly first_poll_ns: number;
  }[];
}

/** The fault, its finding, the Future that it names, and how much it was at least. */
const faults = [
  ['blocks', 'long-poll', 'faults::blocks', 300e6],
  ['late', 'woken-not-polled', 'faults::waits', 1500e6],
  ['loops', 'self-wake-loop', 'faults::loops', 500],
  ['idle', 'idle-polls', 'faults::waits', 500],
  ['dropped', 'dropped-pending', 'faults::waits', null],
  ['large', 'large-future', 'faults::large', 64 << 10],
] as const;

async function traced(
  mode: string,
  ...options: readonly string[]
): Promise<{ status: number | null; stdout: string; printed: string }> {
  const elf = pollsProgram(t, 'faults');
  const server = await gdbserver(t, elf, mode);
  const ran = await rsptrace('-r', server.address, ...options, '-o', `${elf}.pftrace`, elf).ended;
  return { status: ran.status, stdout: ran.stdout, printed: (await server.ended).stdout };
}

t.test('the trace says when the target stood: before the first poll, for trampolines', async (t) => {
  const elf = pollsProgram(t, 'faults');
  const server = await gdbserver(t, elf, 'blocks');
  const ran = await rsptrace('-r', server.address, '-o', `${elf}.pftrace`, elf).ended;
  t.equal(ran.status, 0, ran.stderr);
  const polls: number[] = [];
  const ended: { readonly from: number; readonly to: number }[] = [];
  let facts: TraceFacts | undefined;
  await readTrace(`${elf}.pftrace`, {
    ...{ begin() {}, hart() {}, flush() {} },
    event(one) {
      if (one.type === 'poll-begin') polls.push(one.time);
      if (one.type === 'poll-end' && one.begin) ended.push({ from: one.begin.time, to: one.time });
    },
    end(all) {
      facts = all;
    },
  });
  t.ok(facts?.probes.every(({ engine }) => engine === 'target'));
  const [at = -1, ...next] = facts?.recording?.stoppedAt?.map(Number) ?? [];
  t.ok(at >= 0 && at <= (polls[0] ?? 0), `${at}, the first poll at ${polls[0]}`);
  t.strictSame(next, [polls[0]], 'the first event behind that');
  // A budget is not broken by a poll in which it stood.
  const own = ended.filter(({ from, to }) => ![at, ...next].some((stood) => stood >= from && stood <= to));
  const [longest = 0, all] = [own, ended].map((each) => Math.max(...each.map(({ from, to }) => to - from)));
  t.ok(own.length < ended.length && longest > 0, `${own.length} of ${ended.length} polls, the longest ${longest} ns`);
  for (const [max, state] of [
    [longest, 'kept'],
    [longest - 1, 'broken'],
  ] as const) {
    writeFileSync(`${elf}.json`, JSON.stringify({ times: { 'poll:**': { max: `${max}ns` } } }));
    const checked = await rsptrace('check', `${elf}.pftrace`, '--budget', `${elf}.json`, '--json').ended;
    const [verdict] = (JSON.parse(checked.stdout) as { verdicts: { state: string; value: number; measured: string }[] })
      .verdicts;
    t.match(verdict, { state, value: longest });
    t.equal(verdict?.measured.includes('in which the target stood'), max < (all ?? 0) && longest < (all ?? 0));
  }
});

for (const [mode, kind, future, least] of faults) {
  t.test(`${mode}: ${kind}, and nothing else`, async (t) => {
    const { status, stdout, printed } = await traced(mode, '--json', '--findings', 'error');
    t.equal(status, 4, 'findings are the exit status');
    const { findings, tasks } = JSON.parse(stdout) as Output;
    const [finding, ...others] = findings;
    t.strictSame(others, []);
    t.match(finding, { kind, future, task: 3, file: '/native/faults.rs' });
    t.ok((finding?.line ?? 0) > 80);
    if (least === null) t.equal(finding?.worst, null);
    else t.ok((finding?.worst ?? 0) >= least, `${finding?.worst}`);
    t.ok((finding?.times_ns.length ?? 0) >= 1);
    const first = tasks.find(({ number }) => number === 3)?.first_poll_ns ?? 0;
    t.ok(finding?.times_ns.every((time) => time >= first));
    const booked = [...printed.matchAll(/^task (\w+) polls=(\d+) wakes=(\d+)$/gm)].map(([, , polls, wakes]) => [
      Number(polls),
      Number(wakes),
    ]);
    // What is woken after its Future was dropped is no task any more.
    const of = mode === 'dropped' ? booked.slice(0, 2) : booked;
    t.strictSame(
      tasks.slice(0, of.length).map(({ polls, wakes }) => [polls, wakes]),
      of,
    );
    t.ok(tasks.every(({ wakes_at_least }) => !wakes_at_least));
  });
}

t.test('clean: no finding, and no exit status', async (t) => {
  const { status, stdout } = await traced('clean', '--json', '--findings', 'error');
  t.equal(status, 0);
  t.strictSame((JSON.parse(stdout) as Output).findings, []);
});

t.test('as text, and left out', async (t) => {
  const { status, stdout } = await traced('loops');
  t.equal(status, 0);
  t.match(
    stdout,
    /^1 finding\n {2}task 3, faults::loops at \/native\/faults\.rs:\d+: it woke itself in 500 polls in a row/m,
  );
  t.notMatch((await traced('loops', '--findings', 'off')).stdout, /1 finding/);
});
