// What a writer with timelines is told, step by step, on events told by hand.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import type { LaneWriter } from '../../../src/trace/formats/lane-writer.js';
import { Lanes } from '../../../src/trace/formats/lanes.js';
import type { FutureRef, RootRef, ThreadRef, TraceEvent } from '../../../src/trace/index.js';

const future = (key: number, name: string) => ({ key, future: name, instance: name, kind: 'async_fn' }) as FutureRef;
const [outer, inner] = [future(1, 'outer'), future(2, 'inner')];
const task = (key: number, address: number, of = outer): RootRef => ({
  key,
  future: of,
  address: addr(BigInt(address)),
});
const [one, two] = [task(1, 0x1000), task(2, 0x2000)];
const suspend = { name: 'Suspend0', file: 'src/a.rs', line: 7 };

/** Each call of the writer is a line. */
function lanes() {
  const lines: string[] = [];
  const say = (...words: unknown[]) => void lines.push(words.filter((word) => word !== undefined).join(' '));
  const name = (begin: { future?: FutureRef; function?: { name: string } }) =>
    begin.future?.future ?? begin.function?.name;
  const root = (begin: object, time: number): string => `poll-lost ${name(begin)} ${time} root cut`;
  const writer: LaneWriter = {
    begin: () => say('begin'),
    hart: ({ number }) => say('hart', number),
    thread: ({ key }) => say('thread', key),
    flush: () => say('flush'),
    end: () => say('end'),
    enter: (begin, isOutermost, wake) => {
      if (begin.type === 'call-begin') say('call', name(begin));
      else say('poll', name(begin), isOutermost ? 'outermost' : 'inside', wake);
    },
    leave: (begin, time, how) => {
      const kind = begin.type === 'poll-begin' ? 'poll' : 'call';
      const isOnRoot = lines.at(-1) === root(begin, time);
      if (isOnRoot) lines.pop();
      const on = kind === 'call' ? undefined : isOnRoot ? 'both' : 'hart';
      if (typeof how !== 'string') say(`${kind}-end`, name(begin), how.result, on);
      else if (kind === 'poll') say('poll-lost', name(begin), time, on, how);
      else say(`call-${how}`, name(begin), time);
    },
    rootLeave: (begin, time) => void lines.push(root(begin, time)),
    lifeBegin: ({ key }, time) => say('life', key, time),
    lifeEnd: ({ key }, time, how) => say('life-end', key, time, how),
    waitBegin: (_, text, at) => say('wait', text, at?.line),
    waitEnd: ({ key }, time, text) => say('wait-end', key, time, text),
    orphan: ({ type }) => say('orphan', type),
    state: () => say('state'),
    derived: () => say('derived'),
    watch: () => say('watch'),
    place: () => say('place'),
    gap: () => say('gap'),
    wake: (_, number) => say('wake', number ?? 'of no poll'),
    sample: () => say('sample'),
    cancelled: () => say('cancelled'),
    reset: () => say('reset'),
    console: () => say('console'),
    tasks: (time, waiting, runnable) => say('tasks', time, waiting, runnable),
  };
  const sink = new Lanes(writer);
  sink.begin({ harts: [{ number: 0, name: 'zero' }] } as never);
  lines.splice(0);
  return {
    sink,
    lines,
    tell(...events: object[]) {
      for (const event of events) sink.event(event as TraceEvent);
      return lines.splice(0);
    },
  };
}

interface Options {
  readonly hart?: number;
  readonly thread?: ThreadRef;
  readonly around?: object;
  readonly of?: FutureRef;
  readonly at?: number;
}

const on = ({ hart = 0, thread, around }: Options) => ({ hart, thread, around });
const poll = (time: number, root = one, more: Options = {}) => {
  const { of = root.future, at } = more;
  const address = at === undefined ? root.address : addr(BigInt(at));
  return { type: 'poll-begin', time, root, future: of, address, ...on(more) };
};
const end = (begin: ReturnType<typeof poll>, time: number, result = 'pending') => {
  return {
    ...begin,
    type: 'poll-end',
    time,
    begin,
    result,
    chain: [],
    state: result === 'pending' ? suspend : undefined,
  };
};
const call = (time: number, name: string, more: Options = {}) => {
  return { type: 'call-begin', time, function: { name }, ...on(more) };
};
const back = (begin: ReturnType<typeof call>, time: number, type = 'call-end') => ({ ...begin, type, time, begin });
const wake = (time: number, root: RootRef | undefined) => ({ type: 'wake', time, hart: 0, root, by: undefined });

t.test('a reset ends all tasks', async (t) => {
  const { tell } = lanes();
  const [first, second] = [poll(0), poll(20, two)];
  tell(first, end(first, 10), second, end(second, 25, 'ready'));
  t.same(tell({ type: 'reset', time: 30 }), [
    ...['wait-end 1 30 waiting at src/a.rs:7', 'tasks 30 0 0', 'life-end 1 30 reset'],
    'reset',
  ]);
  t.same(tell(poll(90, task(3, 0x1000))).slice(0, 1), ['life 3 90'], 'nothing is dropped there');
});

t.test('events without a slice reach the writer, each hart is told once', async (t) => {
  const { tell } = lanes();
  t.same(tell({ type: 'gap' }, { type: 'reset' }, { type: 'console' }), ['gap', 'reset', 'console']);
  const at = { time: 5, hart: 0, root: one };
  t.same(tell({ type: 'watch', ...at }, { type: 'place', ...at }, { type: 'sample', ...at }), [
    'watch',
    'place',
    'sample',
  ]);
  t.same(tell({ type: 'watch', time: 6, hart: 3 }, { type: 'watch', time: 7, hart: 3 }), ['hart 3', 'watch', 'watch']);
  t.same(tell({ type: 'state', ...at }, { type: 'derived-poll', ...at }), ['life 1 5', 'state', 'derived']);
  const { sink, lines } = lanes();
  sink.hart({ number: 0, name: 'zero' });
  sink.hart({ number: 1, name: 'one' });
  sink.flush();
  sink.end();
  t.same(lines, ['hart 1', 'flush', 'end']);
});

t.test('a writer that has no place for events beside slices', async (t) => {
  const silent = new Lanes({});
  silent.begin({ harts: [] } as never);
  const [begun, stray, lost] = [poll(1), poll(2, two), call(3, 'f')];
  const types = ['gap', 'reset', 'console', 'state', 'derived-poll', 'watch', 'place', 'sample'];
  const cancelled = { type: 'cancelled', time: 9, hart: 0, root: one, future: outer, address: one.address };
  const notes = types.map((type) => ({ type, time: 4, hart: 0, root: one }));
  const events = [begun, end(begun, 2), wake(3, one), ...notes, end(stray, 5), back(lost, 6), cancelled];
  t.doesNotThrow(() => {
    for (const event of events) silent.event(event as unknown as TraceEvent);
  });
});

t.test('a task: it is polled, waits, is woken, is polled, and is ready', async (t) => {
  const { tell } = lanes();
  const [first, second] = [poll(10), poll(40)];
  t.same(tell(first), ['life 1 10', 'poll outer outermost']);
  t.same(tell(end(first, 20)), ['poll-end outer pending both', 'wait waiting at src/a.rs:7 7', 'tasks 20 1 0']);
  t.same(tell(wake(30, one)), ['wake 1', 'tasks 30 0 1']);
  t.same(tell(wake(31, one)), ['wake of no poll'], 'the first wake causes the poll');
  t.same(tell(second), ['wait-end 1 40 waiting at src/a.rs:7', 'tasks 40 0 0', 'poll outer outermost 1']);
  t.same(tell(wake(41, one)), ['wake 2'], 'while it is polled: nobody waits');
  t.same(tell(end(second, 50, 'ready')), ['poll-end outer ready both', 'life-end 1 50 ready']);
  t.same(tell(wake(60, one)), ['wake of no poll'], 'it is over');
  t.same(tell(wake(61, undefined), wake(62, two)), ['wake of no poll', 'wake of no poll']);
});

t.test('a wake during a poll causes the next one', async (t) => {
  const { tell } = lanes();
  const [first, nested, second] = [poll(10), poll(11, one, { of: inner, at: 0x1010 }), poll(30)];
  tell(first, wake(12, one));
  t.same(tell(nested), ['poll inner inside'], 'not the one inside');
  t.same(tell(end(nested, 13)), ['poll-end inner pending both'], 'what is inside does not wait');
  const lines = tell(end(first, 20));
  t.equal(lines.at(-1), 'tasks 20 0 1', 'it can run at once');
  t.same(tell(second).slice(-2), ['tasks 30 0 0', 'poll outer outermost 1']);
  t.same(tell(end(second, 40, 'panicked')), ['poll-end outer panicked both', 'life-end 1 40 panicked']);
});

t.test('two tasks wait', async (t) => {
  const { tell } = lanes();
  const [a, b] = [poll(1), poll(3, two)];
  tell(a, end(a, 2));
  t.equal(tell(b, end(b, 4)).at(-1), 'tasks 4 2 0');
  t.equal(tell(wake(5, two)).at(-1), 'tasks 5 1 1');
  t.equal(tell(poll(6, two))[1], 'tasks 6 1 0');
});

t.test('a poll that says nothing of its result neither waits nor ends the task', async (t) => {
  const { tell } = lanes();
  const first = poll(1);
  t.same(tell(first, end(first, 2, 'unknown')).slice(2), ['poll-end outer unknown both']);
  const other = poll(3, one, { of: inner, at: 0x1000 });
  t.same(tell(other, end(other, 4)), ['poll inner outermost', 'poll-end inner pending both'], 'another Future there');
  const apart = poll(5, one, { at: 0x1010 });
  t.same(
    tell(apart, end(apart, 6, 'ready')),
    ['poll outer outermost', 'poll-end outer ready both'],
    'its like, inside',
  );
});

t.test('a task that is dropped, and one that is replaced', async (t) => {
  const { tell } = lanes();
  const first = poll(1);
  tell(first, end(first, 2));
  const cancelled = (root: RootRef | undefined, of = outer, address = root?.address) => {
    return { type: 'cancelled', time: 5, hart: 0, root, future: of, address };
  };
  t.same(tell(cancelled(undefined)), ['cancelled']);
  t.same(tell(cancelled(one, inner)), ['cancelled'], 'a part of it');
  t.same(tell(cancelled(task(9, 0x1000))), ['cancelled'], 'another task that lay there');
  t.same(tell(cancelled(one)), [
    'cancelled',
    'wait-end 1 5 waiting at src/a.rs:7',
    'tasks 5 0 0',
    'life-end 1 5 dropped',
  ]);
  t.same(tell(cancelled(one)), ['cancelled'], 'once');
  t.same(tell(poll(6, task(3, 0x1000))), ['life 3 6', 'poll outer outermost']);
  const waits = poll(7, two);
  tell(waits, end(waits, 8));
  t.same(tell({ type: 'state', time: 9, hart: 0, root: task(4, 0x2000) }), [
    'wait-end 2 9 waiting at src/a.rs:7',
    'tasks 9 0 0',
    'life-end 2 9 dropped',
    'life 4 9',
    'state',
  ]);
});

t.test('a task that is replaced while its poll is open ends by that poll', async (t) => {
  const { tell } = lanes();
  const first = poll(1);
  const next = task(3, 0x1000);
  tell(first);
  t.same(tell(poll(2, next, { hart: 1 })), ['hart 1', 'life 3 2', 'poll outer outermost']);
  t.same(tell(end(first, 3, 'ready')), ['poll-end outer ready both', 'life-end 1 3 ready']);
});

t.test('polls whose end was not seen', async (t) => {
  const { tell } = lanes();
  const [first, nested] = [poll(1), poll(2, one, { of: inner, at: 0x1010 })];
  tell(first, nested);
  t.same(tell({ ...nested, type: 'poll-lost', time: 3, begin: nested }), ['poll-lost inner 3 both lost']);
  t.same(tell({ ...first, type: 'poll-lost', time: 4, begin: first }), ['poll-lost outer 4 both lost']);
  t.same(
    tell({ ...first, type: 'poll-lost', time: 5, begin: first }),
    ['orphan poll-lost'],
    'it has no slice any more',
  );
  t.same(tell(end(first, 6))[0], 'orphan poll-end');
  const late = poll(7, two);
  t.same(tell({ ...late, type: 'poll-lost', time: 8, begin: undefined }), ['life 2 8', 'orphan poll-lost']);

  const again = lanes();
  const lost = poll(1);
  again.tell(lost, { ...lost, type: 'poll-lost', time: 2, begin: lost });
  t.same(
    again.tell(poll(3, task(3, 0x1000))).slice(0, 2),
    ['life-end 1 3 lost', 'life 3 3'],
    'what became of it, nobody saw',
  );
  const seen = lanes();
  const both = [poll(1), poll(3)] as const;
  seen.tell(both[0], { ...both[0], type: 'poll-lost', time: 2, begin: both[0] }, both[1], end(both[1], 4, 'unknown'));
  t.equal(seen.tell(poll(5, task(3, 0x1000)))[0], 'life-end 1 5 dropped', 'it was polled since');
  const inside = lanes();
  const [around, within] = [poll(1), poll(2, one, { of: inner, at: 0x1010 })];
  inside.tell(around, within, { ...within, type: 'poll-lost', time: 3, begin: within }, end(around, 4, 'unknown'));
  t.equal(inside.tell(poll(5, task(3, 0x1000)))[0], 'life-end 1 5 dropped', 'only a part of it was lost');
});

t.test('a Future is polled by one hart at a time', async (t) => {
  const { tell } = lanes();
  const [stale, nested, now] = [poll(1), poll(2, one, { of: inner, at: 0x1010 }), poll(3, one, { hart: 0 })];
  const other = poll(5, one, { hart: 1 });
  tell(stale, nested);
  t.same(tell(now), ['poll outer inside'], 'on the same hart it is inside');
  t.same(tell(other), [
    'hart 1',
    'poll-lost outer 5 root cut',
    'poll-lost inner 5 root cut',
    'poll-lost outer 5 root cut',
    'poll outer outermost',
  ]);
  t.same(tell(end(now, 6)), ['poll-end outer pending hart'], 'its slice on the hart was open');
  t.same(tell({ ...nested, type: 'poll-lost', time: 7, begin: nested }), ['poll-lost inner 7 hart lost']);
  t.same(tell(end(other, 8)).slice(0, 1), ['poll-end outer pending both']);
});

t.test('calls: threads are told once, ends without a begin are no slices', async (t) => {
  const { tell } = lanes();
  const [thread, other] = [{ key: 1 } as ThreadRef, { key: 2 } as ThreadRef];
  const [f, g] = [call(1, 'f', { thread }), call(2, 'g', { thread })];
  t.same(tell(f, g), ['thread 1', 'call f', 'call g']);
  t.same(tell(call(3, 'h', { thread: other })), ['thread 2', 'call h']);
  t.same(tell(call(4, 'i', { thread: { ...other } })), ['thread 2', 'call i'], 'another one of that number');
  t.same(tell(back(g, 5), back(f, 6, 'call-lost')), ['call-end g', 'call-lost f 6']);
  t.same(tell(back(f, 7)), ['orphan call-end']);
  t.same(tell({ ...back(f, 8, 'call-lost'), begin: undefined }), ['orphan call-lost']);
});

t.test('what is inside a slice to which something happens is cut', async (t) => {
  const { tell } = lanes();
  const [f, g] = [call(1, 'f'), call(2, 'g')];
  const p = poll(3, one);
  tell(f, g, p);
  t.same(tell(call(4, 'h', { around: f })), ['poll-lost outer 4 both cut', 'call-cut g 4', 'call h']);
  t.same(tell(back(g, 5)), ['orphan call-end'], 'its slice is gone');
  t.same(tell(back(f, 6)), ['call-cut h 6', 'call-end f']);

  const inPolls = lanes();
  const around = poll(1);
  inPolls.tell(around, call(2, 'f'));
  t.same(inPolls.tell(end(around, 3)).slice(0, 2), ['call-cut f 3', 'poll-end outer pending both']);
  const lost = poll(4);
  inPolls.tell(lost, call(5, 'g'));
  t.same(inPolls.tell({ ...lost, type: 'poll-lost', time: 6, begin: lost }), [
    'call-cut g 6',
    'poll-lost outer 6 both lost',
  ]);

  const apart = lanes();
  const far = call(1, 'far', { hart: 1 });
  apart.tell(far, call(2, 'near', { hart: 1 }));
  t.same(apart.tell(call(3, 'here', { around: far })), ['call here'], 'on another track nothing is cut');
  const thread = { key: 1 } as ThreadRef;
  const known = call(4, 'known', { thread, hart: 1 });
  apart.tell(known, call(5, 'inside', { thread, hart: 1 }));
  t.same(
    apart.tell(call(6, 'moved', { thread, hart: 0, around: known })),
    ['call-cut inside 6', 'call moved'],
    'the same thread on another hart',
  );
});

t.test('a poll on a stack goes on on another hart, and is polled inside there', async (t) => {
  const { tell } = lanes();
  const thread = { key: 1, stack: addr(0x9000n) };
  const around = poll(0, one, { thread });
  const inside = poll(10, one, { hart: 1, thread, around, of: inner, at: 0x1010 });
  tell(around);
  t.same(tell(inside), ['hart 1', 'poll inner inside']);
  t.same(tell(end(inside, 20)), ['poll-end inner pending both']);
  t.same(tell(end(around, 30)).slice(0, 2), ['poll-end outer pending both', 'wait waiting at src/a.rs:7 7']);
});
