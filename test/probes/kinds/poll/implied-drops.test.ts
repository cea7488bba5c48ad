// Drops that nothing shows by themselves, on polls told by hand.
import t from 'tap';
import type { FutureType } from '../../../../src/async/futures/index.js';
import { type Addr, addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import type { DropFunction } from '../../../../src/probes/kinds/poll/drop-functions.js';
import { ImpliedDrops } from '../../../../src/probes/kinds/poll/implied-drops.js';
import type { Cancelled, FutureRef, ProbeFact, RootRef, StateRef, TraceEvent } from '../../../../src/trace/index.js';

const states = [{ name: 'Unresumed' }, { name: 'Returned' }, { name: 'Suspend0' }];
const type = (future: string, address: bigint, size = 16) =>
  ({ future, instance: future, polls: [{ address }], size, states }) as unknown as FutureType;
const [inner, outer, byHand] = [type('inner', 0x10n), type('outer', 0x20n, 64), { ...type('hand', 0x30n), states: [] }];
const all = [inner, outer, byHand];
const refs = new Map(
  all.map((future, i) => [future, { key: i + 1, future: future.future, size: future.size } as FutureRef]),
);
const ref = (future: FutureType): FutureRef => refs.get(future) as FutureRef;
const task: RootRef = { key: 1, future: ref(outer), address: addr(0x1000n) };
const other: RootRef = { key: 2, future: ref(outer), address: addr(0x2000n) };
const at0: StateRef = { name: 'Suspend0' } as StateRef;

function drops(hidden: readonly FutureType[] = [inner, byHand], functions: readonly DropFunction[] = []) {
  const events: Cancelled[] = [];
  const sink = { event: (event: TraceEvent) => events.push(event as Cancelled) };
  const coverage = all.map((future) => ({ future, seen: 'exact', reason: undefined, help: undefined }) as const);
  const implied = new ImpliedDrops(new EventOutput(sink as never), {
    ...{ coverage, ref, drops: functions, hidden: new Set(hidden) },
  });
  const told = () =>
    events.splice(0).map(({ future, address, implied, by }) => [future.future, Number(address), implied, by?.key]);
  return { implied, told };
}

const place = (future: FutureType, self: number, root = task) => ({ root, ref: ref(future), self: addr(BigInt(self)) });
const polled = (implied: ImpliedDrops, self: number, is: 'pending' | 'unknown' = 'pending', root = task) =>
  implied.polled(place(inner, self, root), is, at0);

t.test('another one of its type is polled for the first time at its address', async (t) => {
  const { implied, told } = drops();
  polled(implied, 0x1010);
  implied.began(place(inner, 0x1010), false, 0);
  t.same(told(), [], 'the same one goes on');
  implied.began(place(inner, 0x1010), true, 0);
  t.same(told(), [['inner', 0x1010, 'replaced', 1]]);
  implied.began(place(inner, 0x1010), true, 0);
  t.same(told(), [], 'once');
  polled(implied, 0x1010);
  implied.began(place(inner, 0x1010, other), true, 0);
  t.same(told(), [['inner', 0x1010, 'replaced', undefined]], 'of another task: nobody knows who');
  polled(implied, 0x1010);
  implied.began(place(inner, 0x1010), undefined, 0);
  implied.began(place(inner, 0x1010), true, 0);
  t.same(told(), [], 'a begin whose state was not read says nothing, and nothing is known behind it');
  polled(implied, 0x1010, 'unknown');
  implied.began(place(inner, 0x1010), true, 0);
  t.same(told(), [], 'it may have been ready');
});

t.test('what it lies in goes on, also where that begins at the same address', async (t) => {
  const { implied, told } = drops([outer]);
  implied.polled(place(outer, 0x1000), 'pending', at0);
  implied.ended(place(inner, 0x1000), 16, 0);
  t.same(told(), []);
});

t.test('the Future that holds it ends', async (t) => {
  const { implied, told } = drops();
  polled(implied, 0x1000);
  polled(implied, 0x1030);
  polled(implied, 0x1040);
  polled(implied, 0x0fff);
  polled(implied, 0x1020, 'pending', other);
  polled(implied, 0x1028, 'unknown');
  implied.ended(place(outer, 0x1000), 64, 0);
  t.same(told(), [
    ['inner', 0x1000, 'holder-ended', 1],
    ['inner', 0x1030, 'holder-ended', 1],
  ]);
  implied.ended(place(outer, 0x1000), 64, 0);
  t.same(told(), []);
  polled(implied, 0x1008);
  implied.over(place(inner, 0x1008));
  implied.ended(place(outer, 0x1000), 64, 0);
  t.same(told(), [], 'it was ready');
});

t.test('one that a pending Future awaits is pending', async (t) => {
  const { implied, told } = drops();
  const link = (state: string, address: Addr | undefined = addr(0x1010n)) => [
    { future: ref(inner), typeName: 'inner', address, state: { name: state } as StateRef },
  ];
  for (const [state, expected] of [
    ['Suspend0', 1],
    ['Unresumed', 0],
    ['Returned', 0],
  ] as const) {
    polled(implied, 0x1010, 'unknown');
    implied.awaited(link(state));
    implied.ended(place(outer, 0x1000), 64, 0);
    t.equal(told().length, expected, state);
  }
});

t.test('its holder is dropped: its own drop is told then, and not again by a function of its own', async (t) => {
  const { implied, told } = drops();
  polled(implied, 0x1010);
  implied.dropped({ future: ref(outer), address: addr(0x1000n), root: task, by: other }, 0);
  t.same(told(), [['inner', 0x1010, 'holder-ended', 2]]);
  t.equal(implied.wasEmitted(ref(inner), addr(0x1010n)), true);
  t.equal(implied.wasEmitted(ref(inner), addr(0x1020n)), false);
  implied.began(place(inner, 0x1010), true, 0);
  t.same(told(), []);
  t.equal(implied.wasEmitted(ref(inner), addr(0x1010n)), false, 'another one lies there now');
});

t.test('who is followed: only Futures of the compiler of which all polls and not all drops are seen', async (t) => {
  const fact = (address: bigint, engine: ProbeFact['engine'] = 'none'): ProbeFact => {
    return { name: 'a probe', address: addr(address), engine, why: 'no room' };
  };
  const drop = { address: addr(0x99n), targets: [{ future: outer, offset: 0 }] } as unknown as DropFunction;
  const { implied, told } = drops([inner, byHand], [drop]);
  const tries = (future: FutureType) => {
    implied.polled(place(future, 0x1010), 'pending', at0);
    implied.began(place(future, 0x1010), true, 0);
    return told().length;
  };
  t.same([inner, outer, byHand].map(tries), [1, 0, 0]);
  implied.leftOut([fact(0x99n, 'stop')]);
  t.equal(tries(outer), 0, 'a probe that stops sees all');
  polled(implied, 0x1030);
  implied.leftOut([fact(0x99n)]);
  t.equal(tries(outer), 1, 'its drops are not seen any more');
  implied.began(place(inner, 0x1030), true, 0);
  t.equal(told().length, 1, 'what was known stays');
  polled(implied, 0x1030);
  implied.leftOut([fact(0x10n)]);
  implied.began(place(inner, 0x1030), true, 0);
  t.same([told(), tries(inner)], [[], 0], 'its polls are not all seen any more');
});

t.test('one of which polls are left out from now on may have been ready when its holder ends', async (t) => {
  for (const end of ['ended', 'dropped'] as const) {
    const { implied, told } = drops();
    polled(implied, 0x1010);
    implied.leftOut([{ name: 'a probe', address: addr(0x10n), engine: 'none', why: 'it stopped too often' }]);
    if (end === 'ended') implied.ended(place(outer, 0x1000), 64, 0);
    else implied.dropped({ future: ref(outer), address: addr(0x1000n), root: task, by: other }, 0);
    t.same(told(), [], end);
  }
});

t.test('nothing is said of what was pending before events were missing', async (t) => {
  const { implied, told } = drops();
  polled(implied, 0x1010);
  implied.forget();
  implied.began(place(inner, 0x1010), true, 0);
  implied.ended(place(outer, 0x1000), 64, 0);
  t.same(told(), []);
  polled(implied, 0x1010);
  implied.dropped({ future: ref(outer), address: addr(0x1000n), root: task, by: other }, 0);
  implied.forget();
  t.equal(implied.wasEmitted(ref(inner), addr(0x1010n)), false, 'another one may lie there by now');
});
