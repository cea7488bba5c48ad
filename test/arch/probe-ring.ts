import t, { type Test } from 'tap';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import type { RecordField } from '../../src/arch/inject/record-parts.js';
import { controlBlock } from '../../src/arch/inject/ring-contract.js';
import { long, usually } from '../support/long.js';
import type { Registers } from './machine.js';
import { Caller, Calls, type ProbeTarget, type Start, type TestFunction } from './probe-calls.js';
import { random } from './random.js';
import { plainEntry, type TestRing, unsigned, type Way } from './ring.js';

const ENTRY = 1n;
const EXIT = 2n;
interface Planted {
  readonly patched: Uint8Array;
  /** Every instruction outside the function. */
  readonly places: readonly bigint[];
}

/** All records must be there; by what they say of a0, the kinds that there are. */
async function kindsByCall(
  client: TestRing,
): Promise<{ readonly torn: number[]; readonly kinds: Map<bigint, bigint[]> }> {
  const kinds = new Map<bigint, bigint[]>();
  const torn: number[] = [];
  for (const [number, record] of (await client.records()).entries()) {
    if (unsigned(record, 0) !== client.claimOf(number)) torn.push(number);
    const name = unsigned(record, 32);
    kinds.set(name, [...(kinds.get(name) ?? []), unsigned(record, 8)]);
  }
  return { torn, kinds };
}

/** What the tests of a ring need to know besides. */
export interface RingTarget extends ProbeTarget {
  /** Offsets of the instructions of code. */
  readonly instructions: (code: Uint8Array) => readonly number[];
  /** Offsets of the load and of the conditional store by which a claim is made. */
  readonly reservation: (trampoline: Uint8Array) => readonly [number, number];
  /**
   * A loop that calls `traced` until it has done so `calls` times; counts itself in a word at `counter`, waits until that
   * has as many as there are harts, and jumps in a circle, by an instruction of so many bytes.
   */
  readonly loop: {
    readonly loop: string;
    readonly lastBytes: number;
    readonly registers: Readonly<Record<'called' | 'pointer' | 'calls' | 'counter' | 'harts', string>>;
  };
  /** What tells a hart from the others. */
  readonly registersOf: (hart: number) => Registers;
  /** Of the interruptions those that are always tried. */
  readonly chosen?: readonly string[];
}

/** What a ring must do when its trampolines are interrupted, when it is full, and when several harts write to it. */
export function ringTests(target: RingTarget): void {
  const { code: probeCode, place, ways, smallRing, functions, helper, names, assemble } = target;
  const next = random(9);
  const calls = new Calls(target, next);
  const common: readonly RecordField[] = [
    { at: 16, size: 8, from: { kind: 'control', offset: controlBlock.outer } },
    { at: 24, size: 8, from: { kind: 'control', offset: controlBlock.outerPlan } },
    { at: 40, size: 8, from: target.hart },
  ];
  const entryFields: readonly RecordField[] = [
    ...common,
    { at: 8, size: 8, from: { kind: 'constant', value: ENTRY } },
    { at: 32, size: 8, from: { kind: 'register', name: names.argument } },
  ];
  const exitFields: readonly RecordField[] = [
    ...common,
    { at: 8, size: 8, from: { kind: 'constant', value: EXIT } },
    { at: 32, size: 8, from: { kind: 'kept', index: 0 } },
  ];
  const tested = functions.find(({ name }) => name === 'pushes a frame') as TestFunction;
  const instructions = (at: bigint, code: Uint8Array): readonly bigint[] =>
    target.instructions(code).map((offset) => at + BigInt(offset));

  async function plant(client: TestRing, way: Way, nesting: boolean): Promise<Planted> {
    const displaced = probeCode.displace(tested.code, place.code, way.kind) as Displaced;
    const { patched, trampoline } = await client.plantEntry(tested.code, displaced, way, {
      when: [],
      fields: entryFields,
      hook: { exit: place.exit, keep: [names.argument] },
      nesting: nesting ? { self: names.pointer, plan: place.plan } : undefined,
      outerCopy: undefined,
      counters: [],
    });
    const exit = await client.plantExit({ fields: exitFields, keep: [names.argument], nesting });
    const hop = way.hop === undefined ? undefined : probeCode.hop?.encode(displaced, way.hop, way.at);
    return {
      patched,
      places: [
        ...instructions(way.at, trampoline),
        ...instructions(place.exit, exit),
        ...instructions(place.wait, probeCode.wait(place.wait, client.geometry, true).code),
        ...(way.hop === undefined || hop === undefined ? [] : instructions(way.hop, hop)),
      ],
    };
  }

  /** Ring laps during an interrupt: 8 slots, two events a call. */
  const LAPS = long ? 13 : 5;

  const interruptions = ways.flatMap((way) =>
    [1, LAPS].flatMap((interrupting) => [true, false].map((full) => ({ way, interrupting, full }))),
  );
  /** How code is come to makes no difference to the laps, and laps have all that one call has. */
  const chosen = target.chosen ?? ['near, laps, false', 'near, by a hop, 1, true', 'far, 1, false'];
  for (const { way, interrupting, full } of usually(interruptions, (each) =>
    chosen.includes(`${each.way.name}, ${each.interrupting === LAPS ? 'laps' : each.interrupting}, ${each.full}`),
  )) {
    const what = `${way.name}, by a handler that makes ${interrupting} traced calls${full ? ', while the ring is full' : ''}`;
    t.test(`code may be interrupted at each instruction: ${what}`, { timeout: 600_000 }, async (t) => {
      await using machine = await target.start();
      const caller = new Caller(target, machine);
      const client = caller.ring();
      await machine.write(place.helper, helper);
      const { patched, places } = await plant(client, way, true);
      const from = calls.start();
      const registers: Registers = { ...from.registers, [names.argument]: 1_000n };
      const start = { ...from, registers };
      const untraced = await caller.call(tested.code, start);
      const handlerDone = place.done + 16n;
      let reached = 0;
      // Every second one without `--long`.
      for (const at of usually(places, (one) => places.indexOf(one) % 2 === 0)) {
        await client.reset(2n);
        await client.set(controlBlock.outer, 0x5000n);
        await client.set(controlBlock.outerPlan, 0x6000n);
        if (full) await client.set(controlBlock.limit, client.capacity);
        await caller.prepare(patched, start);
        await machine.run([at, place.done]);
        const interrupted = await machine.registers();
        const sp = interrupted.sp ?? 0n;
        if (interrupted.pc === at) {
          reached++;
          for (const [number, kind] of [ENTRY, EXIT].entries()) {
            const record = await client.record(number);
            const committed = unsigned(record, 0) === client.claimOf(number);
            const whole = unsigned(record, 8) === kind && unsigned(record, 32) === 1_000n;
            if (committed && !whole) t.fail(`committed too early at 0x${at.toString(16)}`);
          }
          if (sp % 16n !== 0n) t.fail(`sp 0x${sp.toString(16)} at 0x${at.toString(16)}`);
          if (full) await client.reopen();
          await machine.write(sp - 512n, Uint8Array.from({ length: 512 }, next));
          for (let index = 1; index <= interrupting; index++) {
            await client.openFor(2);
            const other = {
              [names.argument]: BigInt(index),
              [names.pointer]: place.data + 0x1000n,
              [names.link]: handlerDone,
              sp,
            };
            await machine.setRegisters({ ...calls.registers(), ...other });
            await machine.run([handlerDone]);
          }
          await client.openFor(2);
          await machine.setRegisters(interrupted);
          await machine.run([place.done]);
        }
        const traced = await caller.outcome();
        const where = `0x${at.toString(16)}`;
        caller.sameLeft(t, way, traced, untraced, where);
        const { torn, kinds } = await kindsByCall(client);
        t.same(torn, [], `${where}: every claim is written`);
        const own = kinds.get(1_000n) ?? [];
        if (full) t.ok(['', '1,2'].includes(own.join()), `${where}: ${own}`);
        else t.same(own, [ENTRY, EXIT], where);
        const others = interrupted.pc === at ? interrupting : 0;
        const called = Array.from({ length: others }, (_, index) => BigInt(index + 1));
        t.same(
          called.filter((index) => kinds.get(index)?.join() !== '1,2'),
          [],
          where,
        );
        const pairs = (await client.records()).map((record) => `${unsigned(record, 16)} ${unsigned(record, 24)}`);
        const sound = [`${0x5000} ${0x6000}`, `${registers[names.pointer]} ${place.plan}`];
        const odd = pairs.filter((pair) => !sound.includes(pair) && !pair.startsWith('0 '));
        t.same(odd, [], `${where}: a Future and its own plan`);
        t.equal(await client.control(controlBlock.outer), 0x5000n);
        t.equal(await client.control(controlBlock.outerPlan), 0x6000n);
      }
      const least = full ? 20 : 90;
      t.ok(reached > (long ? least : least / 2), `${reached} of ${places.length} instructions`);
    });
  }

  /** A call that goes on after each wait for room; so many were there. It leaves what it leaves untraced. */
  async function waited(
    t: Test,
    caller: Caller,
    patched: Uint8Array,
    start: Start,
    onWait: (stop: number) => Promise<void>,
  ): Promise<number> {
    const { machine } = caller;
    const { breakpoint } = probeCode.wait(place.wait, smallRing, true);
    const untraced = await caller.call(tested.code, start);
    await caller.prepare(patched, start);
    for (let stops = 0; ; ) {
      await machine.run([breakpoint, place.done]);
      const registers = await machine.registers();
      if (registers.pc === place.done) {
        t.same(await caller.outcome(), untraced);
        return stops;
      }
      await onWait(++stops);
      await machine.setRegisters({ ...registers, pc: breakpoint + 4n });
    }
  }

  t.test('the client moves the limit lap after lap, and the claims go on', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    await machine.write(place.helper, helper);
    const [way] = ways as [Way];
    const { patched } = await plant(client, way, false);
    await client.reset();
    let waits = 0;
    for (let number = 0; number < 25; number++) {
      const from = calls.start();
      const start = { ...from, registers: { ...from.registers, [names.argument]: BigInt(number) } };
      waits += await waited(t, caller, patched, start, () => client.open());
    }
    t.equal(await client.claimed(), 50);
    const { torn, kinds } = await kindsByCall(client);
    t.same(torn, []);
    t.same(
      [...kinds.keys()],
      Array.from({ length: 25 }, (_, index) => BigInt(index)),
    );
    // 8 slots are open from the start, and 4 more at each wait.
    t.equal(waits, Math.ceil((50 - 8) / 4));
    t.equal(await client.control(controlBlock.dropped), 0n);
  });

  t.test('a full ring that no stop makes room in stops again and again, then drops', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    await machine.write(place.helper, helper);
    const [way] = ways as [Way];
    const { patched } = await plant(client, way, false);
    for (const { stops, makesRoom, looks } of [
      { stops: 3, makesRoom: undefined, looks: 1n },
      { stops: 3, makesRoom: undefined, looks: 1000n },
      { stops: 2, makesRoom: 2, looks: 100n },
    ]) {
      await client.reset(3n);
      await client.set(controlBlock.looks, looks);
      await client.set(controlBlock.limit, client.capacity);
      const start = calls.start();
      const stopped = await waited(t, caller, patched, start, async (stop) => {
        if (stop === makesRoom) await client.reopen();
      });
      t.equal(stopped, stops);
      t.equal(await client.control(controlBlock.dropped), makesRoom ? 0n : 1n);
      t.equal(await client.control(controlBlock.unattended), makesRoom ? 0n : 1n);
      t.equal(await client.claimed(), makesRoom ? 2 : 0);
      t.ok((await client.control(controlBlock.waited)) > 0n, 'its time is counted');
    }
  });

  t.test('a full ring that nobody drains drops events, and functions return all the same', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    await machine.write(place.helper, helper);
    for (const way of ways) {
      for (const spins of [1n, 1_000n, 0n]) {
        const { patched } = await plant(client, way, true);
        await client.reset(spins);
        // Room for 8: the fourth call has its exit in the last slot; then with one slot less, its exit is dropped.
        const short = spins === 1n ? 1n : 0n;
        await client.set(controlBlock.limit, 2n * client.capacity - short * client.slot);
        for (let number = 0; number < 7; number++) {
          const from = calls.start();
          await caller.both(t, [tested.code, patched, way], from, `${way.name} ${number}`);
        }
        t.equal(await client.claimed(), 8 - Number(short), 'nothing is claimed that is not written');
        t.equal(await client.control(controlBlock.dropped), 3n + short, 'three entries, whose exits were never hooked');
        t.equal(await client.control(controlBlock.unattended), 1n);
        t.equal(await client.control(controlBlock.outer), 0n);
      }
    }
  });

  t.test('events of several harts are all there, in order by hart', { timeout: 600_000 }, async (t) => {
    const HARTS = 3;
    const CALLS = long ? 1_500 : 200;
    await using machine = await target.start(HARTS);
    const caller = new Caller(target, machine);
    // Seven bits of slots in 8 KiB segments.
    const client = caller.ring({ ...smallRing, segmentShift: 13 });
    await machine.write(place.helper, helper);
    const [way] = ways as [Way];
    const { patched } = await plant(client, way, false);
    await client.reset(1n << 40n);
    await machine.write(place.code, patched);
    const { loop: text, lastBytes, registers: used } = target.loop;
    const loop = assemble(text, place.done, { traced: place.code });
    await machine.write(place.done, loop);
    await machine.writeWord(place.counter, 0n);
    const end = place.done + BigInt(loop.length - lastBytes);
    for (let hart = 1; hart <= HARTS; hart++) {
      await machine.setRegisters(
        {
          ...calls.registers(),
          pc: place.done,
          ...target.registersOf(hart),
          sp: place.stack + BigInt(0x1000 * hart),
          [used.called]: 0n,
          [used.pointer]: place.data + BigInt(64 * hart),
          [used.calls]: BigInt(CALLS),
          [used.counter]: place.counter,
          [used.harts]: BigInt(HARTS),
        },
        hart,
      );
    }
    const { breakpoint } = probeCode.wait(place.wait, client.geometry, true);
    let stops = 0;
    for (;;) {
      const stopped = await machine.run([breakpoint, end]);
      if ((await machine.registers(stopped)).pc === end) break;
      stops++;
      await client.open();
      for (let hart = 1; hart <= HARTS; hart++) {
        const registers = await machine.registers(hart);
        if (registers.pc === breakpoint) await machine.setRegisters({ ...registers, pc: breakpoint + 4n }, hart);
      }
    }
    t.equal(await client.claimed(), 2 * HARTS * CALLS, 'every event has a claim');
    t.ok(stops > 10, `${stops} stops`);
    t.equal(await client.control(controlBlock.dropped), 0n);
    const seen = new Map<bigint, bigint[]>();
    const wrong: string[] = [];
    for (const [number, record] of (await client.records()).entries()) {
      if (unsigned(record, 0) !== client.claimOf(number)) wrong.push(`${number} is not written`);
      const hart = unsigned(record, 40);
      seen.set(hart, [...(seen.get(hart) ?? []), 2n * unsigned(record, 32) + unsigned(record, 8)]);
    }
    t.same(wrong, []);
    t.equal(seen.size, HARTS);
    const inOrder = Array.from({ length: 2 * CALLS }, (_, index) => BigInt(index + 1));
    for (const [hart, events] of seen) t.same(events, inOrder, `hart ${hart}`);
  });

  t.test('a claim that was given up leaves no reservation to the code that it interrupted', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    await machine.write(place.helper, helper);
    const [way] = ways as [Way];
    const displaced = probeCode.displace(tested.code, place.code, way.kind) as Displaced;
    const { patched, trampoline } = await client.plantEntry(tested.code, displaced, way, {
      ...plainEntry,
      fields: entryFields,
    });
    const [reserves, stores] = target.reservation(trampoline).map((offset) => way.at + BigInt(offset));
    await client.reset();
    await client.set(controlBlock.limit, client.claimOf(1));
    const from = calls.start();
    const registersFor = (first: bigint): Registers => ({
      ...from.registers,
      [names.argument]: first,
      sp: (from.registers.sp ?? 0n) - 512n * first,
    });
    // One between its load and its conditional store is interrupted by one that is about to claim; this by a third.
    await caller.prepare(patched, { ...from, registers: registersFor(0n) });
    await machine.run([stores ?? 0n]);
    const first = await machine.registers();
    await machine.setRegisters(registersFor(1n));
    await machine.run([reserves ?? 0n]);
    const second = await machine.registers();
    await machine.setRegisters(registersFor(2n));
    await machine.run([place.done]);
    t.equal(await client.claimed(), 1, 'the third had the last slot');
    // The second finds the ring full, and so does the first.
    await machine.setRegisters(second);
    await machine.run([place.done]);
    await machine.setRegisters(first);
    await machine.run([place.done]);
    t.equal(await client.claimed(), 1);
    t.equal(await client.control(controlBlock.dropped), 2n);
    t.equal(unsigned(await client.record(0), 32), 2n);
  });
}
