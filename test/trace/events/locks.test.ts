// Who holds what, and who waits for whom, from made-up uses of locks.
import t from 'tap';
import { addr, hex } from '../../../src/base/addr.js';
import {
  type CallBegin,
  type FunctionRef,
  LockSummary,
  lockArguments,
  lockRef,
  lockTable,
  releaseName,
  type TraceEvent,
  type TraceInfo,
} from '../../../src/trace/index.js';
import { nanos } from '../stories.js';

function lockOf(key: number): FunctionRef {
  const address = addr(BigInt(0x1000 * key));
  return lockRef(`L${key}`, { key, type: 'Mutex', address, file: undefined, line: undefined });
}
const [a, b] = [lockOf(1), lockOf(2)];

interface Use {
  readonly of: FunctionRef;
  readonly hart?: number;
  readonly isShared?: boolean;
  readonly isAttempt?: boolean;
}

function enters({ of, hart = 0, isShared = false, isAttempt = false }: Use, time: number): CallBegin {
  const use = { lock: hex(of.address), isShared, isAttempt, by: `f at a.rs:${time}` };
  return { type: 'call-begin', time: nanos(time), hart, function: of, depth: 0, arguments: lockArguments(use) };
}

function gets(begin: CallBegin, time: number, result = 'taken'): TraceEvent {
  const { hart, function: fn, time: began } = begin;
  return { type: 'call-end', time: nanos(time), hart, function: fn, depth: 0, began, begin, result };
}

function takes(use: Use, time: number): TraceEvent[] {
  const begin = enters(use, time);
  return [begin, gets(begin, time + 1)];
}

function releases(of: FunctionRef, time: number, hart = 0): TraceEvent {
  const by = { function: 'f', file: undefined, line: undefined };
  const { address } = of;
  const place = { key: 0, name: releaseName(of, undefined), category: 'lock', address, lock: hex(address), by };
  return { type: 'place', time: nanos(time), hart, place };
}

function summaryOf(events: readonly TraceEvent[]): LockSummary {
  const summary = new LockSummary();
  for (const event of events) summary.event(event);
  return summary;
}

t.test('a time that is an upper bound is a tick of the clock at least', async (t) => {
  const summary = new LockSummary();
  summary.begin({ clock: { resolutionNs: 100 } } as TraceInfo);
  const begin = enters({ of: a }, 5);
  for (const event of [begin, gets(begin, 5), releases(a, 5), enters({ of: b, hart: 1 }, 7)]) summary.event(event);
  const none = { waited_ns: 0, max_wait_ns: 0, held_ns: null, max_held_ns: null };
  t.match(summary.rows(), [{ taken: 1, waited_ns: 0, held_ns: 0 }, none]);
  const least = { waited_ns: 100, max_wait_ns: 100, held_ns: 100, max_held_ns: 100 };
  t.match(summary.rows(true), [least, none], 'where nothing was taken there is no time');
});

t.test('a wait is contended by whoever holds the lock then, or gets it meanwhile', async (t) => {
  const waits = enters({ of: a, hart: 1 }, 5);
  const [row] = summaryOf([...takes({ of: a }, 0), waits, releases(a, 20), gets(waits, 22), releases(a, 30, 1)]).rows();
  t.match(row, { taken: 2, contended: 1, waited_ns: 18, max_wait_ns: 17, held_ns: 27, max_held_ns: 19 });
  t.match(row?.contention, [{ holder: 'f at a.rs:0', waiter: 'f at a.rs:5', count: 1, waited_ns: 17 }]);
});

t.test('a handler that takes the lock on the hart of one that is about to take it is no contention', async (t) => {
  const waits = enters({ of: a }, 5);
  const nested = [...takes({ of: a }, 6), releases(a, 9)];
  t.match(summaryOf([waits, ...nested, gets(waits, 22), releases(a, 30)]).rows(), [
    { taken: 2, contended: 0, contention: [] },
  ]);
  // Another thread of that hart held it before, so it was waited for.
  const behind = [...takes({ of: a, hart: 1 }, 0), waits, releases(a, 5.5, 1), ...nested, gets(waits, 22)];
  t.match(summaryOf(behind).rows(), [{ taken: 3, contended: 1 }]);
  const other = [waits, ...takes({ of: a, hart: 1 }, 6), releases(a, 9, 1), gets(waits, 22)];
  t.match(summaryOf(other).rows(), [{ taken: 2, contended: 1 }], 'another hart was first');
});

t.test('a release that is not seen makes no contention', async (t) => {
  const [row] = summaryOf([...takes({ of: a }, 0), ...takes({ of: a, hart: 1 }, 5), releases(a, 9, 1)]).rows();
  t.match(row, { taken: 2, unreleased: 1, contended: 0, held_ns: 3 });
});

t.test('readers do not contend, and a release is that of its own hart', async (t) => {
  const read = (hart: number, time: number): TraceEvent[] => takes({ of: a, hart, isShared: true }, time);
  // Of a reader on hart 2 the entry was not seen.
  const [row] = summaryOf([
    ...read(0, 0),
    ...read(1, 10),
    releases(a, 15, 2),
    releases(a, 21),
    releases(a, 31, 1),
  ]).rows();
  t.match(row, { taken: 2, contended: 0, held_ns: 40, max_held_ns: 20 });
});

t.test('an attempt takes the lock or not, and makes no order', async (t) => {
  const failed = enters({ of: b, isAttempt: true }, 3);
  const events = [
    ...takes({ of: a }, 0),
    failed,
    gets(failed, 4, 'not taken'),
    ...takes({ of: b, isAttempt: true }, 5),
  ];
  const back = [releases(a, 7), ...takes({ of: a }, 8)];
  const summary = summaryOf([...events, ...back]);
  t.match(
    summary.rows().find(({ lock }) => lock === 'L2'),
    { taken: 1, not_taken: 1, held_ns: null },
    'no release was seen',
  );
  t.same(summary.findings(), []);
});

t.test('locks in both orders, unless a gap or another hart is between', async (t) => {
  const forwards = [...takes({ of: a }, 0), ...takes({ of: b }, 5), releases(b, 8), releases(a, 9)];
  const backwards = [...takes({ of: b }, 10), ...takes({ of: a }, 15), releases(a, 17), releases(b, 18)];
  t.match(summaryOf([...forwards, ...backwards]).findings(), [
    { kind: 'lock-inversion', orders: [{ held: 'L1' }, {}] },
  ]);
  t.same(summaryOf([...forwards, ...backwards]).findings(false), [], 'nothing is said of a part');
  const gap: TraceEvent = { type: 'gap', from: nanos(12), to: nanos(13) };
  const ended = [releases(a, 17), releases(b, 18)];
  t.same(summaryOf([...forwards, ...takes({ of: b }, 10), gap, ...takes({ of: a }, 15), ...ended]).findings(), []);
  t.same(
    summaryOf([...forwards, ...takes({ of: b }, 10), ...takes({ of: a }, 15)]).findings(),
    [],
    'no release was seen',
  );
  t.same(summaryOf([...forwards, ...takes({ of: b }, 10), ...takes({ of: a, hart: 1 }, 15), ...ended]).findings(), []);
});

t.test('harts that wait for each other', async (t) => {
  const events = [...takes({ of: a }, 0), ...takes({ of: b, hart: 1 }, 1)];
  const [first, second] = [enters({ of: b }, 5), enters({ of: a, hart: 1 }, 6)];
  const summary = summaryOf([...events, first, second]);
  t.match(summary.findings(), [
    {
      kind: 'lock-deadlock',
      waits: [
        { lock: 'L2', hart: 0 },
        { lock: 'L1', hart: 1 },
      ],
    },
  ]);
  t.match(
    lockTable(summary, { color: false, width: 200 }),
    /2 calls that took a lock had not come back[\s\S]*a deadlock:/,
  );
  t.same(summaryOf([...events, first]).findings(), [], 'one that waits is none');
});

t.test('a use whose return nothing sees waits for nothing when it is over', async (t) => {
  const waiting = (entryOnly: boolean): number | undefined => {
    const summary = new LockSummary();
    const begin = enters({ of: a }, 10);
    const { time, hart, function: fn } = begin;
    for (const event of [
      begin,
      {
        type: 'call-lost',
        time,
        hart,
        function: fn,
        depth: 0,
        begin,
        began: time,
        ...(entryOnly ? { entryOnly } : {}),
      },
    ] as TraceEvent[])
      summary.event(event);
    return summary.rows()[0]?.waiting;
  };
  t.same([true, false].map(waiting), [0, 1]);
});

t.test('a call that was lost too early has taken the lock all the same', async (t) => {
  const begin = enters({ of: a }, 0);
  const { type: _, ...rest } = begin;
  const lost = { ...rest, type: 'call-lost', time: nanos(5), begin, began: begin.time } as TraceEvent;
  const end = { ...gets(begin, 30), wasLost: true } as TraceEvent;
  t.match(summaryOf([begin, lost]).rows(), [{ taken: 0, waiting: 1 }]);
  t.match(summaryOf([begin, lost, end, releases(a, 40)]).rows(), [
    { taken: 1, waiting: 0, waited_ns: 30, held_ns: 10 },
  ]);
  const others = Array.from({ length: 1000 }, (_, i): TraceEvent[] => {
    const other = enters({ of: b }, 6 + i);
    return [other, { ...lost, time: nanos(6 + i), function: b, begin: other, began: other.time } as TraceEvent];
  });
  const many = summaryOf([begin, lost, ...others.flat(), { ...end, time: nanos(2000) } as TraceEvent]);
  t.match(
    many.rows().map(({ lock, taken, waiting }) => ({ lock, taken, waiting })),
    [
      { lock: 'L1', taken: 1, waiting: 0 },
      { lock: 'L2', taken: 0, waiting: 1000 },
    ],
  );
});

t.test('a call that was left before the end waits for nobody', async (t) => {
  const left = enters({ of: b }, 5);
  const { type: _, ...rest } = left;
  const lost = (time: number) =>
    ({ ...rest, type: 'call-lost', time: nanos(time), begin: left, began: left.time }) as TraceEvent;
  const events = [...takes({ of: a }, 0), ...takes({ of: b, hart: 1 }, 1), left];
  const waits = enters({ of: a, hart: 1 }, 6);
  t.match(summaryOf([...events, waits, lost(7)]).findings(), [{ kind: 'lock-deadlock' }], 'the end loses it');
  const before = summaryOf([...events, lost(5.5), waits]);
  t.same(before.findings(), []);
  t.match(before.open(), [{ lock: 'L1' }]);
});

t.test('locks whose release is not seen do not hide an order of later ones', async (t) => {
  const stale = Array.from({ length: 100 }, (_, i) => takes({ of: lockOf(100 + i) }, i / 100)).flat();
  const forwards = [...takes({ of: a }, 2), ...takes({ of: b }, 5), releases(b, 8), releases(a, 9)];
  const backwards = [...takes({ of: b }, 10), ...takes({ of: a }, 15), releases(a, 17), releases(b, 18)];
  t.match(summaryOf([...stale, ...forwards, ...backwards]).findings(), [{ kind: 'lock-inversion' }]);
});
