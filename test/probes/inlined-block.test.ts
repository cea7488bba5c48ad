// Where an inlined poll begins and ends, in control flow drawn by hand: each case is a shape that rustc has made of a real poll.
import t from 'tap';
import type { FlowStep } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { FlowGraph } from '../../src/probes/flow-graph.js';
import { inlinedBlock, unchangedFrom } from '../../src/probes/inlined-block.js';

type Kind = FlowStep['kind'];

interface Drawn {
  readonly graph: FlowGraph;
  marked(wanted: string): Set<number>;
}

/**
 * One line a node: its kind, where control goes, and `+` if it belongs to the copy, `*` if it is the switch there, `?` if
 * nobody knows, `f` if it writes to the frame.
 */
function drawn(...lines: readonly string[]): Drawn {
  const nodes = lines.map((line) => {
    const [, kind = '', targets = '', mark = ''] = /^(\w+) ?([\d,]*) ?([+*?f]?)$/.exec(line) ?? [];
    return { kind: kind as Kind, next: targets === '' ? [] : targets.split(',').map(Number), mark };
  });
  const steps = nodes.map(({ kind, mark }, i): FlowStep => {
    return { address: addr(i * 4), length: 4, kind, target: undefined, names: undefined, writesFrame: mark === 'f' };
  });
  const leaves = new Set(nodes.flatMap(({ kind }, i) => (kind === 'return' ? [i] : [])));
  const graph = new FlowGraph(
    steps,
    nodes.map(({ next }) => next),
    leaves,
  );
  const marked = (wanted: string): Set<number> => new Set(nodes.flatMap(({ mark }, i) => (mark === wanted ? [i] : [])));
  return { graph, marked };
}

function blockOf(...lines: readonly string[]): ReturnType<typeof inlinedBlock> {
  return blockIn(false, lines);
}

function blockIn(isWithinPoll: boolean, lines: readonly string[]): ReturnType<typeof inlinedBlock> {
  const { graph, marked } = drawn(...lines);
  const [unknown, switches] = [marked('?'), marked('*')];
  const found = inlinedBlock(graph, {
    copy: new Set([...marked('+'), ...switches]),
    shared: new Set(),
    isForeign: (node) => !unknown.has(node),
    isSwitch: (node) => switches.has(node),
    isWithinPoll: () => isWithinPoll,
  });
  if (typeof found === 'string') return found;
  const { again, beforeLoop, ...block } = found;
  const moved = [...beforeLoop].filter(([, places]) => places.length > 0);
  const more = { ...(again.length > 0 && { again }), ...(moved.length > 0 && { beforeLoop: new Map(moved) }) };
  return { ...block, ...more } as typeof found;
}

t.test('an executor that spins: the switch tells polls apart', async (t) => {
  // Pending: the state is stored, and the loop goes on at the switch.
  const spins = ['next 1', 'indirect 2,3 *', 'store 1 +', 'store 4 +', 'return'];
  t.same(blockOf(...spins), { begins: [1], ends: [4], again: [1] });
  // The compiler doubled the switch behind what the function around counts.
  const doubled = ['indirect 1,3 *', 'store 2 +', 'next 4', 'store 5 +', 'indirect 1,3 *', 'return'];
  t.same(blockOf(...doubled), { begins: [0, 4], ends: [5], again: [4] });
  // Tests one after the other are one switch.
  const tests = ['branch 1,2 *', 'branch 2,3 *', 'store 0 +', 'return'];
  t.same(blockOf(...tests), { begins: [0], ends: [3], again: [0] });
  // Which is doubled, too, behind what the function around stores.
  const unknown = ['branch 1,2 *', 'store 3 +', 'return', 'store 4', 'branch 1,2 *'];
  t.equal(blockOf(...unknown), 'one poll may follow another without a branch');
});

t.test('a loop at the beginning is the poll’s own only where another poll is around', async (t) => {
  const loops = ['next 1', 'branch 0,2 +', 'store 3 +', 'return'];
  t.equal(blockOf(...loops), 'one poll may follow another without a branch');
  t.same(blockIn(true, loops), { begins: [1], ends: [3] });
});

t.test(
  'a loop of the poll’s own, whose first proof lies in it: what leads into the loop stands for that',
  async (t) => {
    const loops = ['branch 1,6', 'next 2', 'next 3 +', 'branch 2,4 +', 'store 5 +', 'return', 'return'];
    t.same(blockIn(true, loops), { begins: [3], ends: [5], beforeLoop: new Map([[3, [1]]]) });
    const twoWays = ['branch 1,2', 'next 3', 'jump 3', 'next 4 +', 'branch 3,5 +', 'store 6 +', 'return'];
    t.same(blockIn(true, twoWays), { begins: [4], ends: [6], beforeLoop: new Map([[4, [1, 2]]]) });
    // The branch into it may also pass it by; a call of the host's is over before the poll begins.
    t.same(blockIn(true, ['branch 1,4', 'next 2 +', 'branch 1,3 +', 'store 4 +', 'return']), {
      begins: [2],
      ends: [4],
    });
    t.same(blockIn(true, ['call 1', 'next 2 +', 'branch 1,3 +', 'store 4 +', 'return']), { begins: [2], ends: [4] });
  },
);

t.test('one way in, after the host has decided to poll; the host tests the result', async (t) => {
  const found = blockOf(
    'branch 1,7', // is the task cancelled?
    'next 2 +', // loads the state: may be run early
    'indirect 3,4 +', // the dispatch
    'store 5 +',
    'call 5 +',
    'next 6', // behind the poll: the result may overwrite the Future here
    'branch 7,7',
    'return',
  );
  t.same(found, { begins: [2], ends: [5] });
});

t.test('what the optimiser has moved before the decision proves nothing', async (t) => {
  const found = blockOf('next 1 +', 'branch 2,4', 'branch 3,3 +', 'return', 'return');
  t.same(found, { begins: [2], ends: [3] });
});

t.test('a new Future skips the dispatch: two ways in, the second one also from the first', async (t) => {
  const found = blockOf('branch 1,2', 'branch 2,4 +', 'call 3 +', 'store 4 +', 'return');
  t.same(found, { begins: [1, 2], ends: [4] });
});

t.test('polled in a loop that parks in between', async (t) => {
  const found = blockOf('branch 1,1 +', 'branch 2,3', 'call 0', 'return');
  t.same(found, { begins: [0], ends: [1] });
});

t.test('the test of a `?` is run when the Future has been dropped: no second poll', async (t) => {
  const found = blockOf(
    'branch 1,5 +', // the dispatch
    'store 2 +', // the state: Returned
    'call 3', // the function around drops the Future
    'branch 4,5 +', // was it an error?
    'return',
    'return',
  );
  t.same(found, { begins: [0], ends: [2, 5] });
  // What stores something there may be the next poll.
  const again = blockOf('branch 1,5 +', 'store 2 +', 'call 3', 'branch 4,5 +', 'store 5 +', 'return');
  t.match(again, { begins: [0, 3] });
});

t.test('a panic is no end', async (t) => {
  t.same(blockOf('branch 1,2 +', 'call', 'return'), { begins: [0], ends: [2] });
});

t.test('code of unknown origin in the middle divides nothing', async (t) => {
  t.same(blockOf('branch 1,2 +', 'branch 2,3 ?', 'store 3 +', 'return'), { begins: [0], ends: [3] });
});

t.test('refused: foreign code in the middle, and nothing to tell two polls apart', async (t) => {
  t.equal(blockOf('branch 1,2 +', 'branch 2,3', 'store 3 +', 'return'), 'its code is divided by other code');
  t.equal(
    blockOf('branch 1,3', 'branch 2,4 +', 'next 3', 'store 4 +', 'return'),
    'one poll may follow another without a branch',
  );
  t.equal(blockOf('return', 'store 0 +'), 'no way leads to its code');
});

t.test('an end may be seen later, until something is written or the next poll begins', async (t) => {
  const behind = (end: number, begins: readonly number[], ...lines: readonly string[]): readonly number[] =>
    unchangedFrom(drawn(...lines).graph, end, { begins, ends: [end], again: [], beforeLoop: new Map() });
  t.same(behind(1, [], 'branch 1,2', 'next 2', 'next 3', 'store 4', 'return'), [1, 2, 3], 'other ways lead to 2');
  t.same(behind(0, [], 'next 1', 'next 2 f', 'next 3', 'return'), [0, 1], 'the Future may lie in the frame');
  t.same(behind(0, [], 'store 1', 'return'), [0]);
  t.same(behind(0, [], 'call 1', 'return'), [0]);
  t.same(behind(0, [2], 'next 1', 'next 2', 'next 3', 'return'), [0, 1], 'the next poll begins at 2');
  t.same(behind(0, [], 'next 0').length, 8, 'a loop of nothing');
});
