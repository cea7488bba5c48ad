// Futures too large for a trampoline: what is read of them is right, and what is not read is never taken for a state.
import t from 'tap';
import { awaitChain, type FutureState, type FutureType } from '../../../../src/async/futures/index.js';
import { addOffset, addr } from '../../../../src/base/addr.js';
import { AddressMap } from '../../../../src/base/address-map.js';
import { type HitMemory, Reading } from '../../../../src/calls/index.js';
import { RecordReadings } from '../../../../src/inject/record-readings.js';
import { planPoll } from '../../../../src/probes/kinds/poll/plan.js';
import type { PollProbe } from '../../../../src/probes/kinds/poll/resolve.js';
import { lookAt, probed } from '../../../../src/probes/kinds/poll/traced-poll.js';

const most = 24;

const state = (value: number, awaitee?: FutureState['awaitee']): FutureState => {
  return { value, name: `S${value}`, file: undefined, line: undefined, awaitee, locals: [], holds: [] };
};

/** A chain of so many Futures: each has its state number in its first byte, awaits the next one in state 3, at byte 1. */
function chainOf(length: number, boxed = false): FutureType {
  const inner = length > 1 ? chainOf(length - 1, boxed) : undefined;
  const inPlace = inner && { offset: 1, size: inner.size, typeName: inner.instance, future: inner, box: undefined };
  const box = { pointer: 0, vtable: 8, typeName: 'dyn Future', future: undefined };
  const behind = { offset: 100, size: 16, typeName: 'dyn Future', future: undefined, box };
  const made: Partial<FutureType> = {
    future: `f${length}`,
    instance: `f${length}`,
    size: 200 + length,
    align: 8,
    discriminant: { offset: 0, size: 1 },
    states: [state(0), ...(boxed ? [state(4, behind)] : []), ...(inPlace ? [state(3, inPlace)] : [])],
  };
  return made as FutureType;
}

function planOf(future: FutureType) {
  const poll = { address: addr(0x1000n), end: addr(0x1040n), result: undefined };
  const probe = { address: poll.address, poll, future, selfRegister: 'a0', resultPointer: undefined };
  return planPoll(probe as unknown as PollProbe, [], () => false, undefined);
}

/** The chain that a record of the plan's places shows, of these bytes. */
function seen(future: FutureType, bytes: Uint8Array) {
  const loads = planOf(future).entryReads.flatMap((reads) => reads.loads);
  const record = new Uint8Array(8 * loads.length);
  const placed = loads.map((load, i) => ({ ...load, at: 8 * i }));
  for (const { offset, size, at } of placed) record.set(bytes.subarray(offset, offset + size), at);
  const reading = new RecordReadings(placed).read(new DataView(record.buffer), 0, bytes.length);
  return awaitChain(future, reading.bytes).map((link) => link.state?.value);
}

t.test('a chain that fits is read whole', (t) => {
  const future = chainOf(most);
  const plan = planOf(future);
  t.match(plan, { needsStop: undefined, partly: undefined });
  const bytes = new Uint8Array(future.size).fill(3, 0, most);
  t.strictSame(seen(future, bytes), [...Array(most - 2).fill(3), undefined], 'the last Future has no state 3');
  t.end();
});

t.test('what many states keep at one place is read once', (t) => {
  const future = chainOf(1, true);
  const [first, boxed] = future.states as [FutureState, FutureState];
  const states = [first, ...Array.from({ length: 30 }, (_, i) => ({ ...boxed, value: 4 + i }))];
  const plan = planOf({ ...future, states });
  t.match(plan, { needsStop: undefined, partly: undefined });
  t.strictSame(
    plan.entryReads.flatMap(({ loads }) => loads.map(({ offset }) => offset)),
    [0, 100, 108],
  );
  t.end();
});

t.test('a chain that is too long needs no stop: its outer states are right, the rest is unknown', (t) => {
  const future = chainOf(40);
  const plan = planOf(future);
  t.equal(plan.needsStop, undefined);
  t.match(plan.partly, /^1 of the Futures inside it/);
  t.equal(plan.entryReads[0]?.loads.length, most);
  const bytes = new Uint8Array(future.size).fill(3, 0, 39);
  t.strictSame(awaitChain(future, bytes).length, 39, 'as a stop reads it');
  t.strictSame(seen(future, bytes), [...Array(most - 1).fill(3), undefined], 'one more is awaited, in no known state');
  bytes[5] = 0;
  t.strictSame(seen(future, bytes), [3, 3, 3, 3, 0], 'a chain that ends earlier ends there');
  t.end();
});

t.test('a state is read with the boxes that it may lead to, or not at all', (t) => {
  const future = chainOf(40, true);
  const { loads = [] } = planOf(future).entryReads[0] ?? {};
  t.ok(loads.length <= most);
  const offsets = new Set(loads.map(({ offset }) => offset));
  for (let depth = 0; offsets.has(depth); depth++)
    t.ok(offsets.has(depth + 100) && offsets.has(depth + 108), `the box of Future ${depth}`);
  t.equal(loads.length, most);
  t.end();
});

t.test('a state that lies far behind is read, by a stop and in a record', (t) => {
  // As rustc lays out an async fn that takes a [u8; 131072] and writes to it: its state is its last word but one.
  const [size, offset, awaited] = [262_152, 262_148, 262_144];
  const inner = { ...chainOf(1), size: 4 };
  const behind = { offset: awaited, size: 4, typeName: inner.instance, future: inner, box: undefined };
  const future = { ...chainOf(1), size, align: 4, discriminant: { offset, size: 1 }, states: [state(3, behind)] };
  const self = addr(0x7fff_0000n);
  const bytes = new Uint8Array(size);
  bytes[offset] = 3;
  const stopped: Pick<HitMemory, 'at'> = {
    at: (address, length) => new Reading(bytes.slice(Number(address - self), Number(address - self) + length)),
  };
  const recorded: Pick<HitMemory, 'at'> = {
    at: (address, length) => {
      const read = planOf(future).entryReads.find(({ from = 0 }) => address === addOffset(self, from));
      const placed = read?.loads.map((load, i) => ({ ...load, at: 8 * i })) ?? [];
      const record = new Uint8Array(8 * placed.length);
      const start = Number(address - self);
      for (const { offset, size, at } of placed) record.set(bytes.subarray(start + offset, start + offset + size), at);
      return read && new RecordReadings(placed).read(new DataView(record.buffer), 0, length);
    },
  };
  const probe = probed({ future } as unknown as PollProbe, [future], new AddressMap());
  for (const memory of [stopped, recorded]) {
    const look = lookAt(probe, self, memory as HitMemory);
    t.equal(look?.state?.value, 3);
    t.strictSame(
      look?.suspended.map(({ offset, resumed }) => [offset, resumed?.value]),
      [[awaited, 0]],
    );
  }
  t.end();
});
