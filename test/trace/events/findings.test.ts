// What is found in tasks whose faults are made, and that tasks without one have none.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { addedText, Longest } from '../../../src/check/longest.js';
import {
  type Disturbance,
  type Finding,
  Findings,
  findingsText,
  type RecordingFacts,
  type RootRef,
  type StateRef,
  TaskSummary,
  type TraceEvent,
  type TraceFacts,
  tee,
} from '../../../src/trace/index.js';
import { future, futures, info, nanos, returned, suspend0, suspend1, tell, unresumed } from '../stories.js';

const limits = { longPollNs: 10_000_000 };

function find(events: readonly TraceEvent[], isTimed = true): Finding[] {
  const [tasks, findings] = [new TaskSummary(), new Findings(limits)];
  tell(tee([tasks, findings]), events);
  const all = () => findings.all(tasks.rows('all'), { isTimed, seesWakes: true }, (root) => tasks.numberOf(root));
  const first = all();
  t.strictSame(all(), first, 'as often as one asks');
  return first;
}

const root: RootRef = { key: 3, future: futures[0], address: addr(0x1000) };

/** One poll of a task, with a wake in it where it is woken. */
function poll(
  begin: number,
  end: number,
  more: Partial<{ root: RootRef; to: StateRef; by: RootRef }> = {},
): TraceEvent[] {
  const { root: whose = root, to = suspend0, by } = more;
  const of = { hart: 0, root: whose, future: whose.future, address: whose.address, depth: 0 } as const;
  const began = { type: 'poll-begin', ...of, time: nanos(begin), state: begin === 0 ? unresumed : suspend0 } as const;
  const result = to === returned ? 'ready' : 'pending';
  return [
    began,
    ...(by ? [wake(begin + 1, whose, by)] : []),
    { type: 'poll-end', ...of, time: nanos(end), begin: began, began: began.time, result, state: to, chain: [] },
  ];
}

const caller = { function: 'a', file: 'src/a.rs', line: 1 };
const wake = (time: number, whose: RootRef, by?: RootRef): TraceEvent => ({
  ...{ type: 'wake', time: nanos(time), hart: 0, waker: whose.address, root: whose, by, caller },
});

t.test('clean tasks have no finding', async (t) => {
  const ready = [
    ...poll(0, 50),
    wake(60, root),
    ...poll(70, 9_999_000),
    wake(1e7, root),
    ...poll(5e8, 5e8 + 1e6, { to: returned }),
  ];
  t.same(find(ready), []);
  // It yields often, and comes on.
  const yields = Array.from({ length: 300 }, (_, i) =>
    poll(i * 10, i * 10 + 5, { by: root, to: i % 9 ? suspend0 : suspend1 }),
  );
  t.same(find(yields.flat()), []);
  // Others wake it, at the same await.
  t.same(find(Array.from({ length: 300 }, (_, i) => [...poll(i * 10, i * 10 + 5), wake(i * 10 + 7, root)]).flat()), []);
});

t.test('a poll that blocks: the innermost Future that took so long, by the line where it was resumed', async (t) => {
  const inner = { hart: 0, root, future: futures[1], address: addr(0x1010), depth: 1 } as const;
  const began = { type: 'poll-begin', ...inner, time: nanos(10), state: suspend1 } as const;
  const end = { type: 'poll-end', ...inner, time: nanos(30_000_010), begin: began, began: began.time } as const;
  const [first, last] = poll(0, 30_000_100);
  const events = [first, began, { ...end, result: 'pending', state: suspend1, chain: [] }, last] as TraceEvent[];
  const more = [...events, ...poll(4e7, 4e7 + 12_000_000)];
  t.match(find(more), [
    { kind: 'long-poll', task: 1, future: 'b', file: 'src/b.rs', line: 25, count: 1, times_ns: [10], worst: 3e7 },
    {
      kind: 'long-poll',
      task: 1,
      future: 'a',
      file: 'src/a.rs',
      line: 12,
      count: 1,
      times_ns: [4e7],
      worst: 12_000_000,
    },
  ]);
  t.same(find(more, false), [], 'stops take time that is not its own');
  t.equal(find(poll(0, 9_999_999)).length, 0);
});

t.test('a panic that was caught: the innermost Future, by the line where it was resumed', async (t) => {
  const inner = { hart: 0, root, future: futures[1], address: addr(0x1010), depth: 1 } as const;
  const began = { type: 'poll-begin', ...inner, time: nanos(10), state: suspend1 } as const;
  const end = { type: 'poll-end', ...inner, time: nanos(20), begin: began, began: began.time } as const;
  const [first, last] = poll(0, 30);
  const panics = [first, began, { ...end, result: 'panicked', chain: [] }, { ...last, result: 'panicked' }];
  const found = find(panics as TraceEvent[]);
  t.match(found, [{ kind: 'panicked', task: 1, future: 'b', file: 'src/b.rs', line: 25, times_ns: [10], worst: null }]);
  t.equal(found.length, 1, 'not of those around it as well');
  t.match(findingsText(found), /task 1, b at src\/b.rs:25: it panicked in a poll that began there, at 10 ns/);
});

t.test('a task that wakes itself in a loop', async (t) => {
  const loop = (times: number) =>
    find(Array.from({ length: times }, (_, i) => poll(i * 10, i * 10 + 5, { by: root })).flat());
  t.same(loop(99), []);
  t.match(loop(150), [{ kind: 'self-wake-loop', task: 1, file: 'src/a.rs', line: 12, count: 51, worst: 150 }]);
});

t.test('a task that is woken, and that nobody polls', async (t) => {
  const late = [...poll(0, 5), wake(10, root), ...poll(1_500_000_010, 1_500_000_020)];
  t.match(find(late), [{ kind: 'woken-not-polled', count: 1, times_ns: [10], worst: 1.5e9 }]);
  const other = { ...root, key: 4, address: addr(0x2000) };
  const never = [
    ...poll(0, 5),
    wake(10, root),
    ...poll(20, 30, { root: other }),
    ...poll(2e9, 2e9 + 1, { root: other }),
  ];
  t.match(find(never), [{ kind: 'woken-not-polled', task: 1, count: 1, worst: 2e9 - 9 }], 'until the end');
  const soon = [...poll(0, 5), wake(10, root), ...poll(999_999_999, 1_000_000_000)];
  t.same(find(soon), []);
  const later = poll(3e9, 3e9 + 1, { root: other });
  const over = poll(20, 30, { to: returned, by: other });
  t.same(find([...poll(0, 5), ...over, wake(40, root), ...later]), [], 'nobody polls what is over');
  const [began] = over;
  const lost = { ...began, type: 'poll-lost', time: nanos(30), begin: began } as TraceEvent;
  t.same(find([...poll(0, 5), ...over.slice(0, 2), lost, ...later]), [], 'what becomes of it is not known');
  const inPoll = [...poll(0, 2e9, { by: other }), ...poll(2e9 + 10, 2e9 + 20)];
  t.same(
    find(inPoll).filter(({ kind }) => kind !== 'long-poll'),
    [],
    'it was being polled',
  );
});

t.test('what was woken before a reset or a gap waits until then', async (t) => {
  const other = { ...root, key: 4, address: addr(0x2000) };
  const here = { ...root, key: 5 };
  const woken = [...poll(0, 5), wake(10, root)];
  const later = [...poll(3e9, 3e9 + 1, { root: here }), ...poll(4e9, 4e9 + 1, { root: other })];
  const reset = (time: number): TraceEvent => ({ type: 'reset', time: nanos(time) });
  t.same(find([...woken, reset(1000), ...later]), [], 'no task of an earlier boot is dropped');
  t.match(find([...woken, reset(2e9), ...later]), [{ kind: 'woken-not-polled', worst: 2e9 - 10 }]);
  const gap: TraceEvent = { type: 'gap', from: nanos(20), to: nanos(2e9) };
  t.same(find([...woken, gap, ...poll(3e9, 3e9 + 1)]), [], 'it may have been polled');
});

t.test('a task that is dropped before it is ready, and one that is much larger than others', async (t) => {
  const next: RootRef = { ...root, key: 4 };
  t.match(find([...poll(0, 5), ...poll(20, 30, { root: next, to: returned })]), [
    { kind: 'dropped-pending', task: 1, file: 'src/a.rs', line: 12, times_ns: [20], worst: null },
  ]);
  const sized = (key: number, size: number): RootRef => ({
    ...{ key, future: { ...future(key, `f${key}`, key), size }, address: addr(0x1000 * key) },
  });
  const all = (sizes: number[]) =>
    find(sizes.flatMap((size, i) => poll(0, 5, { root: sized(i + 1, size), to: returned })));
  t.match(all([200, 300, 16_384, 400]), [{ kind: 'large-future', task: 3, future: 'f3', line: 3, worst: 16_384 }]);
  t.same(all([200, 300, 16_383]), []);
  t.same(all([16_384, 16_500, 17_000]), [], 'all are as large');
});

t.test('the text names the task, the Future and the line', async (t) => {
  t.equal(findingsText([]), '');
  const many = find(poll(0, 12_000_000));
  t.equal(
    findingsText(many),
    '1 finding\n  task 1, a at src/a.rs:10: 1 poll took up to 12.0 ms, in which no other task of its thread ran; first at 0 ns\n',
  );
  const lines = findingsText(Array.from({ length: 25 }, (_, i) => ({ ...(many[0] as Finding), future: `f${i}` })))
    .trimEnd()
    .split('\n');
  t.equal(lines.length, 22);
  t.equal(lines.at(-1), '  ... and 5 more: --json has them');
});

t.test('tasks that their runtime drops, in no task, are one line', async (t) => {
  const [one] = find([...poll(0, 5), ...poll(20, 30, { root: { ...root, key: 4 }, to: returned })]);
  if (!one) throw new Error('nothing was found');
  const by = 'no task, in tokio::runtime::task::core::Core::set_stage at src/core.rs:5';
  const aborted = [1, 2, 3].map((task) => ({ ...one, task, by }));
  t.equal(
    findingsText([...aborted, { ...one, by: 'itself, in a::b' }]),
    '4 findings\n  task 1, a at src/a.rs:12: it was dropped before it was ready, at 20 ns by itself, in a::b\n' +
      '  3 tasks were dropped before they were ready, by the runtime, as at abort() and at its own end: a\n',
  );
});

t.test('findings that are made of time, where stops took some of it', async (t) => {
  const findings = new Findings(limits);
  tell(findings, [...poll(0, 20_000_000), wake(3e7, root), ...poll(2e9, 2e9 + 1e6, { to: returned })]);
  t.equal(findings.leftOut({ isTimed: false }), 2, 'a long poll and a late one');
  t.equal(findings.leftOut({ isTimed: true }), 0);
  t.equal(
    findingsText([], 2),
    '2 findings about long polls or waits are left out: stops take time, too (--long-poll TIME reports them)\n',
  );
  t.equal(findingsText([]), '');
});

t.test('polls in which tracing took time count without that, or not at all', async (t) => {
  const findings = new Findings(limits);
  tell(findings, [...poll(0, 20e6), ...poll(30e6, 45e6), ...poll(50e6, 90e6, { to: returned })]);
  const seen = (disturbance: Disturbance): unknown[] =>
    findings
      .all([], { ...disturbance, isTimed: true, seesWakes: true }, () => 1)
      .map(({ count, worst, times_ns }) => [count, worst, times_ns]);
  t.strictSame(seen({}), [[3, 40e6, [0, 30e6, 50e6]]]);
  // It stood at the first begin, and at an end.
  t.strictSame(seen({ stoppedAt: [0, 90e6] }), [[1, 15e6, [30e6]]]);
  // Between two polls it took nothing from either.
  t.strictSame(seen({ stoppedAt: [25e6, 31e6] }), [[2, 40e6, [0, 50e6]]]);
  // Any of them may have waited so long: what is left was surely its own.
  t.strictSame(seen({ ringWaitedNs: 10e6 }), [[2, 30e6, [0, 50e6]]]);
  t.strictSame(seen({ stoppedAt: [50e6], ringWaitedNs: 10e6 }), [[1, 10e6, [0]]]);
  t.equal(findings.leftOut({ isTimed: true, stoppedAt: [50e6], ringWaitedNs: 10e6 }), 0);
  t.equal(findings.leftOut({ isTimed: true, ringWaitedNs: 40e6 }), 1);
  t.equal(
    findingsText([], 1, true),
    '1 finding about long polls or waits is left out: the target stood in them, or waited for room, because it was traced\n',
  );
});

t.test('budgets of a longest time set aside the same, and are broken by what is left only', async (t) => {
  const lasted = [[0, 20e6] as const, [30e6, 15e6] as const, [50e6, 40e6] as const];
  const judged = (limit: number, recording: Partial<RecordingFacts>, stops = false): unknown[] => {
    const longest = new Longest(limit);
    for (const [from, ns] of lasted) longest.add({ from, ns, place: undefined });
    const probes = stops ? ([{ name: 'a', engine: 'stop' }] as const) : [];
    const facts = { probes, recording } as unknown as TraceFacts;
    const { state, longest: found, note } = longest.judged({ info, facts, now: 1e9, seen: new Set(), lacks: '' });
    return [state, found?.ns, note.replace(/ longer.*/, '')];
  };
  t.strictSame(judged(40e6, { stoppedAt: ['60000000'] }), ['kept', 40e6, '']);
  t.strictSame(judged(15e6, {}), ['broken', 40e6, '']);
  t.strictSame(judged(15e6, { stoppedAt: ['60000000'] }), ['broken', 20e6, ', without 1']);
  t.strictSame(judged(15e6, { stoppedAt: ['0', '90000000'] }), ['kept', 15e6, ', without 2']);
  t.strictSame(judged(14e6, { stoppedAt: ['0', '90000000', '31000000'] }), ['unseen', undefined, ', without 3']);
  // Where probes stop the target, all times are as they are.
  t.strictSame(judged(15e6, { stoppedAt: ['0', '90000000'] }, true), ['broken', 40e6, '']);
  // Any of them may have waited so long.
  t.strictSame(judged(15e6, { ringWaitedNs: 24e6 }), ['broken', 16e6, ', without 1']);
  t.strictSame(judged(15e6, { ringWaitedNs: 30e6 }), ['unseen', 15e6, ', without 2']);
  const recording = { stoppedAt: ['0', '90000000'], ringWaitedNs: 30e6 };
  const facts = { probes: [], recording } as unknown as TraceFacts;
  t.equal(
    addedText({ info, facts, now: 1e9, seen: new Set(), lacks: '' }),
    ', with what tracing added: the target stood 2 times and waited 30.0 ms for room, which max sets aside',
  );
});

t.test('the same of several tasks is one line', async (t) => {
  const others = [3, 4, 5, 6, 7].map((key): RootRef => ({ ...root, key, address: addr(0x1000 * key) }));
  const panics = others.flatMap((whose, i) => {
    const [begin, end] = poll(100 * i + 10, 100 * i + 20, { root: whose });
    return [begin, { ...end, result: 'panicked' }] as TraceEvent[];
  });
  const late = others.slice(0, 2).map((whose, i) => poll(1e9, 1e9 + 2e7 + i, { root: whose }));
  const text = findingsText(find([...panics, ...late.flat()]));
  t.match(text, /^7 findings$/m);
  t.match(text, /^ {2}5 tasks \(1, 2, 3 and 2 more\), a at src\/a\.rs:12: each panicked in a poll .*, at 10 ns,/m);
  t.match(text, /^ {2}2 tasks \(\d, \d\), a at src\/a\.rs:12: 2 polls took up to 20\.0 ms/m);
  t.equal(text.trimEnd().split('\n').length, 3);
});
