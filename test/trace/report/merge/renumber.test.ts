// Two machines of one program have the same addresses, and nothing else in common.
import t from 'tap';
import { addr } from '../../../../src/base/addr.js';
import { Processes } from '../../../../src/trace/events/processes.js';
import {
  type CallBegin,
  type FunctionRef,
  LockSummary,
  lockArguments,
  lockRef,
  type TraceEvent,
} from '../../../../src/trace/index.js';
import { Numbers, Renumber } from '../../../../src/trace/report/merge/renumber.js';
import { nanos } from '../../stories.js';

const nowhere = { file: undefined, line: undefined };
const locks = [1, 2].map((key) => lockRef(`L${key}`, { key, address: addr(BigInt(key)), ...nowhere }));
const [a, b] = locks as [FunctionRef, FunctionRef];

function takes(of: FunctionRef, time: number): [CallBegin, TraceEvent] {
  const values = lockArguments({ lock: `0x${of.key}`, isShared: false, isAttempt: false, by: 'f' });
  const at = { hart: 0, function: of, depth: 0 };
  const begin: CallBegin = { type: 'call-begin', ...at, time: nanos(time), arguments: values };
  return [begin, { type: 'call-end', ...at, time: nanos(time + 1), began: begin.time, begin, result: 'taken' }];
}

function releases({ key }: FunctionRef, time: number): TraceEvent {
  const place = {
    key,
    name: 'unlock',
    category: 'lock',
    address: addr(9n),
    lock: `0x${key}`,
    by: { function: 'f', ...nowhere },
  };
  return { type: 'place', time: nanos(time), hart: 0, place };
}

t.test('a lock of each: no machine waits for the other', async (t) => {
  const numbers = new Numbers();
  const told = [
    [...takes(a, 0), takes(b, 10)[0]],
    [...takes(b, 2), takes(a, 12)[0], releases(b, 20)],
  ].map((events, index) => {
    const renumber = new Renumber(numbers, { index, offset: 0 });
    return events.map((event) => renumber.event(event));
  });
  const summary = new LockSummary();
  const timeOf = (event: TraceEvent): number => (event.type === 'gap' ? event.to : event.time);
  for (const event of told.flat().sort((one, other) => timeOf(one) - timeOf(other))) summary.event(event);
  t.same(summary.findings(), []);
  const rows = summary.rows().map(({ address, taken, waiting, held_ns }) => [address, taken, waiting, held_ns]);
  t.same(rows.sort(), [
    ['0x1 of trace 2', 0, 1, null],
    ['0x1', 1, 0, null],
    ['0x2 of trace 2', 1, 0, 17],
    ['0x2', 0, 1, null],
  ]);
});

t.test('a process of each', async (t) => {
  const numbers = new Numbers();
  const seen = new Processes();
  const thread = { key: 0, stack: addr(64n), space: addr(0x1000n) };
  const begin = { ...takes(a, 5)[0], thread };
  for (const index of [0, 1]) seen.on(new Renumber(numbers, { index, offset: 0 }).event(begin));
  t.equal(seen.all.length, 2);
});
