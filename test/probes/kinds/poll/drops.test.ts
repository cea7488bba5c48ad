// Whose a Future is that is dropped where another one lay before, on drops told by hand.
import t from 'tap';
import type { FutureType } from '../../../../src/async/futures/index.js';
import { type Addr, addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import type { DropFunction } from '../../../../src/probes/kinds/poll/drop-functions.js';
import { DropTracer } from '../../../../src/probes/kinds/poll/drops.js';
import { ImpliedDrops } from '../../../../src/probes/kinds/poll/implied-drops.js';
import { TaskBook } from '../../../../src/probes/kinds/poll/wakes.js';
import type { Cancelled, FutureRef, RootRef, TraceEvent } from '../../../../src/trace/index.js';

const states = [
  { name: 'Unresumed', value: 0 },
  { name: 'Returned', value: 1 },
  { name: 'Suspend0', value: 3 },
];
const suspended = Uint8Array.of(3);
const type = (future: string, size: number) =>
  ({ future, instance: future, size, states, discriminant: { offset: 0, size: 1 } }) as unknown as FutureType;
const [outer, inner] = [type('outer', 64), type('inner', 16)];
const refs = new Map(
  [outer, inner].map((one, i) => [one, { key: i + 1, future: one.future, size: one.size } as FutureRef]),
);
const ref = (future: FutureType): FutureRef => refs.get(future) as FutureRef;
const dropOf = (future: FutureType, address: number): DropFunction => ({
  ...{ address: addr(address), size: 8, name: `drop of ${future.future}`, targets: [{ future, offset: 0 }] },
  ...{ ofTask: true, when: undefined },
});
const functions = new Map([outer, inner].map((future, i) => [future, dropOf(future, 0x100 * (i + 1))]));

function tracing() {
  const events: Cancelled[] = [];
  const output = new EventOutput({ event: (event: TraceEvent) => events.push(event as Cancelled) } as never);
  const all = [...functions.values()];
  const implied = new ImpliedDrops(output, { coverage: [], ref, drops: all, hidden: new Set() });
  const tasks = new TaskBook(new Map());
  const polls = { dropped: (root: RootRef) => tasks.polled(root, 'over') };
  const context = { output, arch: { arguments: ['a0'] }, elf: {}, debug: undefined };
  const known = { polls: polls as never, tasks, implied, ref, allows: () => true };
  const tracer = new DropTracer(all, known, context as never);
  let tasksMade = 0;
  return {
    tracer,
    /** A task that is pending. */
    task(future: FutureType, address: number): RootRef {
      const root = { key: ++tasksMade, future: ref(future), address: addr(address), space: undefined };
      tasks.add(root, undefined);
      tasks.polled(root, 'pending');
      return root;
    },
    /** What is dropped, and whose it was. */
    drop(future: FutureType, address: number, open?: RootRef): unknown[] {
      const pc = functions.get(future)?.address as Addr;
      const around = open && { payload: { isPoll: true, root: open }, parent: undefined };
      const memory = { at: () => ({ bytes: suspended }) };
      const at = { pc, hart: 0, registers: { register: () => BigInt(address) }, space: 0 };
      tracer.hit(at as never, { around, returnAddress: undefined, memory } as never)?.();
      return events.splice(0).map((event) => [event.future.future, event.root?.key]);
    },
  };
}

t.test('a task that lies where another one was dropped has its own Futures', async (t) => {
  const { task, drop } = tracing();
  task(outer, 0x1000);
  t.same(drop(outer, 0x1000), [['outer', 1]]);
  t.same(drop(inner, 0x1010), [['inner', 1]], 'what the dropped task holds is dropped next');
  const second = task(outer, 0x1000);
  t.same(drop(inner, 0x1010, second), [['inner', 2]]);
  const third = task(outer, 0x2000);
  t.same(drop(inner, 0x1010, third), [['inner', 1]], 'a task that drops another one in its poll holds it not');
});

t.test('a Future that lies where a task of its type was dropped is dropped, too', async (t) => {
  const { task, drop, tracer } = tracing();
  task(inner, 0x3000);
  t.same(drop(inner, 0x3000), [['inner', 1]]);
  t.same(drop(inner, 0x3000), [], "the runtime's function and that of the Future are one drop");
  const other = task(outer, 0x1000);
  t.same(drop(inner, 0x3000, other), [['inner', 1]]);
  task(inner, 0x3000);
  t.same(drop(inner, 0x3000), [['inner', 3]]);
  tracer.forget();
  t.same(drop(inner, 0x3000, other), [['inner', 2]], 'behind a reset nothing is known of that task');
});

t.test(
  'a task whose end may be among events that are missing is not told as dropped with what lies there',
  async (t) => {
    const { task, drop, tracer } = tracing();
    task(outer, 0x1000);
    tracer.missed();
    const other = task(outer, 0x5000);
    t.same(drop(inner, 0x1000, other), [['inner', other.key]], 'its memory may be of another one by now');
    t.same(drop(outer, 0x1000), [['outer', 1]], 'of its own type it is the task');
    const polledAgain = task(outer, 0x1000);
    t.same(drop(inner, 0x1000, other), [
      ['outer', polledAgain.key],
      ['inner', polledAgain.key],
    ]);
  },
);
