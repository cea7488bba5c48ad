// Lives of Futures, from first poll to end: against sums over the same events.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type AwaitLink,
  type ReportRow,
  reportBy,
  reportTable,
  type StateRef,
  type TraceEvent,
} from '../../../src/trace/index.js';
import { futures, link, linked, nanos, stories, suspend0, suspend1, tell, unresumed } from '../stories.js';

const [a] = futures;
const root = { key: 1, future: a, address: addr(0x1000n) };
const at = { hart: 0, root, future: a, address: root.address, depth: 0 };
const begin = (time: number, state: StateRef | undefined, of = at): TraceEvent => {
  return { type: 'poll-begin', ...of, time: nanos(time), state };
};
const end = (time: number, began: number, result: 'ready' | 'pending', of = at): TraceEvent => {
  const state = result === 'ready' ? undefined : suspend0;
  return { type: 'poll-end', ...of, time: nanos(time), began: nanos(began), result, state, chain: [] };
};

function rowsOf(events: readonly TraceEvent[]): ReportRow[] {
  const report = reportBy('latency');
  tell(report, linked([...events]));
  return report.rows();
}

t.test('a life, in its polls and between them', async (t) => {
  const [row, ...others] = rowsOf([
    begin(0, unresumed),
    end(10, 0, 'pending'),
    begin(100, suspend0),
    end(130, 100, 'ready'),
  ]);
  t.same(others, []);
  t.match(row, { name: a.future, calls: 1, lost: 0, total: 130, self: 40, waiting: 90 });
  const table = reportTable([row as ReportRow], 'future', { color: false, width: 120 });
  t.match(table, /^calls +total +busy +waiting +avg +p50 +p99 +max .*\n +1 +130 ns +40 ns +90 ns +130 ns/);
});

t.test('the next one at the same place, one that was dropped, and one that still lives', async (t) => {
  const life = [begin(0, unresumed), end(10, 0, 'ready')];
  const next = [begin(20, unresumed), end(25, 20, 'pending')];
  const dropped: TraceEvent = {
    ...{ type: 'cancelled', time: nanos(30), hart: 0, root, future: a, address: root.address, state: suspend0 },
    ...{ by: undefined, caller: { function: undefined, file: undefined, line: undefined } },
  };
  t.match(rowsOf([...life, ...next]), [{ calls: 2, lost: 1, total: 10, waiting: 0 }]);
  t.match(rowsOf([...life, ...next, dropped]), [{ calls: 2, lost: 1, total: 10 }]);
  const late = [begin(40, unresumed), end(47, 40, 'ready')];
  t.match(rowsOf([...life, ...next, ...late]), [{ calls: 3, lost: 1, total: 17, self: 17 }]);
});

t.test('one whose first poll was before the trace has no time', async (t) => {
  t.match(rowsOf([begin(0, suspend0), end(10, 0, 'ready')]), [{ calls: 1, lost: 1, total: 0 }]);
});

t.test('of one without states, a poll whose result is not known may have been the last of a life', async (t) => {
  const unknown = (time: number, began: number): TraceEvent =>
    ({ ...end(time, began, 'ready'), result: 'unknown' }) as TraceEvent;
  const [first] = rowsOf([begin(0, undefined), unknown(10, 0)]);
  t.match(first, { calls: 1, bound: undefined });
  const [again] = rowsOf([begin(0, undefined), unknown(10, 0), begin(20, undefined), unknown(30, 20)]);
  t.match(again, { calls: 1, bound: 'inlined' });
  const [pending] = rowsOf([begin(0, undefined), end(10, 0, 'pending'), begin(20, undefined), unknown(30, 20)]);
  t.match(pending, { calls: 1, bound: undefined });
});

t.test('the Future around one that awaits shows that its poll was not the last', async (t) => {
  const [outer, inner, innermost] = futures;
  const task = { key: 1, future: outer, address: addr(0x1000n) };
  const around = { ...at, root: task };
  const inside = { ...around, future: inner, address: addr(0x1010n), depth: 1 };
  const poll = (time: number, chain: readonly AwaitLink[]): TraceEvent[] => [
    begin(time, suspend0, around),
    begin(time + 1, undefined, inside),
    { ...end(time + 8, time + 1, 'pending', inside), result: 'unknown' } as TraceEvent,
    { ...end(time + 9, time, 'pending', around), chain } as TraceEvent,
  ];
  const boundOf = (chain: readonly AwaitLink[]): unknown => {
    const rows = rowsOf([...poll(0, chain), ...poll(20, chain)]);
    return rows.find(({ name }) => name === inner.future)?.bound;
  };
  // As a trace that was read back has them: without addresses.
  t.equal(boundOf([link(undefined, inner.future, suspend1), link(innermost, innermost.future, undefined)]), undefined);
  t.equal(boundOf([link(undefined, inner.future, suspend1)]), 'inlined');
  t.equal(boundOf([]), 'inlined');
});

t.test('in any story each life is counted once, and is its polls and its waits', () => {
  fc.assert(
    fc.property(stories, ({ events }) => {
      for (const { calls, lost, total, self, waiting = 0, durations } of rowsOf(events)) {
        assert.equal(calls, durations.count + lost);
        assert.equal(total, self + waiting);
        assert.ok(self >= 0 && waiting >= 0, `${self} ${waiting}`);
      }
    }),
  );
  return Promise.resolve();
});

t.test('one that lives through a gap may be another one afterwards', async (t) => {
  const gap: TraceEvent = { type: 'gap', from: nanos(20), to: nanos(90) };
  const life = [begin(0, unresumed), end(10, 0, 'pending'), gap, begin(100, suspend0), end(130, 100, 'ready')];
  t.match(rowsOf(life), [{ calls: 1, lost: 1, total: 0 }]);
});
