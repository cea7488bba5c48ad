// Futures that no probe selects: a recording without a poll names their crates.
import t from 'tap';
import type { FutureType } from '../../../../src/async/futures/index.js';
import { cratesNotProbed, cratesNotProbedText } from '../../../../src/probes/kinds/poll/coverage-report.js';

function future(crate: string, polls = 1): FutureType {
  return { crate, polls: Array.from({ length: polls }, () => ({})) } as unknown as FutureType;
}

t.test('crates with a poll function that is not probed, the most Futures first', async (t) => {
  const own = future('server');
  const all = [
    own,
    future('redis'),
    future('tokio', 2),
    future('tokio'),
    future('core'),
    future('hyper', 0),
    future('axum'),
  ];
  t.same(
    cratesNotProbed({ all }, (one) => one === own),
    [
      { crate: 'tokio', futures: 2 },
      { crate: 'axum', futures: 1 },
      { crate: 'redis', futures: 1 },
    ],
    "neither the language's own, nor one whose Futures no code polls",
  );
});

t.test('four are named, with what takes the first', async (t) => {
  const crates = ['a', 'b', 'c', 'd', 'e', 'f'].map((crate, i) => ({ crate, futures: 9 - i }));
  t.equal(
    cratesNotProbedText(crates),
    "Futures of a (9), b (8), c (7), d (6) and 2 more crates are not probed: --probe 'poll:a::**' takes those of a\n",
  );
  t.equal(cratesNotProbedText([]), '');
});
