import t from 'tap';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import type { FieldSource, RecordField } from '../../src/arch/inject/record-parts.js';
import { controlBlock } from '../../src/arch/inject/ring-contract.js';
import type { EntryTrampoline } from '../../src/arch/inject/trampolines.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { addr } from '../../src/base/addr.js';
import { Caller, Calls, type TestFunction } from './probe-calls.js';
import { random } from './random.js';
import { functions, helper } from './riscv64-functions.js';
import { assemble, Machine } from './riscv64-machine.js';
import { place, plainEntry, Ring, smallRing, unsigned, type Way, ways } from './riscv64-ring.js';
import { target } from './riscv64-target.js';

const tested = functions.find(({ name }) => name === 'pushes a frame') as TestFunction;
const near = probeCode.displace(tested.code, place.code, 'near') as Displaced;
const far = probeCode.displace(tested.code, place.code, 'far') as Displaced;
const calls = new Calls(target, random(21));

function entry(change: Partial<EntryTrampoline>): Uint8Array {
  return probeCode.entry({ ...plainEntry, at: place.near, ring: smallRing, displaced: near, via: 'patch', ...change });
}

const field = (from: FieldSource, at = 8): RecordField => ({ at, size: 8, from });
const hook = { exit: place.exit, keep: ['a0'] };

t.test('what the architecture or the record cannot do is refused', async (t) => {
  const a0: FieldSource = { kind: 'register', name: 'a0' };
  const load = (align: number): FieldSource => ({
    kind: 'load',
    base: { kind: 'register', name: 'a0' },
    offset: 0,
    align,
  });
  const loop = assemble('addi a0,a0,-1\nbnez a0,_start\nret', place.code);
  const looping = probeCode.displace(loop, place.code, 'near');
  t.equal(probeCode.loopsToStart(loop, place.code), true);
  t.equal(probeCode.loopsToStart(assemble('nop\n0: bnez a0,0b\ncall _start\nret', place.code), place.code), false);
  for (const [what, change] of [
    ['no such register', { fields: [field({ kind: 'register', name: 'rax' })] }],
    ['a float register', { fields: [field({ kind: 'register', name: 'fa0' })] }],
    ['no float register', { fields: [field({ kind: 'float', name: 'a0', mayBeOff: true })] }],
    ['fs', { fields: [field({ kind: 'hart', how: 'fs' })] }],
    ['an APIC', { fields: [field({ kind: 'hart', how: 'apic' })] }],
    ['kept at an entry', { fields: [field({ kind: 'kept', index: 0 })], hook }],
    ['over the commit word', { fields: [field(a0, 0)] }],
    ['past the slot', { fields: [field(a0, 128)] }],
    ['across', { fields: [field(a0, 12)] }],
    ['a copy past the slot', { outerCopy: { at: 120, room: 9 } }],
    ['an odd alignment', { fields: [field(load(3))] }],
    ['too big an alignment', { fields: [field(load(4096))] }],
    ['slots of 4 bytes', { ring: { ...smallRing, slotShift: 2 } }],
    ['slots past a store', { ring: { ...smallRing, slotShift: 12, segmentShift: 14 } }],
    ['segments smaller than a slot', { ring: { ...smallRing, segmentShift: 6 } }],
    ['too many segments', { ring: { ...smallRing, countShift: 7 } }],
    ['nesting without a hook', { nesting: { self: 'a0', plan: place.plan } }],
    ['counting with a hook', { counters: [{ kind: 'calls', at: place.counter, when: [] }], hook }],
    ['counting with a record', { counters: [{ kind: 'calls', at: place.counter, when: [] }], fields: [field(a0)] }],
    ['five kept registers', { hook: { exit: place.exit, keep: ['a0', 'a1', 'a2', 'a3', 'a4'] } }],
    ['a hook in a loop', { displaced: looping as Displaced, hook }],
    ['far through a hop', { displaced: far, via: { hop: place.hop } }],
    ['t0 behind a far patch', { displaced: far, fields: [field({ kind: 'register', name: 't0' })] }],
    ['t0 kept behind a far patch', { displaced: far, hook: { exit: place.exit, keep: ['t0'] } }],
    [
      't0 compared behind a far patch',
      { displaced: far, when: [{ register: 't0', size: 8, signed: true, op: 'eq', value: 0n }] },
    ],
    ['a near one out of reach', { at: place.far }],
    ['the control block out of reach', { ring: { ...smallRing, control: addr(0x12_0000_0000) } }],
  ] as const)
    t.throws(() => entry(change), RangeError, what);
  const exit = { at: place.exit, ring: smallRing, keep: ['a0'], nesting: false };
  t.throws(() => probeCode.exit({ ...exit, fields: [field({ kind: 'kept', index: 1 })] }), RangeError);
  t.throws(() => probeCode.hop?.encode(far, place.hop, place.far), RangeError);
  t.throws(() => probeCode.hop?.encode(near, place.far, place.far), RangeError, 'a hop out of reach of the function');
});

t.test('code is as long wherever it stands', async (t) => {
  const fields = [field({ kind: 'constant', value: 0x1234_5678_9abcn }), field({ kind: 'time' }, 16)];
  const lengths = new Set(
    [-0xf_0000, -8, 0x1234, 0xe_0000].map(
      (offset) =>
        entry({ at: addr(place.code + BigInt(offset)), fields, hook, nesting: { self: 'a2', plan: place.plan } })
          .length,
    ),
  );
  t.equal(lengths.size, 1);
  const exits = [0x1000_0000, 0x8000_0000, 0xf000_0000].map(
    (at) => probeCode.exit({ at: addr(at), ring: smallRing, fields, keep: [], nesting: true }).length,
  );
  t.equal(new Set(exits).size, 1);
  t.equal(probeCode.hop?.bytes(near), probeCode.hop?.encode(near, place.hop, place.far).length);
});

t.test('a hooked return address lies where it is said to', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  await machine.write(place.helper, helper);
  for (const keep of [[], ['a0'], ['a0', 'a1'], ['a0', 'a1', 'a2', 'a3']]) {
    await client.reset();
    const { patched } = await client.plantEntry(tested.code, near, ways[0] as Way, {
      ...plainEntry,
      hook: { exit: place.exit, keep },
    });
    await new Caller(target, machine).prepare(patched, calls.start());
    await machine.run([place.exit]);
    const { sp = 0n } = await machine.registers();
    t.equal(await machine.word(sp + BigInt(probeCode.hookedReturnOffset(keep.length, false))), place.done);
    t.equal(sp % 16n, 0n);
  }
});

t.test('a floating-point register is recorded, and left alone while the unit is off', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  await machine.write(place.helper, helper);
  await client.reset();
  const fields = [field({ kind: 'float', name: 'fa3', mayBeOff: true })];
  const { patched } = await client.plantEntry(tested.code, near, ways[0] as Way, { ...plainEntry, fields });
  const doubles = [0, -1.5, 1e300, Number.NaN].map((value) => {
    return new BigUint64Array(Float64Array.of(value).buffer)[0] ?? 0n;
  });
  for (const fs of [1, 2, 3, 0])
    for (const bits of doubles) {
      const on =
        fs === 0 ? '' : `li a1, ${fs << 13}; csrs mstatus, a1; fmv.d.x fa3, a0; csrc mstatus, a2; csrs mstatus, a1;`;
      const before = `li a2, 0x6000; csrc mstatus, a2; ${on} li a1, ${place.code}; jr a1`;
      await machine.write(place.hop, assemble(before, place.hop));
      const start = calls.start();
      await client.openFor(1);
      const { a0: unused, ...registers } = start.registers;
      const outcome = await new Caller(target, machine).call(patched, {
        ...start,
        registers: { ...registers, a0: bits, pc: place.hop },
      });
      t.equal(outcome.registers.sp, start.registers.sp, 'it has returned, without a trap');
      const record = (await client.records()).at(-1) as DataView;
      t.equal(unsigned(record, 8), fs === 0 ? 2n ** 64n - 1n : bits, `FS ${fs}`);
    }
});

t.test('rings of the smallest and the largest geometry are written as the contract says', async (t) => {
  await using machine = await Machine.start();
  await machine.write(place.helper, helper);
  for (const change of [
    { slotShift: 3, segmentShift: 3, countShift: 0 },
    { slotShift: 4, segmentShift: 5, countShift: 6 },
    { slotShift: 11, segmentShift: 12, countShift: 2 },
  ]) {
    const client = new Ring(machine, { ...smallRing, ...change });
    await client.reset();
    const fields = change.slotShift === 3 ? [] : [field({ kind: 'register', name: 'a0' }, Number(client.slot) - 8)];
    const { patched } = await client.plantEntry(tested.code, near, ways[0] as Way, { ...plainEntry, fields });
    const sent: bigint[] = [];
    for (let number = 0; number < 9; number++) {
      const start = calls.start();
      await client.openFor(1);
      await new Caller(target, machine).call(patched, start);
      sent.push(start.registers.a0 ?? 0n);
    }
    const records = await client.records();
    t.same(
      records.map((record) => unsigned(record, 0)),
      sent.map((_, number) => client.claimOf(number)),
    );
    if (fields.length > 0)
      t.same(
        records.map((record) => unsigned(record, Number(client.slot) - 8)),
        sent,
      );
    t.equal(await client.control(controlBlock.dropped), 0n);
  }
});
