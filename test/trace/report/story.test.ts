// The story of one call or Future: against what was made to happen, and against lives and calls as other reports count them.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import {
  type CallBegin,
  Choice,
  type FunctionRef,
  hasUnknownWakes,
  lockArguments,
  lockRef,
  releaseName,
  reportBy,
  Story,
  storyJson,
  storyText,
  type TraceEvent,
} from '../../../src/trace/index.js';
import { futures, linked, nanos, stories, suspend0, tell, unresumed } from '../stories.js';

const wanted = (name: string) => ({ kind: undefined, matches: (one: string) => one === name, holds: undefined });
const options = { color: false, width: 200, unit: 'hart' } as const;

interface Followed {
  readonly goes_with: string;
  readonly total_ns: number | null;
  readonly on_hart_ns: number | null;
  readonly waits: number;
  readonly waiting_ns: number;
  readonly runnable_ns: number | null;
}

function storyOf(events: readonly TraceEvent[], name: string, nth?: number): { story: Story; followed: Followed } {
  const choice = new Choice(wanted(name), nth);
  tell(choice, events);
  const story = new Story(wanted(name), choice.number ?? 0);
  tell(story, events);
  return { story, followed: storyJson(story) as Followed };
}

let keys = 100;
const fn = (name: string, kind?: FunctionRef['kind']): FunctionRef => {
  return { key: keys++, name, instance: name, address: addr(0x1000n), file: undefined, line: undefined, kind };
};
const call = (function_: FunctionRef, hart: number, depth = 0, values: CallBegin['arguments'] = []) => {
  const of = { hart, function: function_, depth };
  return {
    begin: (time: number): TraceEvent => ({ type: 'call-begin', ...of, time: nanos(time), arguments: values }),
    end: (time: number, began: number, result?: string): TraceEvent => {
      return { type: 'call-end', ...of, time: nanos(time), began: nanos(began), result };
    },
  };
};

t.test('a system call that waits: off its hart, preempted, behind a lock, and what others do meanwhile', async (t) => {
  const [mine, other] = [fn('sh', 'thread'), fn('cat', 'thread')];
  const [read, timer, copy, alien] = [fn('syscall::read', 'syscall'), fn('irq::timer', 'irq'), fn('copy'), fn('alien')];
  const lock = lockRef('TABLE', { key: 90, address: addr(0x90n), file: undefined, line: undefined });
  const by = (where: string) => lockArguments({ lock: '0x90', isShared: false, isAttempt: false, by: where });
  const released: TraceEvent = {
    ...{ type: 'place', time: nanos(75), hart: 1 },
    place: {
      ...{ key: 91, name: releaseName(lock, undefined), category: 'lock', address: addr(0x94n), lock: '0x90' },
      by: { function: undefined, file: undefined, line: undefined },
    },
  };
  // A thread's slice on its hart ends while calls in it are open: each is on a track of its own.
  const track = { key: 92, stack: addr(0x9000n) };
  const on = (event: TraceEvent): TraceEvent => ({ ...event, thread: track }) as TraceEvent;
  const events = linked([
    call(mine, 0).begin(0),
    call(lock, 1, 0, by('holder')).begin(1),
    call(lock, 1, 0, by('holder')).end(2, 1, 'taken'),
    on(call(read, 0).begin(10)),
    call(mine, 0).end(20, 0),
    call(other, 0).begin(20),
    call(alien, 0, 1).begin(22),
    call(alien, 0, 1).end(24, 22),
    call(other, 0).end(50, 20),
    call(mine, 1).begin(60),
    on(call(lock, 1, 1, by('reader')).begin(70)),
    released,
    on(call(lock, 1, 1, by('reader')).end(80, 70, 'taken')),
    on(call(timer, 1, 1).begin(90)),
    call(mine, 1).end(92, 60),
    call(other, 1).begin(92),
    call(other, 1).end(95, 92),
    call(mine, 1).begin(95),
    on(call(timer, 1, 1).end(97, 90)),
    on(call(copy, 1, 1).begin(98)),
    on(call(copy, 1, 1).end(99, 98)),
    on(call(read, 1).end(100, 10, '5')),
  ]);
  // It ends on another hart than where it began.
  const begin = events.find((event) => 'function' in event && event.function === read) as CallBegin;
  const all = events.map((event) =>
    event.type === 'call-end' && event.function === read ? { ...event, begin } : event,
  );
  const { story, followed } = storyOf(all, 'syscall::read');
  t.match(followed, {
    goes_with: 'thread',
    ...{ total_ns: 90, on_hart_ns: 47, waits: 2, waiting_ns: 43, runnable_ns: null },
    ...{ interrupts: 1, interrupted_ns: 4, locks: 1, locking_ns: 10 },
  });
  t.same(storyText(story, options, 99).split('\n').slice(3, -1), [
    '     0 ns      90 ns     0  syscall::read = 5',
    '    10 ns      40 ns     0    off the hart: hart 0 runs cat; goes on on hart 1',
    '    60 ns      10 ns     1    lock::TABLE held by holder = taken',
    '    80 ns       7 ns     1    irq::timer',
    '    82 ns       3 ns     1      preempted: hart 1 runs cat',
    '    88 ns       1 ns     1    copy',
  ]);
  t.match(storyText(story, options, 2), /\n4 lines more: --full shows them\n$/);
});

t.test('without context switches what other processes do on the hart is left out, and counted', async (t) => {
  const [read, own, alien] = [fn('syscall::read', 'syscall'), fn('copy'), fn('alien')];
  const [future] = futures;
  const tasks = [0x9000n, 0xa000n].map((space, key) => ({ key, future, address: addr(0x1000n), space: addr(space) }));
  const [mine, other] = tasks as [(typeof tasks)[0], (typeof tasks)[0]];
  const poll = (root: typeof mine) => ({ hart: 0, root, future, address: root.address, depth: 0 });
  const begin = (root: typeof mine, time: number): TraceEvent => {
    return { type: 'poll-begin', ...poll(root), time: nanos(time), state: suspend0 };
  };
  const end = (root: typeof mine, time: number, began: number): TraceEvent => {
    const rest = { result: 'pending', state: suspend0, chain: [] } as const;
    return { type: 'poll-end', ...poll(root), time: nanos(time), began: nanos(began), ...rest };
  };
  const track = { key: 92, stack: addr(0x100n) };
  const within = (event: TraceEvent, { space }: typeof mine): TraceEvent =>
    ({ ...event, thread: { ...track, space } }) as TraceEvent;
  const inside = [
    within(call(read, 0).begin(10), mine),
    within(call(own, 0, 1).begin(12), mine),
    within(call(own, 0, 1).end(14, 12), mine),
    begin(other, 20),
    within(call(alien, 0, 1).begin(22), other),
    within(call(alien, 0, 1).end(24, 22), other),
    end(other, 30, 20),
    within(call(read, 0).end(40, 10, '5'), mine),
  ];
  for (const [goesWith, events] of [
    ['hart', inside],
    ['task', [begin(mine, 5), ...inside, end(mine, 50, 5)]],
  ] as const) {
    const { story, followed } = storyOf(linked([...events]), 'syscall::read');
    t.match(followed, { goes_with: goesWith, others_on_its_hart: 2 });
    t.same(storyText(story, options, 99).split('\n').slice(3, -1), [
      '     0 ns      30 ns     0  syscall::read = 5',
      '     2 ns       2 ns     0    copy',
    ]);
  }
});

t.test('a Future: its polls, its waits, who wakes it, and the task that it has woken', async (t) => {
  const [a, b] = futures;
  const roots = [a, b].map((future, key) => ({ key, future, address: addr(0x1000n + BigInt(key) * 0x100n) }));
  const [own, served] = roots as [(typeof roots)[0], (typeof roots)[0]];
  const at = (root: typeof own, hart: number) => ({ hart, root, future: root.future, address: root.address, depth: 0 });
  const begin = (root: typeof own, hart: number, time: number, state = suspend0): TraceEvent => {
    return { type: 'poll-begin', ...at(root, hart), time: nanos(time), state };
  };
  const end = (
    root: typeof own,
    hart: number,
    time: number,
    began: number,
    result: 'ready' | 'pending',
  ): TraceEvent => {
    const state = result === 'ready' ? undefined : suspend0;
    return { type: 'poll-end', ...at(root, hart), time: nanos(time), began: nanos(began), result, state, chain: [] };
  };
  const wake = (root: typeof own, by: typeof own, hart: number, time: number): TraceEvent => {
    const caller = { function: 'send', file: undefined, line: undefined };
    return { type: 'wake', time: nanos(time), hart, waker: root.address, root, by, caller };
  };
  const events = linked([
    begin(own, 0, 0, unresumed),
    wake(served, own, 0, 5),
    end(own, 0, 10, 0, 'pending'),
    begin(served, 1, 20),
    wake(own, served, 1, 30),
    end(served, 1, 35, 20, 'pending'),
    begin(own, 1, 50),
    end(own, 1, 60, 50, 'ready'),
  ]);
  const { story, followed } = storyOf(events, a.future);
  t.match(followed, { goes_with: 'future', total_ns: 60, on_hart_ns: 20, waits: 1, waiting_ns: 40, runnable_ns: 20 });
  t.same(storyText(story, options, 99).split('\n').slice(3, -1), [
    '     0 ns      60 ns     0  a = ready',
    '     0 ns      10 ns     0    poll a from Unresumed = pending',
    '     5 ns                0      wakes b @0x1100',
    '    10 ns      40 ns     0    waits at src/a.rs:12: woken by b in send after 20 ns; goes on on hart 1',
    '    20 ns      15 ns     1      poll b from Suspend0 at src/a.rs:12 = pending',
    '    50 ns      10 ns     1    poll a from Suspend0 at src/a.rs:12 = ready',
  ]);
});

t.test('a wake of its task after which the task was polled without the Future was for another one in it', async (t) => {
  const [task, future] = [futures[0], futures[1]];
  const own = { key: 1, future: task, address: addr(0x1000n) };
  const on = { hart: 0, root: own } as const;
  const outer = { ...on, future: task, address: own.address, depth: 0 };
  const inner = { ...on, future, address: addr(0x1010n), depth: 1 };
  const poll = (of: typeof outer | typeof inner, from: number, to: number, rest: readonly TraceEvent[] = []) => {
    const pending = { result: 'pending', state: suspend0, chain: [] } as const;
    return [
      { type: 'poll-begin', ...of, time: nanos(from), state: of === inner && from > 10 ? suspend0 : unresumed },
      ...rest,
      { type: 'poll-end', ...of, time: nanos(to), began: nanos(from), ...pending },
    ] as TraceEvent[];
  };
  const wake = (by: typeof own | undefined, name: string, time: number): TraceEvent => {
    const caller = { function: name, file: undefined, line: undefined };
    return { type: 'wake', time: nanos(time), hart: 0, waker: own.address, root: own, by, caller };
  };
  const events = linked([
    ...poll(outer, 0, 10, poll(inner, 1, 5)),
    wake(undefined, 'other', 20),
    ...poll(outer, 30, 40, [wake(own, 'again', 35)]),
    ...poll(outer, 50, 60),
    wake(undefined, 'mine', 70),
    ...poll(outer, 80, 90, poll(inner, 81, 85)),
    wake(own, 'again', 86),
    ...poll(outer, 95, 99, poll(inner, 96, 98)),
  ]);
  const { story, followed } = storyOf(events, future.future, 1);
  const text = storyText(story, options, 20);
  t.match(text, /waits.*: woken by no task in mine after 65 ns$/m);
  t.match(text, /waits.*: woken by its own task in again after 1 ns$/m);
  t.equal(followed.runnable_ns, 81 - 70 + (96 - 86));
});

t.test('in any story of polls the longest life is that of --by latency, and its time is polls and waits', async () => {
  fc.assert(
    fc.property(stories, ({ events }) => {
      const lives = reportBy('latency');
      tell(lives, events);
      for (const { name, durations } of lives.rows()) {
        const same = lives.rows().filter((row) => row.name === name);
        const { followed } = storyOf(events, name);
        if (same.length > 1) continue;
        assert.equal(followed.total_ns ?? 0, durations.count > 0 ? durations.max : 0);
        const { total_ns: total, waiting_ns: waiting } = followed;
        // It has none where all its polls are inlined.
        if (total === null || total === undefined) continue;
        assert.ok(waiting >= 0 && waiting <= total);
        assert.equal(followed.on_hart_ns, total - waiting);
      }
    }),
  );
});

t.test('who wakes a thread: a call that is given its address, or what it sleeps with', async (t) => {
  const [mine, other] = [{ ...fn('sh', 'thread'), address: addr(0xff00n) }, fn('cat', 'thread')];
  const [wait, sleep, timer] = [fn('syscall::wait', 'syscall'), fn('kernel::sleep'), fn('irq::timer', 'irq')];
  const [wakeup, wakeTask, look] = [fn('kernel::wakeup'), fn('try_to_wake_up'), fn('kernel::look')];
  const given = (name: string, value: string) => [{ name, value }];
  const track = { key: 93, stack: addr(0x9000n) };
  const on = (event: TraceEvent): TraceEvent => ({ ...event, thread: track }) as TraceEvent;
  const calls = (of: FunctionRef, from: number, values: CallBegin['arguments'], result?: string): TraceEvent[] => [
    call(of, 0, 1, values).begin(from),
    call(of, 0, 1, values).end(from + 1, from, result),
  ];
  const events = linked([
    call(mine, 0).begin(0),
    on(call(wait, 0).begin(10)),
    on(call(sleep, 0, 1, given('channel', '7')).begin(15)),
    call(mine, 0).end(20, 0),
    call(other, 0).begin(20),
    // Another channel; another argument of this value; no function that wakes; one that has woken nothing.
    ...calls(wakeup, 21, given('channel', '8')),
    ...calls(wakeup, 23, given('count', '7')),
    ...calls(look, 25, given('channel', '7')),
    ...calls(wakeTask, 27, given('p', '0xff00'), '0'),
    ...calls(wakeup, 30, given('channel', '7')),
    call(other, 0).end(40, 20),
    call(mine, 0).begin(40),
    on(call(sleep, 0, 1).end(41, 15)),
    call(mine, 0).end(50, 40),
    call(other, 0).begin(50),
    call(timer, 0, 1).begin(55),
    call(wakeTask, 0, 2, given('p', '0xff00')).begin(56),
    call(wakeTask, 0, 2).end(57, 56, '1'),
    call(timer, 0, 1).end(58, 55),
    call(other, 0).end(60, 50),
    call(mine, 0).begin(60),
    on(call(wait, 0).end(70, 10, '3')),
  ]);
  const { story, followed } = storyOf(events, 'syscall::wait');
  t.match(followed, { waits: 2, waiting_ns: 30, runnable_ns: 14 });
  t.same(storyText(story, options, 99).split('\n').slice(3, -1), [
    '     0 ns      60 ns     0  syscall::wait = 3',
    '     5 ns      26 ns     0    kernel::sleep(channel: 7)',
    '    10 ns      20 ns     0      off the hart: hart 0 runs cat; woken by kernel::wakeup of cat after 10 ns',
    '    40 ns      10 ns     0    off the hart: hart 0 runs cat; woken by try_to_wake_up in irq::timer after 6 ns',
  ]);
  t.notOk(hasUnknownWakes(story));
  t.ok(
    hasUnknownWakes(
      storyOf(
        events.filter((one) => !('function' in one) || one.function !== wakeup),
        'syscall::wait',
      ).story,
    ),
  );
  t.end();
});

t.test('what is nested deeper than anybody reads is counted', async (t) => {
  const deep = fn('deep');
  const times = Array.from({ length: 5000 }, (_, i) => i);
  const events = linked([
    ...times.map((i) => call(deep, 0, i).begin(i)),
    ...times.map((i) => call(deep, 0, 4999 - i).end(10_000 + i, 4999 - i)),
  ]);
  const { story, followed } = storyOf(events, 'deep', 1);
  t.equal(followed.total_ns, 14_999);
  t.equal(story.leftOut, 4500);
  t.match(storyText(story, options, 600), /\n4500 lines more\n$/);
});

t.test('a reset ends the story of a Future, and after a gap it may be that of another one', async (t) => {
  const [future] = futures;
  const root = { key: 1, future, address: addr(0x1000n) };
  const at = { hart: 0, root, future, address: root.address, depth: 0 };
  const polled = (time: number, state = suspend0, result: 'ready' | 'pending' = 'pending'): TraceEvent[] => [
    { type: 'poll-begin', ...at, time: nanos(time), state },
    { type: 'poll-end', ...at, time: nanos(time + 1), began: nanos(time), result, state: suspend0, chain: [] },
  ];
  const boots = [...polled(0, unresumed), { type: 'reset', time: nanos(50) } as const, ...polled(90, unresumed)];
  const { story } = storyOf(linked(boots), future.future, 1);
  t.equal(story.followed?.root.children.filter(({ kind }) => kind === 'poll').length, 1);
  const gap: TraceEvent = { type: 'gap', from: nanos(10), to: nanos(80) };
  const [first, last] = [polled(0, unresumed), polled(90, suspend0, 'ready')];
  t.equal(storyOf(linked([...first, ...last]), future.future, 1).followed.total_ns, 91);
  t.equal(storyOf(linked([...first, gap, ...last]), future.future, 1).followed.total_ns, null);
});
