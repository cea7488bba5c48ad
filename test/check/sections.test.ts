// Verdicts on events whose truth is known: what only whole recordings show is in test/qemu/check.test.ts.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { proposedBudget } from '../../src/check/budget-file.js';
import { Checker } from '../../src/check/checker.js';
import { sections } from '../../src/check/sections/index.js';
import type { CallBegin, PollBegin, RecordingFacts, TraceEvent } from '../../src/trace/index.js';
import { futures, info, nanos, unresumed } from '../trace/stories.js';

const [future] = futures;
const root = { key: 1, future, address: addr(0x1000n) };
const at = (time: number) => ({ time: nanos(time), hart: 0, root, future, address: root.address, depth: 0 });
const polls = (time: number): PollBegin => ({ type: 'poll-begin', ...at(time), state: unresumed });
const enters = (name: string, time: number): CallBegin => {
  const place = { address: addr(0x80n), file: undefined, line: undefined };
  const of = { key: name.charCodeAt(0), name, instance: name, ...place };
  return { type: 'call-begin', time: nanos(time), hart: 0, function: of, depth: 0, arguments: [] };
};

/** `probed`: the names of probes, and what else is known at the end. */
function checked(
  key: string,
  value: object,
  events: readonly TraceEvent[],
  probed: readonly string[] = [],
  { recording, ...more }: { readonly recording?: Partial<RecordingFacts>; readonly unseenReturn?: string } = {},
) {
  const none = { tasks: [], ready: [], functions: ['any'], once: [] };
  const kind = sections.find((one) => one.key === key);
  if (!kind) throw new Error(key);
  const section = kind.parse(value as never, key);
  const checker = new Checker({ ...proposedBudget(none, 'b.json'), sections: [{ kind, section }] });
  checker.begin(info);
  for (const event of events) checker.event(event);
  const probes = probed.map(
    (name, i) => ({ name, address: addr(BigInt(i)), engine: 'target', why: undefined, ...more }) as const,
  );
  checker.end({ probes, recording: recording as RecordingFacts | undefined });
  const verdicts = checker.verdicts().filter(({ section }) => section !== 'trace');
  return { state: verdicts.map(({ state }) => state).join(' '), verdicts, updated: checker.updated(0)[key] };
}

t.test('a poll that was lost too early counts once, with all of its time', async (t) => {
  const begin = polls(0);
  const lost: TraceEvent = { type: 'poll-lost', ...at(50), begin, began: begin.time };
  const result = { result: 'ready', state: undefined, chain: [] } as const;
  const end: TraceEvent = { type: 'poll-end', ...at(100), begin, began: begin.time, ...result, wasLost: true };
  const limits = { 'poll:a': { total: '120ns' } };
  t.match(checked('times', limits, [begin, lost, end]), { state: 'kept', updated: { 'poll:a': { total: '100ns' } } });
  t.match(checked('times', limits, [begin, lost]), { verdicts: [{ value: 50 }] }, 'so long it took at least');
});

t.test('of events at one time of the clock the trace has the order', async (t) => {
  const events = [enters('f', 5), enters('g', 5)];
  t.match(checked('order', [['fn:f', 'fn:g']], events), { state: 'kept', updated: [['fn:f', 'fn:g']] });
  const wrong = checked('order', [['fn:g', 'fn:f']], events);
  t.match(wrong, { state: 'broken', updated: [['fn:f', 'fn:g']] });
  t.match(wrong.verdicts, [{ measured: 'fn:f came after 5 ns, then fn:g after 5 ns' }]);
});

t.test('a stretch is of one boot', async (t) => {
  const boot = (time: number) => [enters('f', time), enters('g', time + 50)];
  const limit = [{ from: 'fn:f', to: 'fn:g', max: '100ns' }];
  const reset: TraceEvent = { type: 'reset', time: nanos(1000) };
  t.match(checked('between', limit, [enters('f', 0), reset, ...boot(2000)]).verdicts, [{ state: 'kept', value: 50 }]);
  const untilReset = [{ from: 'fn:f', to: 'reset', max: '100ns' }];
  t.match(checked('between', untilReset, [enters('f', 0), reset]).verdicts, [{ state: 'broken', value: 1000 }]);
});

t.test('nothing is said to have never come that was not looked for', async (t) => {
  t.equal(checked('never', ['poll:f'], [enters('f', 0)], ['f']).state, 'unseen', 'the probe of f is of a function');
  t.equal(checked('never', ['poll:f'], [enters('f', 0)], ['f', 'f']).state, 'kept', 'and one is of the Future');
  t.equal(checked('never', ['fn:f'], [], ['f']).state, 'kept');
  const wake: TraceEvent = {
    ...{ type: 'wake', time: nanos(9), hart: 0, waker: root.address, root: { ...root, future: futures[1] }, by: root },
    caller: { function: undefined, file: undefined, line: undefined },
  };
  t.match(checked('never', ['wake:a'], [polls(0)]).verdicts, [
    { state: 'unseen', measured: /no wake is in the trace/ },
  ]);
  t.equal(checked('never', ['wake:a'], [polls(0), wake]).state, 'kept');
});

t.test('where records are missing, what may be among them breaks and keeps nothing', async (t) => {
  const lossy = { recording: { missing: 3 } };
  const three = [enters('f', 0), enters('f', 1), enters('f', 2)];
  const counts = (bounds: unknown) => checked('counts', { 'fn:f': bounds }, three, ['f'], lossy).verdicts;
  t.match(counts(5), [{ state: 'unseen', measured: 'at least 3: 3 records are missing' }]);
  t.match(counts(3), [{ state: 'unseen' }]);
  t.match(counts({ max: 2 }), [{ state: 'broken' }]);
  t.match(counts({ min: 3 }), [{ state: 'kept' }]);
  t.match(checked('never', ['fn:oom'], three, ['f', 'oom'], lossy), { state: 'unseen' });
  t.match(checked('never', ['reset'], three, ['f'], lossy), { state: 'unseen' });
  const alive = checked('alive', { a: 0 }, [polls(0)], ['a'], lossy);
  t.match(alive, { state: 'unseen', verdicts: [{ measured: /3 records are missing/ }] });
  const ended = { begin: polls(5), began: nanos(5), result: 'ready', state: undefined, chain: [] } as const;
  const task: TraceEvent[] = [ended.begin, { type: 'poll-end', ...at(6), ...ended }];
  t.match(checked('findings', { allow: [] }, task, ['a'], lossy), { state: 'unseen' });
  t.match(checked('findings', { allow: [] }, task, ['a']), { state: 'kept' });
});

t.test('a poll that was lost before the end of the trace has no length', async (t) => {
  const outer = polls(0);
  const inner: PollBegin = { ...polls(10), future: futures[1], depth: 1, around: outer };
  const of = { ...at(1000), future: futures[1], depth: 1 };
  const rest: TraceEvent[] = [
    { type: 'poll-lost', ...of, begin: inner, began: inner.time },
    { type: 'poll-end', ...at(1000), begin: outer, began: outer.time, result: 'ready', state: undefined, chain: [] },
  ];
  const limit = { 'poll:b': { max: '100ns' } };
  t.match(checked('times', limit, [outer, inner, ...rest, polls(2000)]).verdicts, [
    { state: 'unseen', measured: 'no end of it was seen' },
  ]);
});

t.test('a call that hangs is said, and so are calls beside it', async (t) => {
  const hangs = enters('f', 0);
  const lost: TraceEvent = { ...hangs, type: 'call-lost', time: nanos(900), begin: hangs, began: hangs.time };
  const limit = { 'fn:f': { max: '100ns' } };
  t.match(checked('times', limit, [hangs, lost]).verdicts, [{ state: 'unseen', measured: 'no end of it was seen' }]);
  const begin = enters('f', 0);
  const end: TraceEvent = { ...begin, type: 'call-end', time: nanos(50), begin, began: begin.time };
  t.match(checked('times', limit, [begin, end, hangs, lost]).verdicts, [
    { state: 'kept', measured: '50 ns, at 0 ns, without 1 whose end was not seen' },
  ]);
});

t.test('what nothing could have shown is not said to have never come', async (t) => {
  const blind = { unseenReturn: 'it is short' };
  t.match(checked('never', ['return:f'], [enters('f', 0)], ['f'], blind).verdicts, [
    { state: 'unseen', measured: 'that f returns is not seen (it is short)' },
  ]);
  t.match(checked('never', ['fn:g'], [enters('f', 0)], ['f', 'g'], blind), { state: 'kept' });
  const inside: TraceEvent = {
    type: 'derived-poll',
    ...at(5),
    future: futures[1],
    result: 'pending',
    state: undefined,
  };
  const inlined = { state: 'unseen', measured: /the compiler inlined polls of b/ };
  t.match(checked('never', ['poll:b'], [polls(0), inside], ['a', 'b']).verdicts, [inlined]);
  t.match(checked('counts', { 'poll:b': { max: 5 } }, [polls(0)], ['a'], { recording: { unseen: ['b'] } }).verdicts, [
    inlined,
  ]);
  t.match(checked('findings', { allow: [] }, [enters('f', 0)], ['f']).verdicts, [
    { state: 'unseen', measured: 'no task is in the trace' },
  ]);
});

t.test('a stretch whose end never came says which end that was, and none leads over a gap', async (t) => {
  const f = enters('f', 0);
  const generic = { ...f, function: { ...f.function, instance: 'f<u32>' } };
  t.match(checked('between', [{ from: 'fn:f<u32>', to: 'fn:g', max: '1ns' }], [generic], ['f', 'g']).verdicts, [
    { state: 'unseen', measured: 'never came' },
  ]);
  const hung = [f, enters('g', 50), enters('f', 100), enters('h', 900)];
  t.match(checked('between', [{ from: 'fn:f', to: 'fn:g', max: '60ns' }], hung).verdicts, [
    { state: 'kept', value: 50, measured: '50 ns, from 0 ns on, and the last fn:f had none behind it after 800 ns' },
  ]);
  const gap: TraceEvent = { type: 'gap', from: nanos(1), to: nanos(800) };
  const limit = [{ from: 'fn:f', to: 'fn:g', max: '100ns' }];
  t.match(checked('between', limit, [f, gap, enters('g', 900)], ['f', 'g']), { state: 'unseen' });
});

t.test('a whole trace of another program lacks nothing, although nothing is known of its recording', async (t) => {
  const checker = new Checker(proposedBudget({ tasks: [], ready: [], functions: ['f'], once: [] }, 'b.json'));
  checker.begin(info);
  checker.event(enters('f', 0));
  checker.end();
  t.strictSame(
    checker.verdicts().filter(({ section }) => section === 'trace'),
    [],
  );
});

t.test('a task that has ended is one of the trace, however many have', async (t) => {
  const ends = (key: number, future = futures[1]): TraceEvent[] => {
    const of = { ...at(key), root: { key, future, address: addr(BigInt(16 * key)) }, future };
    const begin: PollBegin = { type: 'poll-begin', ...of, state: unresumed };
    const end = { begin, began: begin.time, result: 'ready', state: undefined, chain: [] } as const;
    return [begin, { type: 'poll-end', ...of, address: begin.root.address, ...end }];
  };
  const many = Array.from({ length: 10_001 }, (_, key) => ends(key)).flat();
  t.match(checked('alive', { a: 0 }, [...many, ...ends(20_000, futures[0])]).verdicts, [
    { state: 'kept', measured: '0' },
  ]);
});

t.test('findings that are made of stops are said to be left out', async (t) => {
  const begin = polls(0);
  const end = { begin, began: begin.time, result: 'ready', state: undefined, chain: [] } as const;
  const long: TraceEvent[] = [begin, { type: 'poll-end', ...at(5e9), ...end }];
  t.match(checked('findings', { allow: [] }, long, ['a']), { state: 'broken' });
  const stood = { recording: { stoppedAt: ['1000'] } };
  t.match(checked('findings', { allow: [] }, long, ['a'], stood).verdicts, [
    { state: 'kept', measured: 'none, without 1 about long polls or waits, in which tracing took time' },
  ]);
});
