// What is awaited through Futures written by hand: types told by hand.
import t from 'tap';
import type { FutureSet, FutureType, HeldFuture } from '../../../../src/async/futures/index.js';
import { addr } from '../../../../src/base/addr.js';
import { PolledInsides } from '../../../../src/probes/kinds/poll/polled-inside.js';
import type { AwaitLink, FutureRef, RootRef } from '../../../../src/trace/index.js';

const typed = (states: readonly string[], ...inside: FutureType[]): FutureType =>
  ({
    states: states.map((name) => ({ name, holds: [] })),
    holds: inside.map((future) => ({ future }) as HeldFuture),
  }) as unknown as FutureType;

const handler = typed(['Suspend0']);
const connection = typed([], handler);
const sleep = typed([]);
const task = typed(['Suspend0']);
const wrapper = typed([], handler);
const insides = new PolledInsides({ all: [handler, connection, sleep, task, wrapper] } as unknown as FutureSet);

const root = { key: 1 } as RootRef;
const polled = (future: FutureType, name: string, at: bigint, of = root) => ({
  ...{ root: of, self: addr(at), inside: undefined },
  probe: { future, ref: { future: name, instance: name } as FutureRef },
});
const link = (name: string, address?: bigint): AwaitLink => ({
  ...{ future: undefined, typeName: name, state: undefined },
  address: address === undefined ? undefined : addr(address),
});
const pending = { result: 'pending', state: undefined, chain: [link('Acquire')] } as const;
const ready = { result: 'ready', state: undefined, chain: [] } as const;
const names = (chain: readonly AwaitLink[]): string[] => chain.map(({ typeName }) => typeName);

t.test('the one that was polled and is pending, below what may hold it', async (t) => {
  const outer = polled(task, 'task', 0x1000n);
  const chain = [link('Connection')];
  t.equal(
    insides.below(outer, chain, () => connection),
    chain,
    'nothing was polled',
  );
  const inner = polled(handler, 'handler', 0x9000n);
  insides.ended(inner, outer, pending);
  insides.ended(inner, outer, pending);
  t.same(names(insides.below(outer, chain, () => connection)), ['Connection', 'handler', 'Acquire']);
  t.equal(
    insides.below(outer, chain, () => sleep),
    chain,
    'its own code has polled it, and awaits another one',
  );
  t.equal(
    insides.below(outer, chain, () => undefined),
    chain,
    'nobody knows what that holds',
  );
  t.same(
    insides.below(outer, [], () => undefined),
    [],
    'an async fn that says where it waits',
  );
  insides.ended(inner, outer, ready);
  t.equal(
    insides.below(outer, chain, () => connection),
    chain,
    'it is over',
  );
});

t.test('of two nothing says which it is', async (t) => {
  const outer = polled(task, 'task', 0x1000n);
  insides.ended(polled(handler, 'handler', 0x9000n), outer, pending);
  insides.ended(polled(handler, 'handler', 0xa000n), outer, pending);
  const chain = [link('Connection')];
  t.equal(
    insides.below(outer, chain, () => connection),
    chain,
  );
});

t.test('a wrapper awaits what it polls, and a task inside another one is none of it', async (t) => {
  const outer = polled(wrapper, 'wrapper', 0x1000n);
  insides.ended(polled(handler, 'handler', 0x1008n, { key: 2 } as RootRef), outer, pending);
  t.same(
    insides.below(outer, [], () => undefined),
    [],
  );
  insides.ended(polled(handler, 'handler', 0x1008n), outer, pending);
  t.same(names(insides.below(outer, [], () => undefined)), ['handler', 'Acquire']);
});

t.test('what the chain has already', async (t) => {
  const outer = polled(task, 'task', 0x1000n);
  const inner = polled(handler, 'handler', 0x1008n);
  const boxed: AwaitLink = { ...link('handler', 0x1008n), future: inner.probe.ref };
  insides.ended(inner, outer, pending);
  const whole = [boxed, link('Acquire')];
  t.equal(
    insides.below(outer, whole, () => undefined),
    whole,
  );
  t.same(names(insides.below(outer, [boxed], () => undefined)), ['handler', 'Acquire'], 'a box was not read further');
});
