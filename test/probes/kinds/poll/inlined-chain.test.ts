// Polls that the compiler inlined, worked out from the bytes of the Future around them, against stories told by hand.
import t from 'tap';
import type { FutureState, FutureType } from '../../../../src/async/futures/index.js';
import { FutureLook } from '../../../../src/calls/reading.js';
import { type DerivedStep, InlinedChain, mayInline } from '../../../../src/probes/kinds/poll/inlined-chain.js';

interface Await {
  readonly future: FutureType;
  readonly offset: number;
}

let types = 0;

/** Its state number is its first byte; `Suspend0` awaits the first of `awaits`, `Suspend1` the second. */
function made(name: string, size: number, awaits: readonly Await[], seen: Partial<FutureType> = {}): FutureType {
  const state = (value: number, of: string, at?: Await): FutureState => {
    const awaitee = at && { ...at, size: at.future.size, typeName: at.future.future, box: undefined };
    return { value, name: of, file: undefined, line: undefined, awaitee, locals: [], holds: [] };
  };
  const suspended = awaits.map((at, index) => state(3 + index, `Suspend${index}`, at));
  const states = [state(0, 'Unresumed'), state(1, 'Returned'), state(2, 'Panicked'), ...suspended];
  const type: Partial<FutureType> = {
    future: name,
    size,
    discriminant: { offset: 0, size: 1 },
    states,
    typeOffset: ++types,
    ...{ polls: [], inlined: [] },
    ...seen,
  };
  return type as FutureType;
}

const nothing = made('nothing', 0, []);
const leaf = { future: nothing, offset: 4 };
const b = made('b', 8, [leaf]);
const c = made('c', 8, [leaf]);
const a = made('a', 16, [
  { future: b, offset: 8 },
  { future: c, offset: 8 },
]);
const outer = made('outer', 24, [{ future: a, offset: 8 }]);
const inA = { future: a, offset: 8 };
const inB = { future: b, offset: 16 };
const inC = { future: c, offset: 16 };

/** The outer Future's bytes with these state numbers: its own, that of `a`, and that of what `a` awaits. */
function look(own: number, ofA = 0, below = 0): FutureLook {
  const bytes = new Uint8Array(24);
  bytes.set([own], 0);
  bytes.set([ofA], 8);
  bytes.set([below], 16);
  return new FutureLook(outer, bytes);
}

const told = (steps: readonly DerivedStep[]): string[] =>
  steps
    // What `leaf` awaits has no states: it says nothing.
    .filter(({ future }) => future !== nothing)
    .map(({ future, offset, result, from, to }) => `${future.future}@${offset} ${result} ${from?.name} ${to?.name}`);

const begin = (...states: [number, number?, number?]): InlinedChain => new InlinedChain(look(...states));
const waiting = [3, 3, 3] as const;

t.test('a first poll: all that is awaited at its end was polled, and is pending', async (t) => {
  t.strictSame(told(begin(0).end(look(...waiting), false)), [
    'a@8 pending undefined Suspend0',
    'b@16 pending undefined Suspend0',
  ]);
});

t.test('a poll that changes nothing: the same Futures were polled again', async (t) => {
  t.strictSame(told(begin(...waiting).end(look(...waiting), false)), [
    'a@8 pending Suspend0 Suspend0',
    'b@16 pending Suspend0 Suspend0',
  ]);
});

t.test('a Future that left the chain was polled to Ready, innermost first', async (t) => {
  t.strictSame(told(begin(...waiting).end(look(3, 4, 3), false)), [
    'b@16 ready Suspend0 Returned',
    'a@8 pending Suspend0 Suspend1',
    'c@16 pending undefined Suspend0',
  ]);
  t.strictSame(told(begin(...waiting).end(look(1), true)), [
    'b@16 ready Suspend0 Returned',
    'a@8 ready Suspend0 Returned',
  ]);
  t.strictSame(told(begin(...waiting).end(look(0), false)), [
    'b@16 ready Suspend0 Returned',
    'a@8 ready Suspend0 Returned',
  ]);
});

t.test('without bytes nothing is derived, but for what must be over when the outer poll is Ready', async (t) => {
  t.strictSame(begin(...waiting).end(undefined, false), []);
  t.strictSame(told(begin(...waiting).end(undefined, true)), [
    'b@16 ready Suspend0 Returned',
    'a@8 ready Suspend0 Returned',
  ]);
  t.strictSame(new InlinedChain(undefined).end(look(1), true), []);
  t.strictSame(begin(0).end(look(0), false), []);
});

t.test('a poll ends once: what ran in it is forgotten', async (t) => {
  const chain = begin(...waiting);
  chain.end(look(...waiting), false);
  t.strictSame(chain.end(look(1), true), []);
});

t.test('what has a breakpoint of its own is not derived, nor what is below it', async (t) => {
  const ofB = begin(...waiting);
  ofB.observe(inB);
  t.strictSame(told(ofB.end(look(...waiting), false)), ['a@8 pending Suspend0 Suspend0']);
  const ofA = begin(...waiting);
  ofA.observe(inA);
  t.strictSame(ofA.end(look(...waiting), false), []);
  t.strictSame(ofA.end(look(1), true), []);
  const elsewhere = begin(...waiting);
  elsewhere.observe({ future: b, offset: 8 });
  elsewhere.observe({ future: c, offset: 16 });
  t.equal(told(elsewhere.end(look(...waiting), false)).length, 2, 'another place, another type');
});

t.test('a poll with a breakpoint begins inside: the Future that ran in its place is over', async (t) => {
  const goesOn = begin(...waiting);
  t.strictSame(goesOn.enter({ way: [inA], inner: inB }, look(...waiting)), [], 'b itself goes on');
  t.strictSame(told(goesOn.end(look(...waiting), false)), ['a@8 pending Suspend0 Suspend0']);

  const next = begin(...waiting);
  t.strictSame(told(next.enter({ way: [inA], inner: inC }, look(3, 3, 1))), ['b@16 ready Suspend0 Returned']);
  t.strictSame(told(next.end(look(3, 4, 3), false)), ['a@8 pending Suspend0 Suspend1'], 'c has its own breakpoint');

  const again = begin(...waiting);
  t.strictSame(
    told(again.enter({ way: [inA], inner: inB }, look(3, 0, 0))),
    ['b@16 ready Suspend0 Returned', 'a@8 ready Suspend0 Returned'],
    'a begins anew: it was over, and so was b',
  );
  t.strictSame(told(again.end(look(3, 3, 3), false)), ['a@8 pending Unresumed Suspend0']);
});

t.test('the same without bytes: a Future at the same place counts as the same', async (t) => {
  const next = begin(...waiting);
  t.strictSame(told(next.enter({ way: [inA], inner: inC }, undefined)), ['b@16 ready Suspend0 Returned']);
  t.strictSame(told(next.end(look(3, 4, 3), false)), ['a@8 pending Suspend0 Suspend1']);
  const other = begin(...waiting);
  other.enter({ way: [{ future: c, offset: 8 }], inner: undefined }, undefined);
  t.strictSame(told(other.end(look(...waiting), false)), [
    'c@8 ready undefined Returned',
    'a@8 pending undefined Suspend0',
    'b@16 pending undefined Suspend0',
  ]);
});

t.test('a join polls in its own way: what ran behind the way is over', async (t) => {
  const chain = begin(...waiting);
  t.strictSame(told(chain.enter({ way: [inA], inner: undefined }, look(...waiting))), ['b@16 ready Suspend0 Returned']);
  const empty = begin(0);
  t.strictSame(empty.enter({ way: [inA], inner: inB }, look(0, 0, 0)), [], 'nothing ran before');
  t.strictSame(told(empty.end(look(...waiting), false)), ['a@8 pending Unresumed Suspend0']);
});

t.test(
  'a Future may have inlined polls inside if one that it awaits has no poll of its own, or was inlined too',
  async (t) => {
    const traced = { polls: [{}], inlined: [] } as unknown as Partial<FutureType>;
    const both = { polls: [{}], inlined: [{}] } as unknown as Partial<FutureType>;
    const holding = (future: FutureType, seen: Partial<FutureType> = {}) =>
      made('holder', 32, [{ future, offset: 8 }], seen);
    t.equal(mayInline(made('alone', 8, [])), false);
    t.equal(mayInline(holding(made('traced', 8, [], traced))), false);
    t.equal(mayInline(holding(made('inlined', 8, []))), true);
    t.equal(mayInline(holding(made('both', 8, [], both))), true);
    t.equal(mayInline(holding(holding(made('inlined', 8, []), traced))), true, 'deep inside');
    t.equal(mayInline(holding(holding(made('traced', 8, [], traced), traced))), false);
    const loop = made('loop', 16, [{ future: b, offset: 8 }], traced);
    for (const { awaitee } of loop.states) if (awaitee) Object.assign(awaitee, { future: loop });
    t.equal(mayInline(loop), false, 'a type that awaits itself, as only a damaged file has it');
  },
);
