// Verdicts on events whose truth is known: what only whole recordings show is in test/qemu/check.test.ts.
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import { proposedBudget } from '../../src/check/budget-file.js';
import { Checker } from '../../src/check/checker.js';
import { sections } from '../../src/check/sections/index.js';
import type { CallBegin, PollBegin, TraceEvent } from '../../src/trace/index.js';
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

/** `probed`: the names of probes. */
function checked(key: string, value: object, events: readonly TraceEvent[], probed: readonly string[] = []) {
  const none = { tasks: [], ready: [], functions: ['any'], once: [] };
  const kind = sections.find((one) => one.key === key);
  if (!kind) throw new Error(key);
  const section = kind.parse(value as never, key);
  const checker = new Checker({ ...proposedBudget(none, 'b.json'), sections: [{ kind, section }] });
  checker.begin(info);
  for (const event of events) checker.event(event);
  const probes = probed.map(
    (name, i) => ({ name, address: addr(BigInt(i)), engine: 'target', why: undefined }) as const,
  );
  checker.end({ probes });
  const verdicts = checker.verdicts();
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
