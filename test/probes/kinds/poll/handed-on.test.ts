// Whose result is that of what it holds: types and polls told by hand.
import t from 'tap';
import type { FutureSet, FutureType, HeldFuture } from '../../../../src/async/futures/index.js';
import { addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import { CallTracer, SpaceNumbers } from '../../../../src/calls/index.js';
import { ImpliedDrops } from '../../../../src/probes/kinds/poll/implied-drops.js';
import type { PollProbes } from '../../../../src/probes/kinds/poll/resolve.js';
import { handedOn } from '../../../../src/probes/kinds/poll/traced-poll.js';
import { PollTracer } from '../../../../src/probes/kinds/poll/tracer.js';
import { TaskBook } from '../../../../src/probes/kinds/poll/wakes.js';
import type { FutureRef, TraceEvent } from '../../../../src/trace/index.js';

const states = ['Unresumed', 'Returned', 'Suspend0'].map((name) => ({ name }));
const common = { size: 64, output: 'u64', polls: [], inlined: [] };
const named = (future: string, typeOffset: number) => ({ ...common, future, instance: future, typeOffset });
const body = { ...named('body', 1), states, holds: [] } as unknown as FutureType;
const held = (hops: unknown[] = [], future = body) => {
  return { offset: 8, future, hops, repeats: [] } as unknown as HeldFuture;
};
const byHand = (output: string | undefined, ...holds: HeldFuture[]) =>
  ({ ...named('byHand', 2), output, states: [], holds }) as unknown as FutureType;

t.test('one that holds a single Future in place, and has its output', async (t) => {
  t.match(handedOn(byHand('u64', held())), { future: body, offset: 8 });
  t.equal(handedOn(byHand('Result<u64, Elapsed>', held())), undefined, 'a timeout');
  t.equal(handedOn(byHand(undefined, held())), undefined);
  t.equal(handedOn(byHand('u64', held(), held())), undefined, 'a select');
  t.equal(handedOn(byHand('u64', held([{}]))), undefined, 'what it points to may be another one');
  t.equal(handedOn({ ...byHand('u64', held()), states: body.states }), undefined, 'one that tells by itself');
});

const wrapper = byHand('u64', held());
const outermost = { ...byHand('u64', held([], wrapper)), ...named('outermost', 3) } as FutureType;
const waits = { ...named('waits', 4), states, holds: [] } as unknown as FutureType;
const all = [body, wrapper, outermost, waits];
/** Each lies 8 bytes before what it polls. */
const selfOf = new Map([body, wrapper, outermost, waits].map((future, i) => [future, 0x5000n - 8n * BigInt(i)]));

type Poll = readonly [future: FutureType, state: string | undefined, ...inside: Poll[]];

/** What is told of polls, of which memory shows the states alone: the results in the order of their ends. */
function told(...polls: readonly Poll[]): string[][] {
  const events: TraceEvent[] = [];
  const output = new EventOutput({ event: (event: TraceEvent) => events.push(event) } as never);
  const refs = new Map(all.map((one, key) => [one, { key, future: one.future, size: 64 } as FutureRef]));
  const ref = (future: FutureType): FutureRef => refs.get(future) as FutureRef;
  const implied = new ImpliedDrops(output, { coverage: [], ref, drops: [], hidden: new Set() });
  const probes = all.map((future, i) => {
    const address = BigInt(i + 1) * 0x100n;
    const fn = { address, future, ref: ref(future), selfRegister: 'a0', poll: { end: address + 0x80n } };
    return { ...fn, among: [], isAround: false };
  });
  const resolved = { probes, sites: [], ref, allows: () => true, isSeenInlined: () => false } as unknown as PollProbes;
  const parts = { tasks: new TaskBook(new Map()), implied, spaces: new SpaceNumbers() };
  const calls = new CallTracer({} as never, output, [new PollTracer({} as FutureSet, resolved, output, parts)]);
  let time = 0;
  const poll = ([future, name, ...inside]: Poll, depth: number): void => {
    const self = selfOf.get(future) as bigint;
    const at = (pc: bigint, state?: object) => {
      const look = { state, suspended: [], along: () => [], chainAt: () => [], chain: () => [] };
      time += 10;
      const memory = { at: () => ({ as: () => look }), bytes: () => 'unreadable' };
      return [{ pc, hart: 0, time, space: undefined, registers: { register: () => self } }, memory] as never[];
    };
    const [entry, before] = at(BigInt(all.indexOf(future) + 1) * 0x100n, future.states[0]);
    const [returnAddress, stackPointer] = [addr(0x1000n + BigInt(depth)), 5000 - depth * 100];
    calls.entered(entry as never, { returnAddress, stackPointer, seesReturn: true, isCall: true }, before as never);
    for (const inner of inside) poll(inner, depth + 1);
    const [exit, after] = at(
      BigInt(returnAddress),
      states.find((state) => state.name === name),
    );
    calls.returned(exit as never, stackPointer, after as never);
  };
  for (const one of polls) poll(one, 0);
  return events.flatMap((event) => (event.type === 'poll-end' ? [[event.future.future, event.result]] : []));
}

t.test('a wrapper that gives up while what it holds is pending', async (t) => {
  // The program polls each of two wrappers once, which is ready then, although its body is not.
  const once = [wrapper, undefined, [body, 'Suspend0']] as const;
  const both = [
    ['body', 'pending'],
    ['byHand', 'unknown'],
  ];
  t.same(told([waits, 'Returned', once, once]), [...both, ...both, ['waits', 'ready']]);
});

t.test('a wrapper whose body is ready, and one that a task is', async (t) => {
  const inside = [wrapper, undefined, [body, 'Returned']] as const;
  t.same(told([waits, 'Returned', inside]), [
    ['body', 'ready'],
    ['byHand', 'ready'],
    ['waits', 'ready'],
  ]);
  const pending = [wrapper, undefined, [body, 'Suspend0']] as const;
  t.same(told(pending), [
    ['body', 'pending'],
    ['byHand', 'pending'],
  ]);
  t.same(told([outermost, undefined, pending]), [
    ['body', 'pending'],
    ['byHand', 'unknown'],
    ['outermost', 'pending'],
  ]);
  t.same(told([wrapper, undefined]), [['byHand', 'unknown']], 'it has not polled it');
});
