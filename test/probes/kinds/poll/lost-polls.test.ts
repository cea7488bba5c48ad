// A poll whose end is not seen, inside another one at the same address.
import t from 'tap';
import type { FutureSet, FutureType } from '../../../../src/async/futures/index.js';
import { type Addr, addr } from '../../../../src/base/addr.js';
import { EventOutput } from '../../../../src/calls/follows.js';
import { CallTracer, SpaceNumbers } from '../../../../src/calls/index.js';
import { ImpliedDrops } from '../../../../src/probes/kinds/poll/implied-drops.js';
import type { PollProbes } from '../../../../src/probes/kinds/poll/resolve.js';
import { PollTracer } from '../../../../src/probes/kinds/poll/tracer.js';
import { TaskBook } from '../../../../src/probes/kinds/poll/wakes.js';
import type { FutureRef, TraceEvent } from '../../../../src/trace/index.js';

const suspended = { name: 'Suspend0' };
const states = [{ name: 'Unresumed' }, { name: 'Returned' }, suspended];
const type = (future: string, typeOffset: number) =>
  ({ future, instance: future, typeOffset, size: 64, states, polls: [], inlined: [] }) as unknown as FutureType;
const [outer, inner] = [type('outer', 1), type('inner', 2)];
const refs = new Map([outer, inner].map((one, i) => [one, { key: i + 1, future: one.future, size: 64 } as FutureRef]));
const ref = (future: FutureType): FutureRef => refs.get(future) as FutureRef;
const probe = (future: FutureType, address: bigint) => ({
  ...{
    address,
    future,
    ref: ref(future),
    among: [],
    isAround: false,
    selfRegister: 'a0',
    poll: { end: address + 0x80n },
  },
});

/** A tracer of both, without a target. `loops`: their poll functions jump to their first instructions. */
function traced(loops = false) {
  const events: TraceEvent[] = [];
  const output = new EventOutput({ event: (event: TraceEvent) => events.push(event) } as never);
  const implied = new ImpliedDrops(output, { coverage: [], ref, drops: [], hidden: new Set() });
  const probes = { probes: [probe(outer, 0x100n), probe(inner, 0x200n)], sites: [] } as unknown as PollProbes;
  const parts = { tasks: new TaskBook(new Map()), implied, spaces: new SpaceNumbers(), loops: () => loops };
  const calls = new CallTracer({} as never, output, [new PollTracer({} as FutureSet, probes, output, parts)]);
  const look = { state: suspended, suspended: [], along: () => [], chainAt: () => [], chain: () => [] };
  const memory = { at: () => ({ as: () => look }), bytes: () => 'unreadable' } as never;
  let time = 0;
  const at = (pc: Addr, self = 0x5000n) => {
    time += 10;
    return { pc, hart: 0, time, space: undefined, registers: { register: () => self } } as never;
  };
  return {
    enter: (pc: Addr, returnAddress: Addr, stackPointer: number, { self = 0x5000n, isCall = true } = {}) =>
      calls.entered(at(pc, self), { returnAddress, stackPointer, seesReturn: true, isCall }, memory),
    leave: (pc: Addr, stackPointer: number) => calls.returned(at(pc), stackPointer, memory),
    seen: () =>
      events.flatMap((event) =>
        event.type === 'poll-begin' || event.type === 'poll-end' || event.type === 'poll-lost'
          ? [[event.type, event.future.future, event.root?.key]]
          : [],
      ),
  };
}

t.test('the task around it goes on', async (t) => {
  const { enter, leave, seen } = traced();
  for (const isSeen of [true, false, true]) {
    enter(addr(0x100), addr(0x1000), 5000);
    enter(addr(0x200), addr(0x104), 4900);
    if (isSeen) leave(addr(0x104), 4900);
    leave(addr(0x1000), 5000);
  }
  const begins = [
    ['poll-begin', 'outer', 1],
    ['poll-begin', 'inner', 1],
  ];
  const found = seen().filter(([type]) => type !== 'poll-end');
  t.same(found, [...begins, ...begins, ['poll-lost', 'inner', 1], ...begins]);
});

t.test('a poll function whose first instruction is the head of a loop', async (t) => {
  const turns = (loops: boolean, again: { readonly self?: bigint; readonly isCall?: boolean }) => {
    const { enter, leave, seen } = traced(loops);
    enter(addr(0x100), addr(0x1000), 5000, { isCall: false });
    for (let turn = 0; turn < 2; turn++) enter(addr(0x100), addr(0x1000), 5000, { isCall: false, ...again });
    leave(addr(0x1000), 5000);
    return seen().map(([type]) => type);
  };
  t.same(turns(true, {}), ['poll-begin', 'poll-end'], 'its turns are one poll');
  t.equal(turns(false, {}).filter((type) => type === 'poll-begin').length, 3, 'it was left without a return');
  // It has jumped there to poll another Future of its type; a trampoline was called.
  t.same(turns(true, { self: 0x6000n }).slice(0, 2), ['poll-begin', 'poll-begin']);
  t.equal(turns(true, { isCall: true }).filter((type) => type === 'poll-begin').length, 3);
});
