import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { errorOf } from '../../../src/trace/events/summary.js';
import {
  namesBound,
  type PollEnd,
  type StopError,
  Summary,
  type SummaryRow,
  summaryJson,
  summaryTable,
  type TraceEvent,
  type TraceSink,
  tee,
  timeText,
} from '../../../src/trace/index.js';
import { random } from '../../support/fault-proxy.js';
import { futures, info, linked, nanos, type Story, stories, tell } from '../stories.js';

function summarize(events: readonly TraceEvent[]): SummaryRow[] {
  const summary = new Summary();
  tell(summary, events);
  return summaryJson(summary.rows());
}

/** Whether a poll that ended without a result was pending, by the first later event that says it. */
function wasPending({ future, address }: PollEnd, later: readonly TraceEvent[]): boolean {
  const isSuspended = (state: { readonly name: string } | undefined) => /^Suspend/.test(state?.name ?? '');
  for (const event of later) {
    if (event.type === 'gap') return false;
    if (event.type !== 'poll-begin' && event.type !== 'poll-end') continue;
    const isSame = event.future.key === future.key && event.address === address;
    if (isSame) return event.type === 'poll-begin' && isSuspended(event.state);
    if (event.type === 'poll-begin' || event.result !== 'pending') continue;
    const states = [event.state, ...event.chain.map(({ state }) => state)];
    const isAwaited = event.chain.some((link, i) => {
      const isOf = link.future?.key === future.key && link.address === address;
      return isOf && isSuspended(link.state ?? states[i]);
    });
    if (isAwaited) return true;
  }
  return false;
}

/** The same table, counted from what happened and not from events. */
function expected(told: Story): SummaryRow[] {
  const lateOf = (key: number) =>
    told.events.filter((event, i) => {
      if (event.type !== 'poll-end' || event.result !== 'unknown' || event.future.key !== key) return false;
      return wasPending(event, told.events.slice(i + 1));
    }).length;
  const rows = futures.map((future): SummaryRow => {
    const polls = told.polls.filter((poll) => poll.future === future);
    const derived = told.instants.filter((it) => it.derivedPoll !== undefined && it.future === future);
    const results = [...polls.map((poll) => poll.result), ...derived.map((it) => it.derivedPoll)];
    const count = (result: string) => results.filter((it) => it === result).length;
    const timed = polls.filter((poll) => poll.end !== undefined && poll.result !== 'lost');
    const spans = (list: typeof polls) => list.map((poll) => (poll.end ?? 0) - poll.begin);
    const outermost = timed.filter((poll) => !poll.around.some((outer) => timed.includes(outer)));
    return {
      future: future.future,
      instance: future.instance,
      kind: future.kind,
      file: future.file ?? null,
      line: future.line ?? null,
      polls: polls.length + derived.length,
      ready: count('ready'),
      pending: count('pending') + lateOf(future.key),
      panicked: count('panicked'),
      cancelled: 0,
      cancelled_at_least: false,
      derived: derived.length,
      lost: count('lost'),
      unknown: count('unknown') - lateOf(future.key),
      at_least: derived.length > 0,
      probe_left_out: false,
      total_ns: spans(outermost).reduce((sum, span) => sum + span, 0),
      max_ns: Math.max(0, ...spans(timed)),
    };
  });
  return rows.filter((row) => row.polls > 0);
}

t.test('the summary counts what happened', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(stories, (told) => {
        assert.deepEqual(summarize(told.events), expected(told));
      }),
      { seed: 20_26, numRuns: 200 },
    ),
  );
});

const root = { key: 0, future: futures[0], address: addr(0x1000) };
const at = (time: number, depth: number, whose = futures[0]) =>
  ({
    time: nanos(time),
    hart: 0,
    root,
    future: whose,
    address: addr(0x1000 + depth),
    depth,
    state: undefined,
  }) as const;
const began = (time: number, depth: number): TraceEvent => ({ type: 'poll-begin', ...at(time, depth) });
const ended = (time: number, depth: number, since = 0): TraceEvent => ({
  type: 'poll-end',
  ...at(time, depth),
  began: nanos(since),
  result: 'pending',
  chain: [],
});

const lost = (time: number, depth: number, since: number): TraceEvent => ({
  type: 'poll-lost',
  ...at(time, depth),
  began: nanos(since),
});
const of = (...events: TraceEvent[]): SummaryRow[] => summarize(linked(events));

t.test('a Future that polls its own kind: total time counts once, as in uftrace report', async (t) => {
  const inner = [began(10, 1), ended(40, 1, 10), began(50, 1), ended(60, 1, 50)];
  t.match(of(began(0, 0), ...inner, ended(100, 0)), [{ polls: 3, pending: 3, total_ns: 100, max_ns: 100 }]);
  t.match(of(began(0, 0), ...inner, lost(100, 0, 0)), [{ polls: 3, pending: 2, lost: 1, total_ns: 40, max_ns: 30 }]);
  t.match(of(began(0, 0), ...inner), [{ polls: 3, pending: 2, lost: 0, total_ns: 40, max_ns: 30 }]);
});

t.test('ends without begins do not count; polls that are open or lost have no time', async (t) => {
  t.same(of(ended(40, 0)), []);
  t.same(of(lost(40, 0, 0)), []);
  t.match(of(began(40, 0)), [{ polls: 1, pending: 0, lost: 0, total_ns: 0 }]);
  t.match(of(began(0, 0), lost(40, 0, 0), began(40, 0), ended(50, 0, 40)), [
    { polls: 2, pending: 1, lost: 1, total_ns: 10 },
  ]);
  // An end at depth 0 of another Future than the one that began there: one end and one begin are missing.
  const other: TraceEvent = { ...ended(50, 0), ...at(50, 0, futures[1]) };
  t.match(of(began(0, 0), other), [{ future: 'a', polls: 1, pending: 0, lost: 0 }]);
});

t.test('a poll that was told as lost, and has ended after all, is lost no more', async (t) => {
  const late = { ...ended(70, 0), wasLost: true } as TraceEvent;
  t.match(of(began(0, 0), lost(40, 0, 0), late), [{ polls: 1, pending: 1, lost: 0, total_ns: 70, max_ns: 70 }]);
});

const row = (future: string, more: Partial<SummaryRow>): SummaryRow => ({
  future,
  instance: future,
  kind: 'async_fn',
  file: 'src/work.rs',
  line: 12,
  polls: 1,
  ready: 1,
  pending: 0,
  panicked: 0,
  cancelled: 0,
  cancelled_at_least: false,
  derived: 0,
  lost: 0,
  unknown: 0,
  at_least: false,
  probe_left_out: false,
  total_ns: 0,
  max_ns: 0,
  ...more,
});

t.test('rows for machines are sorted by future, then instance', async (t) => {
  const names = (rows: SummaryRow[]) => rows.map(({ future, instance }) => `${future} ${instance}`);
  const rows = [row('b', {}), row('a', { instance: 'a<u8>' }), row('B', {}), row('a', { instance: 'a<i8>' })];
  t.same(names(summaryJson(rows)), ['B B', 'a a<i8>', 'a a<u8>', 'b b']);
  t.equal(rows[0]?.future, 'b', 'the rows given stay as they were');
});

t.test('the table for people', async (t) => {
  const rows = [
    row('labkern::work::level1', { polls: 1200, pending: 1199, total_ns: 12_345, max_ns: 999 }),
    row('labkern::work::level2', { total_ns: 99_999_999, max_ns: 1_999_960, file: null, line: null }),
    row('labkern::gen', { instance: 'labkern::gen::{async_fn_env#0}<u8>', derived: 1, line: 7 }),
    row('labkern::gen', { instance: 'labkern::gen::{async_fn_env#0}<u16>' }),
  ];
  const wide = [
    'polls  ready  pending  derived     total  longest  future                 file:line',
    '    1      1        0        0  100.0 ms   2.0 ms  labkern::work::level2',
    ' 1200      1     1199        0   12.3 us   999 ns  labkern::work::level1  src/work.rs:12',
    '    1      1        0        0      0 ns     0 ns  labkern::gen<u16>      src/work.rs:12',
    '    1      1        0        1         -        -  labkern::gen<u8>       src/work.rs:7',
  ];
  t.equal(summaryTable(rows, { color: false, width: 200 }), `${wide.join('\n')}\n`);
  const narrow = summaryTable(rows, { color: false, width: 87 }).split('\n');
  t.ok(narrow.every((line) => line.length <= 87));
  t.match(narrow[2], / …bkern::work::level1 {2}src\/work\.rs:12$/);
  const narrowest = summaryTable(rows, { color: false, width: 10 }).split('\n');
  t.match(narrowest[2], /^ 1200 .* …ork::level1 {2}…\/work\.rs:12$/);
  const colored = summaryTable(rows, { color: true, width: 200 });
  t.equal(colored.replace('\x1b[1m', '').replace('\x1b[0m', ''), `${wide.join('\n')}\n`);
  t.ok(colored.startsWith('\x1b[1m') && colored.split('\n')[0]?.endsWith('\x1b[0m'));
  t.equal(summaryTable([], { color: false, width: 80 }), 'no polls were recorded\n');
});

t.test('cancelled: a lower bound where records of a Future were lost, as its drops may be among them', async (t) => {
  const root = { key: 1, address: addr(0x1000n), future: futures[1] } as unknown as PollEnd['root'];
  const future = futures[0] as (typeof futures)[number];
  const at = { hart: 0, root, future, address: root.address, time: nanos(1) };
  const summary = new Summary();
  summary.event({ type: 'cancelled', ...at, state: undefined, by: undefined, caller: {} } as unknown as TraceEvent);
  const told = (missing: number) => {
    const fact = { name: future.future, address: addr(0x10n), engine: 'target', why: undefined } as const;
    return summary
      .rows(undefined, namesBound([fact], { missing }))
      .map((row) => [row.cancelled, row.cancelled_at_least]);
  };
  t.same([told(0), told(2)], [[[1, false]], [[1, true]]]);
});

t.test('drops that leave no mark are told with the column of cancelled ones, and without', async (t) => {
  const wide = { color: false, width: 200 };
  const hidden = { cancelled_at_least: true, polls: 2, pending: 1 };
  const names = ['d', 'c', 'b', 'a'];
  const some = names.map((name) => row(name, hidden));
  t.match(
    summaryTable(some, wide),
    /^no Future was seen to be dropped before .* of these that would not be seen, .*: a, b, c and 1 more\n$/m,
  );
  // Whatever was ready each time was not dropped before, and the others' drops are seen.
  const sure = [row('ready', { ...hidden, ready: 2, pending: 0 }), row('seen', { polls: 2, pending: 1 })];
  t.notMatch(summaryTable(sure, wide), /no mark/);
  const counted = summaryTable([...some, row('e', { cancelled: 1 })], wide);
  t.match(counted, /^cancelled: dropped before .* leave no mark/m);
  t.notMatch(counted, /no drop/);
});

t.test('cancelled: a Future written by hand that a task holds does not show it', async (t) => {
  const byHand = { ...futures[0], key: 90, kind: 'impl' } as (typeof futures)[number];
  const ref = { key: 1, address: addr(0x1000n), future: futures[1] } as unknown as PollEnd['root'];
  const own = { key: 2, address: addr(0x1000n), future: byHand } as unknown as PollEnd['root'];
  const polled = (root: PollEnd['root'], result: PollEnd['result']): SummaryRow[] => {
    const at = { hart: 0, depth: 0, root, future: byHand, address: addr(0x1000n), state: undefined };
    const begin = { type: 'poll-begin', time: nanos(1), ...at };
    return summarize(
      linked([begin, { type: 'poll-end', time: nanos(2), ...at, began: nanos(1), result, chain: [] }] as TraceEvent[]),
    );
  };
  t.match(polled(ref, 'pending'), [{ cancelled: 0, cancelled_at_least: true }]);
  t.match(polled(ref, 'ready'), [{ cancelled_at_least: false }], 'it was ready each time');
  t.match(polled(own, 'pending'), [{ cancelled_at_least: false }], 'as a task its drop is seen');
  const rows = [...polled(ref, 'pending'), row('seen', { cancelled: 1 })];
  const table = summaryTable(rows, { color: false, width: 200 });
  t.match(table, /^ +1 +0 +1 +- /m);
  t.match(table, /^a Future written by hand inside a task does not show/m);
  t.notMatch(table, /inlined, left out or lost/);
});

t.test('polls without a result are told where a row has some', async (t) => {
  const wide = { color: false, width: 200 };
  const lost = row('lost', { polls: 3, lost: 2 });
  t.notMatch(summaryTable([lost], wide), /neither/);
  const told = summaryTable([lost, row('inlined', { polls: 2, ready: 0, pending: 1, unknown: 1 })], wide);
  t.match(told, /^of some polls .* neither ready nor pending \(>=\)/m);
  t.match(told, /^ +2 +>=0 +>=1 /m, 'its polls are exact, their results lower bounds');
});

t.test('times for people', async (t) => {
  const cases: [number, string][] = [
    [0, '0 ns'],
    [999, '999 ns'],
    [1000, '1.0 us'],
    [12_345, '12.3 us'],
    [999_949, '999.9 us'],
    [999_951, '1.0 ms'],
    [1_250_000_000, '1.3 s'],
    [86_400_000_000_000, '86400.0 s'],
  ];
  for (const [nanos, text] of cases) t.equal(timeText(nanos), text);
});

t.test('a tee gives every sink everything, and then the first error', async (t) => {
  const seen: string[] = [];
  const sink = (name: string, fails: boolean): TraceSink => {
    const note = (what: string) => {
      seen.push(`${name} ${what}`);
      if (fails) throw new Error(`${name} fails`);
    };
    return {
      begin: () => note('begin'),
      event: () => note('event'),
      hart: () => note('hart'),
      flush: () => note('flush'),
      end: () => note('end'),
    };
  };
  const both = tee([sink('x', false), sink('y', true), sink('z', true)]);
  t.throws(() => both.begin(info), { message: 'y fails' });
  t.throws(() => both.hart({ number: 3, name: 'hart 3' }), { message: 'y fails' });
  t.throws(() => both.event(began(0, 0)), { message: 'y fails' });
  t.throws(() => both.flush(), { message: 'y fails' });
  t.throws(() => both.end(), { message: 'y fails' });
  t.same(
    seen,
    ['begin', 'hart', 'event', 'flush', 'end'].flatMap((what) => ['x', 'y', 'z'].map((name) => `${name} ${what}`)),
  );
});

t.test('what stops have left in times is told with its unit, and as a bound where it is as large', (t) => {
  const events = Array.from({ length: 50 }, (_, poll) => [
    began(poll * 10_000, 0),
    ended(poll * 10_000 + 1000, 0, poll * 10_000),
  ]);
  const summary = new Summary();
  tell(summary, linked(events.flat()));
  const cells = (error: StopError): [SummaryRow, string] => {
    const [one] = summary.rows(error);
    if (!one) throw new Error('no row');
    const text = summaryTable([one], { width: 200, color: false }).split('\n')[1] ?? '';
    return [one, text];
  };
  // 100 events: 1.25 ticks by the root of 100. What was seen of 50 times 1000 ns is wrong by that at most.
  const [small, smallText] = cells({ tickNs: 100, isUnknown: false });
  t.match(small, { total_ns: 50_000, total_error_ns: 1250 });
  t.match(smallText, / 50\.0 us \+- 1\.3 +1\.0 us /);
  t.match(cells({ tickNs: 4000, isUnknown: false })[1], / < 100\.0 us +1\.0 us /, 'not 50.0 us +- 50.0');
  const [bound, boundText] = cells({ tickNs: 100, isUnknown: true });
  t.match(bound, { total_ns: 50_000, times_at_most: true, max_ns: 1000 });
  t.notOk('total_error_ns' in bound);
  t.match(boundText, / < 50\.0 us +< 1\.0 us /);
  t.match(cells({ tickNs: 60_000, isUnknown: true })[1], / < 60\.0 us +< 60\.0 us /, 'nothing is less than a tick');
  t.end();
});

t.test('the error of a total holds for times that a clock cuts off to its ticks', (t) => {
  const chance = random(27);
  let held = 0;
  for (let total = 1; total <= 1000; total++) {
    let error = 0;
    for (let span = 0; span < total; span++) {
      // It begins anywhere within a tick, because what a stop adds is any time of the host.
      const [begin, length] = [chance() * 100, chance() * 400];
      error += Math.floor((begin + length) / 100) * 100 - length;
    }
    if (Math.abs(error) <= errorOf(total, 100)) held++;
  }
  // Three standard deviations: 99.7 %.
  t.ok(held >= 990, `it held ${held} times of 1000`);
  t.end();
});
