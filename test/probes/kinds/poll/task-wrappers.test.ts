// Which tasks of a library are probed because of what they hold: types told by hand.
import t from 'tap';
import type { FutureSet, FutureType, HeldFuture } from '../../../../src/async/futures/index.js';
import { taskWrappers } from '../../../../src/probes/kinds/poll/task-wrappers.js';

const DYN = 'dyn core::future::future::Future<Output=()>';

let offset = 0;
const type = (states: number, ...holds: Partial<HeldFuture>[]): FutureType =>
  ({
    ...{ typeOffset: ++offset, polls: [{}], inlined: [], holds: [] },
    states: Array.from({ length: states }, () => ({
      holds: holds.map((held) => ({ hops: [], repeats: [], ...held })),
    })),
  }) as unknown as FutureType;

t.test('a task of a library that may hold a handler behind a dyn Future', async (t) => {
  const handler = type(1);
  const connection = type(1, { future: undefined, vtable: 8, typeName: DYN, hops: [{}] as never });
  const other = type(1, { future: undefined, vtable: 8, typeName: 'dyn other', hops: [{}] as never });
  const inner = type(1, { future: connection });
  // A box that is spawned is what it holds.
  const box = type(0);
  const all = [handler, connection, other, inner, box];
  const futures = { all, behindDyn: (name: string) => (name === DYN ? [handler] : []) } as unknown as FutureSet;
  const tasks = new Map([connection, other, box].map(({ typeOffset }) => [typeOffset, 0])) as never;
  t.same([...taskWrappers(futures, { tasks }, new Set([handler])).keys()], [connection], 'no task: the one around it');
  const around = new Map([[inner.typeOffset, 0]]) as never;
  t.same([...taskWrappers(futures, { tasks: around }, new Set([handler])).keys()], [inner], 'at any depth');
});
