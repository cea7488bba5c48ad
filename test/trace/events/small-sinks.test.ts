// Sinks with a few lines each: windows, threads, trees of calls.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { CallTree } from '../../../src/trace/events/call-tree.js';
import { type Landmark, Window } from '../../../src/trace/events/window.js';
import {
  type CallBegin,
  type FunctionRef,
  onEvents,
  ThreadSummary,
  type TraceEvent,
} from '../../../src/trace/index.js';
import { nanos } from '../stories.js';

const fn = (key: number, kind?: FunctionRef['kind']): FunctionRef => {
  return { key, name: `f${key}`, instance: `f${key}`, address: addr(1n), file: undefined, line: undefined, kind };
};
const begins = (time: number, more: Partial<CallBegin> = {}): CallBegin => {
  return { type: 'call-begin', time: nanos(time), hart: 0, function: fn(1), arguments: [], depth: 0, ...more };
};
const ends = (time: number, begin: CallBegin): TraceEvent => {
  const { hart, thread, function: of, depth, time: began } = begin;
  return { type: 'call-end', time: nanos(time), hart, thread, function: of, depth, began, begin };
};
const gap = (from: number, to: number): TraceEvent => ({ type: 'gap', from: nanos(from), to: nanos(to) });

t.test('a gap that ends behind a window belongs to it as well', async (t) => {
  const through = (from: number | undefined, to: number, ...events: TraceEvent[]) => {
    const passed: string[] = [];
    const window = new Window(
      onEvents(({ type }) => void passed.push(type)),
      from,
      to,
    );
    for (const event of events) window.event(event);
    return { passed, isEmpty: window.isEmpty };
  };
  t.same(through(undefined, 12, begins(0), gap(5, 20), begins(21)), { passed: ['call-begin', 'gap'], isEmpty: false });
  t.same(through(8, 12, begins(0), gap(5, 20)), { passed: ['gap'], isEmpty: false });
  t.same(through(8, 12, begins(0), gap(15, 20)), { passed: [], isEmpty: true });
});

t.test('an end without its begin belongs to the window in which it began', async (t) => {
  const through = (from: Landmark | undefined, to: Landmark | undefined) => {
    const passed: object[] = [];
    const sink = onEvents((event) => 'began' in event && passed.push([event.type, event.began, event.time]));
    const window = new Window(sink, from, to);
    // As they are read back: an end that came after its call was taken for lost.
    const late = (time: number, begin: CallBegin) => ({ ...ends(time, begin), wasLost: true, begin: undefined });
    const [first, second] = [begins(0), begins(11_000)];
    const [open, shut] = [begins(9_000, { function: fn(2) }), begins(21_000, { function: fn(3) })];
    const lost = (time: number, begin: CallBegin) => ({ ...ends(time, begin), type: 'call-lost' });
    const all = [first, lost(5_000, first), open, ends(9_500, open), late(10_000, first), second, lost(11_500, second)];
    for (const event of [...all, late(20_000, second), shut, ends(21_500, shut)]) window.event(event as TraceEvent);
    return { passed, isEmpty: window.isEmpty };
  };
  const opened = ['call-end', 9_000, 9_500];
  const inner = [opened, ['call-lost', 11_000, 11_500], ['call-end', 11_000, 20_000]];
  t.same(through(8_000, 10_500).passed, [opened]);
  t.same(through(8_000, 12_000).passed, inner);
  const called = (name: string) => (one: string) => one === name;
  t.same(through(called('f2'), called('f3')).passed, inner);
  t.same(through(undefined, 8_000).passed, [
    ['call-lost', 0, 5_000],
    ['call-end', 0, 10_000],
  ]);
  t.same(through(9_800, 10_500), { passed: [], isEmpty: true }, 'an end of what began before');
});

t.test('what a thread did in a gap is not known', async (t) => {
  const thread = { key: 1, stack: addr(0x100n), name: 'init:1' };
  const [first, second] = [0, 100].map((time) => begins(time, { thread, function: fn(2, 'thread') })) as [
    CallBegin,
    CallBegin,
  ];
  const offCpu = (...between: TraceEvent[]) => {
    const threads = new ThreadSummary();
    for (const event of [first, ends(10, first), ...between, second, ends(105, second)]) threads.event(event);
    return threads.rows().map(({ off_cpu_ns, on_cpu_ns }) => [off_cpu_ns, on_cpu_ns]);
  };
  t.same(offCpu(), [[90, 15]]);
  t.same(offCpu(gap(20, 90)), [[0, 15]]);
});

t.test('a function may call more others than a call takes arguments', async (t) => {
  const tree = new CallTree();
  const around = begins(0);
  tree.event(around);
  for (let key = 2; key < 150_000; key++) {
    const begin = begins(key, { function: fn(key), around });
    tree.event(begin);
    tree.event(ends(key, begin));
  }
  let nodes = 0;
  for (const _ of tree.nodes()) nodes++;
  t.equal(nodes, 149_999);
});
