// Await trees that end early: a Future that is said to hold itself, as in damaged memory, and one that holds more than are read.
import t from 'tap';
import type { FutureSet, FutureType, HeldFuture } from '../../../src/async/futures/index.js';
import { AwaitTrees } from '../../../src/async/tasks/index.js';
import type { TaskContext } from '../../../src/async/tasks/runtime.js';
import { findWaits } from '../../../src/async/tasks/waits.js';
import { type Addr, addr } from '../../../src/base/addr.js';

t.test('a box that leads back', async (t) => {
  const held = { role: 'field', path: 'next', size: 8, typeName: 'Node', offset: 0, repeats: [], guards: [] };
  const hops = [{ offset: 0, repeats: [], guards: [], to: { kind: 'one' } }];
  const future = { kind: 'impl', instance: 'Node', size: 8, typeOffset: 1, states: [] } as unknown as FutureType;
  const itself = { ...held, hops, vtable: undefined, maybe: false, future } as HeldFuture;
  Object.assign(future, { holds: [itself] });
  const next = new Map([
    [0x1000n, 0x2000n],
    [0x2000n, 0x1000n],
  ]);
  let reads = 0;
  const read = async (address: Addr): Promise<Uint8Array> => {
    reads++;
    return new Uint8Array(BigUint64Array.of(next.get(address) ?? 0n).buffer);
  };
  const tree = await new AwaitTrees({} as FutureSet, { read }).read(future, addr(0x1000n));
  t.match(tree, { cut: undefined, awaits: [{ address: 0x2000n, cut: undefined }] });
  t.match(tree.awaits[0]?.awaits, [{ address: 0x1000n, cut: 'cycle', awaits: [] }]);
  t.equal(reads, 3);
});

t.test('of a tree that was cut not all waits are known', async (t) => {
  const future = 'core::future::pending::Pending';
  const leaf = { kind: 'impl', instance: future, future, size: 1, typeOffset: 2, states: [], holds: [] };
  const all = { role: 'field', path: '[*]', size: 1, typeName: future, offset: 0, repeats: [], guards: [] };
  const hops = [{ offset: 0, repeats: [], guards: [], to: { kind: 'slice', length: 8, stride: 1 } }];
  const holds = [{ ...all, hops, vtable: undefined, maybe: false, future: leaf }];
  const root = { kind: 'impl', instance: 'Join', future: 'Join', size: 16, typeOffset: 1, states: [], holds };
  const context = { isBlocked: () => false, debug: {} } as unknown as TaskContext;
  for (const count of [20, 20_000]) {
    const memory = {
      read: async (address: Addr, length: number) =>
        address === 0x1000n ? new Uint8Array(BigUint64Array.of(0x2000n, BigInt(count)).buffer) : new Uint8Array(length),
    };
    const tree = await new AwaitTrees({} as FutureSet, memory).read(root as unknown as FutureType, addr(0x1000n));
    const task = { ...tree, header: undefined };
    const { of, open } = await findWaits({ ...context, memory } as TaskContext, [task]);
    t.equal(of.get(task)?.length, Math.min(count, 9999), `${count} in the join`);
    t.equal(open.has(task), count > 10_000);
  }
});

t.test('vectors of vectors whose Futures are done are not read for ever', async (t) => {
  const future = { kind: 'impl', instance: 'Leaf', future: 'Leaf', size: 1, typeOffset: 2, states: [], holds: [] };
  const place = { offset: 0, repeats: [], guards: [] };
  const slice = { ...place, to: { kind: 'slice', length: 8, stride: 16 } };
  // A discriminant that says: it is done.
  const isThere = { offset: 0, size: 1, values: [{ low: 1n, high: 1n }], within: true, repeats: 0 };
  const leaf = { ...place, guards: [isThere], role: 'field', path: 'all[*][*]', size: 1, typeName: 'Leaf', future };
  const holds = [{ ...leaf, hops: [slice, slice], vtable: undefined, maybe: false }];
  const root = { kind: 'impl', instance: 'All', size: 16, typeOffset: 1, states: [], holds };
  let reads = 0;
  const read = async (): Promise<Uint8Array> => {
    reads++;
    return new Uint8Array(BigUint64Array.of(0x2000n, 1_000_000n).buffer);
  };
  const tree = await new AwaitTrees({} as FutureSet, { read }).read(root as unknown as FutureType, addr(0x1000n));
  t.ok(reads < 200_000, `${reads} reads`);
  t.ok(tree.awaits.length > 0 && tree.awaits.every(({ cut }) => cut === 'depth'), 'and it says so');
});

t.test('behind a box: all of an array, and a discriminant behind what it says to be there', async (t) => {
  const future = { kind: 'impl', instance: 'Leaf', future: 'Leaf', size: 8, typeOffset: 2, states: [], holds: [] };
  const box = { offset: 0, repeats: [], guards: [], to: { kind: 'one' } };
  const leaf = { role: 'field', path: 'b', offset: 0, size: 8, typeName: 'Leaf', future, hops: [box], maybe: false };
  const isThere = { size: 1, values: [{ low: 1n, high: 1n }], within: true };
  const four = [{ count: 4, stride: 8 }];
  const block = new Uint8Array(64);
  block[40] = 1;
  block[56] = 1;
  const read = async (address: Addr, length: number): Promise<Uint8Array> =>
    address === 0x1000n ? new Uint8Array(BigUint64Array.of(0x2000n).buffer) : block.slice(0, length);
  for (const [repeats, guards, wanted] of [
    [four, [], [0, 8, 16, 24]],
    [[], [{ ...isThere, offset: 40, repeats: 0 }], [0]],
    [four, [{ ...isThere, offset: 32, repeats: 1 }], [8, 24]],
  ] as const) {
    const holds = [{ ...leaf, repeats, guards, vtable: undefined }];
    const root = { kind: 'impl', instance: 'All', size: 8, typeOffset: 1, states: [], holds };
    const tree = await new AwaitTrees({} as FutureSet, { read }).read(root as unknown as FutureType, addr(0x1000n));
    t.same(
      tree.awaits.map(({ address }) => Number(address) - 0x2000),
      wanted,
    );
  }
});
