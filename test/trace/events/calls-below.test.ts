import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { CallsBelow, FunctionGraph, type FunctionRef, type TraceEvent, wholeText } from '../../../src/trace/index.js';
import { linked, nanos, tell } from '../stories.js';

const fn = (key: number, name: string): FunctionRef => {
  return { key, name, instance: name, address: addr(BigInt(key)), file: undefined, line: undefined };
};
const [root, callee, deep, shared] = [fn(1, 'root'), fn(2, 'callee'), fn(3, 'deep'), fn(4, 'shared')];
const call = (
  of: FunctionRef,
  depth: number,
  began: number,
  ended: number,
  inside: TraceEvent[] = [],
): TraceEvent[] => [
  { type: 'call-begin', function: of, hart: 0, depth, time: nanos(began), arguments: [] },
  ...inside,
  { type: 'call-end', function: of, hart: 0, depth, time: nanos(ended), began: nanos(began) },
];

t.test('levels, what is outside, and calls that an interrupt makes', async (t) => {
  const lines: string[] = [];
  const out = new FunctionGraph({
    textRecord: (text) => void lines.push(wholeText(text)),
    flush: () => {},
    close: () => {},
  });
  const sink = new CallsBelow(out, {
    depth: 2,
    isRoot: ({ function: { name } }) => name === 'root',
    isForeign: (_outer, inner) => inner.function === shared,
    interrupt: (begin, time, isOver) => out.interrupt(begin, time, isOver),
  });
  const events = [
    ...call(callee, 0, 0, 500),
    ...call(root, 0, 1000, 9000, [
      ...call(callee, 1, 2000, 4000, call(deep, 2, 2500, 3000)),
      ...call(shared, 1, 5000, 6000),
    ]),
  ];
  tell(sink, linked(events));
  t.same(lines.join('').split('\n').slice(7, -1), [
    '    0.000001 |   0)                |  root() {',
    '    0.000002 |   0)   2.000 us     |    callee();',
    '    0.000005 |   0)   ==========> |',
    '    0.000005 |   0)   1.000 us     |    shared();',
    '    0.000006 |   0)   <========== |',
    '    0.000009 |   0)   8.000 us     |  } /* root */',
  ]);
});
