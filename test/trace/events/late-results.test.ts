// What polls without a result of their own turn out to be, on events told by hand.
import t from 'tap';
import { addr } from '../../../src/base/addr.js';
import { LateResults } from '../../../src/trace/events/late-results.js';
import type { AwaitLink, FutureRef, PollBegin, PollEnd, PollResult, StateRef } from '../../../src/trace/index.js';

const [inner, outer] = ['inner', 'outer'].map((future, key) => ({ key, future }) as FutureRef) as [
  FutureRef,
  FutureRef,
];
const state = (name: string | undefined) => (name === undefined ? undefined : ({ name } as StateRef));

function late() {
  const told: string[] = [];
  const results = new LateResults(({ future }) => told.push(future));
  return {
    results,
    told: () => told.splice(0),
    began: (future: FutureRef, at: number, before?: string, root = {}) =>
      results.began({ future, root, address: addr(BigInt(at)), state: state(before) } as PollBegin),
    ended: (future: FutureRef, at: number, result: PollResult, chain: readonly AwaitLink[] = [], name?: string) => {
      const end = { future, root: {}, address: addr(BigInt(at)), result, chain, state: state(name) };
      results.ended(end as unknown as PollEnd);
    },
  };
}

const link = (at: number | undefined, name?: string): AwaitLink => {
  return {
    future: inner,
    typeName: 'inner',
    address: at === undefined ? undefined : addr(BigInt(at)),
    state: state(name),
  };
};

t.test('the next poll finds it at an await, or not', async (t) => {
  const { told, began, ended } = late();
  for (const [before, expected] of [
    ['Suspend0', ['inner']],
    ['Suspend12', ['inner']],
    ['Unresumed', []],
    ['Returned', []],
    [undefined, []],
  ] as const) {
    ended(inner, 0x10, 'unknown');
    began(inner, 0x20, 'Suspend0');
    began(outer, 0x10, 'Suspend0');
    t.same(told(), [], 'another place, another Future');
    began(inner, 0x10, before);
    t.same(told(), expected, `${before}`);
    began(inner, 0x10, 'Suspend0');
    t.same(told(), [], 'one poll has one result');
  }
  ended(inner, 0x10, 'unknown');
  ended(inner, 0x10, 'ready');
  began(inner, 0x10, 'Suspend0');
  t.same(told(), [], 'its last poll had a result');
});

t.test('a Future around it is pending and awaits it', async (t) => {
  const { results, told, ended } = late();
  const around = (result: PollResult, ...chain: AwaitLink[]) => {
    ended(inner, 0x10, 'unknown');
    ended(outer, 0x8, result, chain);
    const found = told();
    results.clear();
    return found;
  };
  t.same(around('pending', link(0x10, 'Suspend0')), ['inner']);
  t.same(around('pending', { ...link(1), future: undefined }, link(undefined), link(0x10, 'Suspend1')), ['inner']);
  t.same(around('pending', link(0x18, 'Suspend0')), []);
  t.same(around('pending', link(0x10, 'Unresumed')), [], 'another one, that nobody has polled yet');
  t.same(around('pending', link(0x10)), []);
  t.same(around('unknown', link(0x10, 'Suspend0')), []);
  t.same(around('ready', link(0x10, 'Suspend0')), []);
});

t.test('one written by hand has no state: what stands at the await of it has one', async (t) => {
  const { results, told, ended } = late();
  const around = (name: string | undefined, ...chain: AwaitLink[]) => {
    ended(inner, 0x10, 'unknown');
    ended(outer, 0x8, 'pending', chain, name);
    const found = told();
    results.clear();
    return found;
  };
  t.same(around('Suspend0', link(0x10)), ['inner']);
  t.same(around('Suspend0', link(0x10), { ...link(0x18), future: outer }), ['inner']);
  t.same(around('Unresumed', { ...link(1, 'Suspend1'), future: outer }, link(0x10)), ['inner']);
  t.same(around('Suspend0', { ...link(1), future: outer }, link(0x10)), [], 'what is between may hold a ready one');
  t.same(around(undefined, link(0x10)), []);
});

t.test('nothing is said of what was open when events were missing', async (t) => {
  const { results, told, began, ended } = late();
  ended(inner, 0x10, 'unknown');
  results.clear();
  began(inner, 0x10, 'Suspend0');
  t.same(told(), []);
});

t.test('one at the same address of another space is another one', async (t) => {
  const { told, began, ended } = late();
  ended(inner, 1, 'unknown');
  began(inner, 1, 'Suspend0', { space: addr(0x8025_4000n) });
  t.strictSame(told(), []);
  began(inner, 1, 'Suspend0');
  t.strictSame(told(), ['inner']);
});
