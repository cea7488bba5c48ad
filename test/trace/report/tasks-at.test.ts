// Tasks at a moment, from events told by hand. Of saved traces: test/trace/formats/read/read-trace.test.ts.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { type PollBegin, TasksAt, type TraceEvent } from '../../../src/trace/index.js';
import { futures, linked, nanos, suspend0, tell, unresumed } from '../stories.js';

const [outer, inner] = futures;
const root = { key: 1, future: outer, address: addr(0x1000n) };

t.test('what was dropped is no longer there', async (t) => {
  const caller = { function: undefined, file: undefined, line: undefined };
  const of = (future: typeof outer, address: number) => ({ hart: 0, root, future, address: addr(BigInt(address)) });
  const [own, held] = [of(outer, 0x1000), of(inner, 0x1020)];
  const result = { result: 'pending', state: suspend0, chain: [] } as const;
  const events: TraceEvent[] = linked([
    { type: 'poll-begin', ...own, time: nanos(0), depth: 0, state: unresumed },
    { type: 'poll-begin', ...held, time: nanos(1), depth: 1, state: unresumed },
    { type: 'poll-end', ...held, time: nanos(2), depth: 1, began: nanos(1), ...result },
    { type: 'poll-end', ...own, time: nanos(5), depth: 0, began: nanos(0), ...result },
    { type: 'cancelled', ...held, time: nanos(10), state: suspend0, by: undefined, caller },
    { type: 'cancelled', ...own, time: nanos(20), state: suspend0, by: undefined, caller },
  ]);
  const shown = (time: number) => {
    const found = new TasksAt(time);
    tell(found, events);
    const tasks = found.tasks().map(({ state, tree }) => ({ state, awaits: tree[0]?.awaits.map(({ name }) => name) }));
    return { tasks, ended: found.ended };
  };
  t.same(shown(6), { tasks: [{ state: 'waiting', awaits: [inner.future] }], ended: 0 });
  t.same(shown(15), { tasks: [{ state: 'waiting', awaits: [] }], ended: 0 });
  t.same(shown(25), { tasks: [], ended: 1 });
});

t.test('whether a task still waits behind a gap is not known', async (t) => {
  const at = { hart: 0, root, future: outer, address: root.address, depth: 0 };
  const pends = { type: 'poll-end', ...at, time: nanos(5), began: nanos(0), result: 'pending', chain: [] } as const;
  const events = linked([
    { type: 'poll-begin', ...at, time: nanos(0), state: unresumed },
    { ...pends, state: suspend0 },
    { type: 'gap', from: nanos(10), to: nanos(90) },
    { type: 'console', time: nanos(100), text: 'on' },
  ]);
  const shown = (time: number) => {
    const found = new TasksAt(time);
    tell(found, events);
    return found.tasks().map(({ state, since }) => ({ state, since }));
  };
  t.same(shown(9), [{ state: 'waiting', since: 5 }]);
  t.same(shown(95), [{ state: 'unknown', since: 10 }]);
});

t.test('of Futures inside of 20,000 others those are shown that can be printed', async (t) => {
  const begins: PollBegin[] = [];
  for (let depth = 0; depth < 20_000; depth++) {
    const at = { hart: 0, root, future: outer, address: addr(root.address + 16n * BigInt(depth)), depth };
    begins.push({ type: 'poll-begin', ...at, time: nanos(depth), state: unresumed, around: begins.at(-1) });
  }
  const found = new TasksAt(1e6);
  const gone = { type: 'derived-poll', hart: 0, root, future: inner, address: root.address, time: nanos(50_000) };
  tell(found, [...begins, { ...gone, result: 'ready', state: undefined } as TraceEvent]);
  let [levels, at] = [0, found.tasks()[0]?.tree[0]];
  for (; at?.awaits[0] !== undefined; at = at.awaits[0]) levels++;
  t.equal(levels, 500);
  t.equal(at?.name, '[nested deeper than 500: left out]');
});
