// Lives of Futures, from first poll to end: against sums over the same events.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { type ReportRow, reportBy, reportTable, type StateRef, type TraceEvent } from '../../../src/trace/index.js';
import { futures, linked, nanos, stories, suspend0, tell, unresumed } from '../stories.js';

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
