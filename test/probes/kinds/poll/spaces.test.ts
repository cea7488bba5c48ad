// Processes of one program have their Futures at the same addresses: what is polled in one of them says nothing of the other.
import t from 'tap';
import type { FutureSet, FutureType } from '../../../../src/async/futures/index.js';
import { addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import { SpaceNumbers } from '../../../../src/calls/index.js';
import { ImpliedDrops } from '../../../../src/probes/kinds/poll/implied-drops.js';
import type { PollProbes } from '../../../../src/probes/kinds/poll/resolve.js';
import { PollTracer } from '../../../../src/probes/kinds/poll/tracer.js';
import { TaskBook } from '../../../../src/probes/kinds/poll/wakes.js';
import type { FutureRef, RootRef } from '../../../../src/trace/index.js';

const states = [{ name: 'Unresumed' }, { name: 'Returned' }, { name: 'Suspend0' }];
const future = { future: 'task', instance: 'task', typeOffset: 1, size: 64, states } as unknown as FutureType;
const ref = { key: 1, future: 'task', size: 64 } as FutureRef;
const [pc, self] = [addr(0x8020_0000n), addr(0x8040_0000n)];
const [first, second] = [addr(0x8025_4000n), addr(0x8025_8000n)];

function tracers() {
  const output = new EventOutput({ event: () => {} } as never);
  const coverage = [{ future, seen: 'exact', reason: undefined, help: undefined }] as const;
  const implied = new ImpliedDrops(output, { coverage, ref: () => ref, drops: [], hidden: new Set([future]) });
  const tasks = new TaskBook(new Map([[1, 16]]));
  const spaces = new SpaceNumbers();
  for (const root of [first, second]) spaces.of(root);
  const probe = { address: pc, future, ref, among: [], isAround: false, selfRegister: 'a0', poll: {} };
  const polls = { probes: [probe], sites: [] } as unknown as PollProbes;
  const tracer = new PollTracer({} as FutureSet, polls, output, { tasks, implied, spaces });
  const rootIn = (space: number | undefined, state?: string): RootRef => {
    const registers = { register: () => BigInt(self) };
    const look = { state: states.find(({ name }) => name === state), suspended: [], along: () => [] };
    const memory = { at: () => ({ as: () => look }) };
    const at = { pc, hart: 0, time: 0, space, registers };
    return tracer.begin(at as never, { around: undefined } as never, memory as never)?.root as RootRef;
  };
  return { tracer, tasks, implied, rootIn };
}

t.test('tasks at one address of two spaces are two tasks', async (t) => {
  const { tracer, rootIn } = tracers();
  const [one, other] = [rootIn(1, 'Unresumed'), rootIn(2, 'Unresumed')];
  t.same([one.space, other.space], [first, second]);
  t.not(one, other);
  t.equal(rootIn(1, 'Suspend0'), one);
  t.equal(rootIn(2, 'Suspend0'), other);
  tracer.dropped(one);
  t.equal(rootIn(2, 'Suspend0'), other, 'the end of the one is not that of the other');
  t.not(rootIn(1, 'Suspend0'), one);
  t.equal(rootIn(undefined, 'Suspend0').space, undefined);
});

t.test('a runtime knows its tasks by their space', async (t) => {
  const { tasks, rootIn } = tracers();
  const header = addr(self - 16n);
  const told = (id: number) => ({ runtime: 'tokio', id });
  tasks.saw(header, [7n], ([id]) => told(Number(id)));
  const own = rootIn(undefined);
  t.same(own.about, told(7));
  const there = rootIn(1);
  t.equal(there.about, undefined);
  t.equal(tasks.withHeader(header), own);
  t.equal(tasks.withFuture(self), own);
  tasks.polled(there, 'pending');
  t.equal(tasks.polledAt(self), undefined);
});

t.test('what is dropped in one space is not dropped in the other', async (t) => {
  const { implied, rootIn } = tracers();
  const [one, other] = [rootIn(1), rootIn(2)];
  for (const root of [one, other]) implied.polled({ root, ref, self }, 'pending', undefined);
  implied.dropped(
    { future: { ...ref, size: 128 }, address: addr(self - 8n), root: one, by: undefined, space: first },
    0,
  );
  t.ok(implied.wasEmitted(ref, self, first));
  t.notOk(implied.wasEmitted(ref, self, second));
});
