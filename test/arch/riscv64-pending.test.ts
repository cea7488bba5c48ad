import t from 'tap';
import {
  controlBlock,
  type Displaced,
  headFlag,
  type RecordField,
  type RingGeometry,
} from '../../src/arch/inject/probe-code.js';
import { decode } from '../../src/arch/riscv64/decode.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { addOffset } from '../../src/base/addr.js';
import { long } from '../support/long.js';
import { random } from './random.js';
import { Calls, call, outcome, prepare, withoutT0 } from './riscv64-calls.js';
import { functions, type TestFunction } from './riscv64-functions.js';
import { Machine, type Registers } from './riscv64-machine.js';
import { place, plainEntry, Ring, smallRing, unsigned, type Way, ways } from './riscv64-ring.js';

const calls = new Calls(random(21));
const [ENTRY, EXIT] = [1n, 2n];
const timeAt = 16;

/** A function of which calls pend, and another whose calls are always told of. */
const tested = functions.find(({ name }) => name === 'takes a big frame') as TestFunction;
const plainAt = addOffset(place.code, 0x1000);
const apart = 0x2000;

/** Room for all that a test writes. */
const ring: RingGeometry = {
  ...smallRing,
  countShift: 3,
  pending: { record: addOffset(place.counter, 0x1000), flush: addOffset(place.wait, 0x1000) },
};

const common: readonly RecordField[] = [{ at: timeAt, size: 8, from: { kind: 'time', counter: 'time' } }];
const entryFields: readonly RecordField[] = [
  ...common,
  { at: 8, size: 8, from: { kind: 'constant', value: ENTRY } },
  { at: 32, size: 8, from: { kind: 'register', name: 'a0' } },
];
const exitFields: readonly RecordField[] = [
  ...common,
  { at: 8, size: 8, from: { kind: 'constant', value: EXIT } },
  { at: 32, size: 8, from: { kind: 'kept', index: 0 } },
];

const always = 2n ** 62n;
const never = 0n;

interface Planted {
  readonly patched: Uint8Array;
  /** Behind the displaced instructions. */
  readonly body: bigint;
  /** Every instruction of the pending calls' trampolines. */
  readonly places: readonly bigint[];
  /** The same of what moves a record to the ring, and what waits for room. */
  readonly flush: readonly bigint[];
  readonly wait: readonly bigint[];
}

async function plant(machine: Machine, client: Ring, way: Way, below: bigint): Promise<Planted> {
  const displaced = probeCode.displace(tested.code, place.code, way.kind) as Displaced;
  const hooked = { ...plainEntry, fields: entryFields };
  const { patched, trampoline } = await client.plantEntry(tested.code, displaced, way, {
    ...hooked,
    hook: { exit: place.exit, keep: ['a0'] },
    pends: true,
  });
  const exit = await client.plantExit({ fields: exitFields, keep: ['a0'], nesting: false, below });
  const flushAt = ring.pending?.flush ?? place.wait;
  const flush = probeCode.flush(flushAt, ring);
  await machine.write(flushAt, flush);
  const plain = probeCode.displace(tested.code, plainAt, 'near') as Displaced;
  const [at, plainExit] = [addOffset(place.near, apart), addOffset(place.exit, apart)];
  const hook = { exit: plainExit, keep: ['a0'] };
  const entryCode = probeCode.entry({ ...hooked, at, ring: client.geometry, displaced: plain, hook, via: 'patch' });
  await machine.write(at, entryCode);
  const fields = { fields: exitFields, keep: ['a0'], nesting: false };
  await machine.write(plainExit, probeCode.exit({ ...fields, at: plainExit, ring: client.geometry }));
  const plainCode = tested.code.slice();
  plainCode.set(probeCode.patch(plain, at));
  await machine.write(plainAt, plainCode);
  return {
    patched,
    body: place.code + BigInt(displaced.length),
    places: [...instructions(way.at, trampoline), ...instructions(place.exit, exit)],
    flush: instructions(flushAt, flush),
    wait: instructions(place.wait, probeCode.wait(place.wait, client.geometry, 'time').code),
  };
}

function instructions(at: bigint, code: Uint8Array): bigint[] {
  const places: bigint[] = [];
  for (let offset = 0; offset < code.length; offset += decode(code, offset)?.length ?? code.length)
    places.push(at + BigInt(offset));
  return places;
}

interface LogEntry {
  readonly name: bigint;
  readonly kind: bigint;
  readonly time: bigint;
}

async function told(client: Ring): Promise<{ readonly torn: number[]; readonly all: LogEntry[] }> {
  const torn: number[] = [];
  const all: LogEntry[] = [];
  for (const [number, record] of (await client.records()).entries()) {
    if (unsigned(record, 0) !== client.claimOf(number)) torn.push(number);
    all.push({ name: unsigned(record, 32), kind: unsigned(record, 8), time: unsigned(record, timeAt) });
  }
  return { torn, all };
}

const kindsOf = (all: readonly LogEntry[], of: bigint): string =>
  all.flatMap(({ name, kind }) => (name === of ? [kind] : [])).join();

/** Whether every end is that of the call that began last. */
function nests(all: readonly LogEntry[]): boolean {
  const open: bigint[] = [];
  return (
    all.every(({ name, kind }) => (kind === ENTRY ? open.push(name) > 0 : open.pop() === name)) && open.length === 0
  );
}

const own = 1_000n;
const outermost = 2_000n;

const switching = 'a switch to a task in the middle of a call';
type Handler = 'brief calls' | 'other calls' | typeof switching;
const [near, hopped, far] = ways as [Way, Way, Way];
const one = { count: 1, full: false };
const cases: readonly {
  readonly way: Way;
  readonly below: bigint;
  readonly around: boolean;
  readonly handler: Handler;
  readonly count: number;
  readonly full: boolean;
}[] = [
  { ...one, way: near, below: always, around: false, handler: 'brief calls' },
  { ...one, way: near, below: always, around: false, handler: switching },
  { ...one, way: far, below: always, around: true, handler: 'other calls' },
  { ...one, way: hopped, below: never, around: true, handler: 'brief calls' },
  { ...one, way: hopped, below: never, around: true, handler: switching },
  { way: near, below: never, around: true, handler: 'other calls', count: 9, full: true },
];

for (const [index, { way, below, around, handler, count, full }] of cases.entries()) {
  const what = `${way.name}, ${below === never ? 'long' : 'brief'}${around ? ', inside another' : ''}, by ${handler}${full ? ', while the ring is full' : ''}`;
  t.test(`a call that pends may be interrupted at each instruction: ${what}`, { timeout: 600_000 }, async (t) => {
    await using machine = await Machine.start();
    const client = new Ring(machine, ring);
    const { patched, body, ...planted } = await plant(machine, client, way, below);
    const every = [...planted.places, ...(around ? planted.flush : []), ...(full ? planted.wait : [])];
    // Every other instruction: neighbouring cases share their code, and take turns. All of them under `--long`.
    const places = long ? every : every.filter((_, place) => (place + index) % 2 === 0);
    const from = calls.start();
    const registers: Registers = { ...from.registers, a0: own };
    const start = { ...from, registers };
    const untraced = await call(machine, tested.code, start);
    const handlerDone = place.done + 16n;
    const outerDone = place.done + 32n;
    const sp = registers.sp ?? 0n;
    const seen = { reached: 0, vanished: 0, told: 0 };
    for (const at of places) {
      await client.reset(2n);
      await prepare(machine, patched, start);
      let outer: Registers | undefined;
      if (around) {
        await machine.setRegisters({ ...calls.registers(), a0: outermost, ra: outerDone, sp: sp + 0x8000n });
        await machine.run([body]);
        outer = await machine.registers();
        await machine.setRegisters(registers);
      }
      if (full) await client.set(controlBlock.limit, client.capacity);
      await machine.run([at, place.done]);
      const interrupted = await machine.registers();
      const reached = interrupted.pc === at;
      let other: Registers | undefined;
      if (full) await client.reopen();
      if (reached) {
        seen.reached++;
        const below = interrupted.sp ?? 0n;
        for (let index = 1; index <= count; index++) {
          const next = { ...calls.registers(), a0: BigInt(index), ra: handlerDone };
          if (handler === switching) {
            await machine.setRegisters({ ...next, sp: sp - 0x8000n });
            await machine.run([body]);
            other = await machine.registers();
          } else {
            await machine.setRegisters({ ...next, sp: below, ...(handler === 'other calls' ? { pc: plainAt } : {}) });
            await machine.run([handlerDone]);
          }
        }
        await machine.setRegisters(interrupted);
        await machine.run([place.done]);
      }
      const traced = await outcome(machine);
      if (other) {
        await machine.setRegisters(other);
        await machine.run([handlerDone]);
      }
      if (outer) {
        await machine.setRegisters(outer);
        await machine.run([outerDone]);
      }
      const where = `0x${at.toString(16)}`;
      const lost = way.kind === 'far';
      t.same(lost ? withoutT0(traced) : traced, lost ? withoutT0(untraced) : untraced, where);
      const { torn, all } = await told(client);
      t.same(torn, [], `${where}: every claim is written`);
      t.equal((await client.control(controlBlock.head)) & 3n, 0n, `${where}: nothing pends`);
      const mine = kindsOf(all, own);
      seen[mine === '' ? 'vanished' : 'told']++;
      if (below === never && !full) t.equal(mine, '1,2', where);
      else t.ok(['', '1,2'].includes(mine), `${where}: ${mine}`);
      if (around && !full) t.equal(kindsOf(all, outermost), '1,2', where);
      if (around) t.equal(all[0]?.name, outermost, `${where}: what pends is told of first`);
      for (let index = 1n; index <= (reached ? count : 0); index++) {
        const kinds = kindsOf(all, index);
        if (below === never || handler === 'other calls') t.equal(kinds, '1,2', `${where}: ${index}`);
        else t.ok(['', '1,2'].includes(kinds), `${where}: ${index}: ${kinds}`);
      }
      t.equal(all.length, new Set(all.map(({ name, kind }) => `${name} ${kind}`)).size, `${where}: nothing twice`);
      if (handler !== switching) t.ok(nests(all), `${where}: ${shown(all)}`);
      const begun = all.findIndex(({ name, kind }) => name === own && kind === ENTRY);
      const time = all[begun]?.time ?? 0n;
      if (begun > 0) t.ok((all[begun - 1]?.time ?? 0n) <= time, `${where}: the time of what was told before`);
      const after = all[begun + 1];
      if (begun >= 0 && after) t.ok(time <= after.time, `${where}: the time of what was told behind`);
    }
    const share = places.length / every.length;
    t.ok(seen.reached > 40 * share, `${seen.reached} of ${places.length} instructions`);
    if (full) return;
    if (below === never) t.equal(seen.vanished, 0);
    else
      t.ok(
        seen.vanished > 10 * share && (seen.told > 5 * share || (around && handler === 'brief calls')),
        JSON.stringify(seen),
      );
  });
}

const shown = (all: readonly LogEntry[]): string => all.map(({ name, kind }) => `${name}:${kind}`).join(' ');

t.test(
  'a call that pends costs no claim, however full the ring is; one that is long has its record first',
  async (t) => {
    await using machine = await Machine.start();
    const client = new Ring(machine, ring);
    const [way] = ways as [Way];
    for (const below of [always, never]) {
      const { patched } = await plant(machine, client, way, below);
      await client.reset(1n);
      if (below === always) await client.set(controlBlock.limit, client.capacity);
      const start = calls.start();
      for (let number = 1; number <= 4; number++) {
        const from = { ...start, registers: { ...start.registers, a0: BigInt(number) } };
        t.same(await call(machine, patched, from), await call(machine, tested.code, from));
      }
      const { torn, all } = await told(client);
      t.same(torn, []);
      t.equal(shown(all), below === always ? '' : '1:1 1:2 2:1 2:2 3:1 3:2 4:1 4:2');
      t.equal(await client.control(controlBlock.dropped), 0n);
      if (below === always) t.ok((await client.control(controlBlock.ended)) > 0n);
    }
  },
);

t.test('a full ring that nobody drains: what pends waits for room, or vanishes', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine, ring);
  const [way] = ways as [Way];
  const { patched } = await plant(machine, client, way, never);
  await client.reset(1n);
  await client.set(controlBlock.limit, client.capacity);
  const start = calls.start();
  t.same(await call(machine, patched, start), await call(machine, tested.code, start));
  t.equal(await client.claimed(), 0);
  t.equal(await client.control(controlBlock.dropped), 1n, 'its exit');
  t.equal((await client.control(controlBlock.head)) & 3n, BigInt(headFlag.pending));
  await client.reopen();
  const next = { ...start, registers: { ...start.registers, a0: 7n } };
  t.same(await call(machine, patched, next), await call(machine, tested.code, next));
  const { torn, all } = await told(client);
  t.same(torn, []);
  t.equal(shown(all), `${BigInt.asUintN(64, start.registers.a0 ?? 0n)}:1 7:1 7:2`);
});

t.test('what calls that pend cannot be', (t) => {
  const displaced = probeCode.displace(tested.code, place.code, 'near') as Displaced;
  const entry = {
    ...plainEntry,
    at: place.near,
    ring,
    displaced,
    via: 'patch' as const,
    fields: entryFields,
    pends: true,
  };
  const hook = { exit: place.exit, keep: ['a0'] };
  t.throws(() => probeCode.entry(entry), /is hooked/);
  t.throws(() => probeCode.entry({ ...entry, hook, fields: [] }), /one time/);
  t.throws(() => probeCode.entry({ ...entry, hook, ring: smallRing }), /No call pends/);
  t.throws(() => probeCode.entry({ ...entry, hook, outerCopy: { at: 64, room: 8 } }), /is hooked/);
  t.throws(() => probeCode.flush(place.wait, smallRing), /No call pends/);
  t.end();
});
