import t from 'tap';
import { aarch64 } from '../../src/arch/aarch64/index.js';
import { probeCode } from '../../src/arch/aarch64/trampoline.js';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import type { Condition, FieldSource, RecordField } from '../../src/arch/inject/record-parts.js';
import { controlBlock } from '../../src/arch/inject/ring-contract.js';
import { addOffset } from '../../src/base/addr.js';
import { cases, usually } from '../support/long.js';
import { functions, helper } from './aarch64-functions.js';
import { Machine, order, place, type Registers, smallRing, ways } from './aarch64-machine.js';
import { target } from './aarch64-target.js';
import { limits } from './buckets.js';
import { Caller, Calls, type TestFunction } from './probe-calls.js';
import { random, values } from './random.js';
import { pointsOf, readBehind, references } from './references.js';
import { plainEntry, TestRing, unsigned, type Way } from './ring.js';

await aarch64.prepare();

class Ring extends TestRing {
  constructor(machine: Machine) {
    super(machine, { place, code: probeCode });
  }
}

const next = random(5);
const calls = new Calls(target, next);

function displace({ code }: TestFunction, { kind }: Way): Displaced | undefined {
  const displaced = probeCode.displace(code, place.code, kind);
  return 'refused' in displaced ? undefined : displaced;
}

const SLOT = 2 ** smallRing.slotShift;
const value = values(next);
const sizes = [1, 2, 4, 8] as const;
const pick = <T>(list: readonly T[]): T => list[next() % list.length] as T;

function functionNamed(name: string): TestFunction {
  return functions.find((tested) => tested.name === name) as TestFunction;
}

/** A record full of random fields. */
function randomFields(sources: readonly FieldSource[]): RecordField[] {
  const fields: RecordField[] = [];
  for (let at = 8; at < SLOT; ) {
    const size = pick(sizes);
    at = Math.ceil(at / size) * size;
    if (at + size > SLOT) break;
    fields.push({ at, size, from: pick(sources) });
    at += size;
  }
  return fields;
}

/** What is counted is read from these: arguments, what is kept, what the code works with. */
const counted = ['x0', 'x7', 'x19', 'x9', 'x17', 'x10', 'x3'];
const KEEP = ['x2', 'x9', 'sp', 'x10'] as const;

const shared: readonly FieldSource[] = [
  ...order

    .slice(0, 31)
    .flatMap((name) => (name === 'x16' || name === 'x30' ? [] : [{ kind: 'register', name } as const])),
  { kind: 'register', name: 'x19' },
  { kind: 'stack-pointer' },
  { kind: 'return-address' },
  { kind: 'hart', how: 'mpidr' },
  { kind: 'control', offset: controlBlock.spins },
  ...[0n, 1n, 2047n, 2048n, -1n, 0x7fff_ffffn, 0x8000_0000n, 0x1234_5678_9abc_def0n, 1n << 63n].map(
    (constant) => ({ kind: 'constant', value: constant }) as const,
  ),
];

const fromRegister = (name: string, offset: number, align: number): FieldSource => ({
  kind: 'load',
  base: { kind: 'register', name },
  offset,
  align,
});
const entryLoads = [
  fromRegister('x2', 0, 8),
  fromRegister('x2', 24, 8),
  fromRegister('x2', -4, 8),
  fromRegister('x9', 16, 1),
  fromRegister('x21', 0, 1),
  fromRegister('x22', 0, 8),
  fromRegister('x22', 4, 4),
  fromRegister('x2', 4096, 8),
];
const exitSources: readonly FieldSource[] = [
  ...KEEP.map((_, index) => ({ kind: 'kept', index }) as const),
  { kind: 'load', base: { kind: 'kept', index: 0 }, offset: 8, align: 8 },
  { kind: 'load', base: { kind: 'kept', index: 1 }, offset: 0, align: 4 },
];

interface Known {
  readonly registers: Registers;
  readonly kept: Registers;
  readonly sp: bigint;
  readonly data: Uint8Array;
}

/** What the contract says that a field holds; undefined where that is not known here. */
function expected(from: FieldSource, size: number, known: Known): bigint | undefined {
  const { registers, kept } = known;
  const named = (name: string): bigint => registers[name] ?? 0n;
  const keptValue = (index: number): bigint => kept[KEEP[index] as string] ?? 0n;
  switch (from.kind) {
    case 'register':
      return named(from.name);
    case 'stack-pointer':
      return known.sp;
    case 'return-address':
      return place.done;
    case 'kept':
      return keptValue(from.index);
    case 'constant':
      return from.value;
    case 'hart':
      return 0x8000_0000n;
    case 'control':
      return 3n;
    case 'time':
      return undefined;
    case 'load': {
      const base = from.base.kind === 'register' ? named(from.base.name) : keptValue(from.base.index);
      if (base === 0n || base % BigInt(from.align) !== 0n) return -1n;
      return inData(known, base, from.offset, size);
    }
  }
}

function inData({ data }: Known, base: bigint, offset: number, size: number): bigint {
  const at = Number(base - place.data) + offset;
  const bytes = Uint8Array.from({ length: size }, (_, index) => data[at + index] ?? 0);
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

function differences(record: DataView, fields: readonly RecordField[], known: Known): string[] {
  return fields.flatMap(({ at, size, from }) => {
    const wanted = expected(from, size, known);
    const got = unsigned(record, at, size);
    if (wanted === undefined || got === BigInt.asUintN(8 * size, wanted)) return [];
    const what = JSON.stringify(from, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part));
    return [
      `${what} of ${size} at ${at}: 0x${got.toString(16)}, not 0x${BigInt.asUintN(8 * size, wanted).toString(16)}`,
    ];
  });
}

t.test('a traced function leaves what it leaves untraced, and the records hold what was there', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  await machine.write(place.helper, helper);
  const entrySources = [...shared, ...entryLoads, { kind: 'register', name: 'x30' } as const];
  for (const tested of functions) {
    for (const way of ways) {
      const displaced = displace(tested, way);
      if (displaced === undefined) continue;
      // One that loses its return address at once returns in another way.
      const isHookable = !/^calls .*at once$/.test(tested.name);
      for (const hooked of isHookable ? [false, true] : [false]) {
        for (const nested of hooked ? [false, true] : [false]) {
          const what = `${tested.name}, ${way.name}${hooked ? ', hooked' : ''}${nested ? ', nesting' : ''}`;
          const from = calls.start();
          await client.reset();
          await client.set(controlBlock.outerPlan, 77n);
          const t0 = way.kind === 'near' ? [{ kind: 'register', name: 'x16' } as const] : [];
          const fields = randomFields([...entrySources, ...t0]);
          const exitFields = randomFields([...shared, ...exitSources]);
          const keep = hooked ? KEEP : [];
          const { patched, trampoline } = await client.plantEntry(tested.code, displaced, way, {
            ...plainEntry,
            fields,
            hook: hooked ? { exit: place.exit, keep } : undefined,
            nesting: nested ? { self: 'x2', plan: place.plan } : undefined,
          });
          const exit = await client.plantExit({ fields: hooked ? exitFields : [], keep, nesting: nested });
          t.ok(trampoline.length < 700 && exit.length < 700, `${trampoline.length} and ${exit.length} bytes`);
          const untraced = await new Caller(target, machine).both(t, [tested.code, patched, way], from, what);

          const depth = tested.name === 'calls itself' ? Number((from.registers.x0 ?? 0n) & 3n) + 1 : 1;
          t.equal(await client.claimed(), hooked ? 2 * depth : depth, 'events');
          const sp = from.registers.sp as bigint;
          const record = await client.record(0);
          t.equal(unsigned(record, 0, 8), client.claimOf(0), 'committed');
          t.same(differences(record, fields, { registers: from.registers, kept: {}, sp, data: from.data }), []);
          if (hooked) {
            const last = await client.record(2 * depth - 1);
            t.equal(unsigned(last, 0, 8), client.claimOf(2 * depth - 1), 'exit committed');
            // t0 to t3 at the return are what the function left in them, though the trampoline uses them.
            const known = { registers: untraced.registers, kept: from.registers, sp, data: untraced.data };
            t.same(differences(last, exitFields, known), []);
          }
          t.equal(await client.control(controlBlock.outer), 0n, 'no poll is open');
          t.equal(await client.control(controlBlock.outerPlan), 77n);
        }
      }
    }
  }
});

const holds: Readonly<Record<Condition['op'], (a: bigint, b: bigint) => boolean>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

t.test('conditions compare as integers of their type do, with any constant', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const leaf = functionNamed('is a leaf');
  await client.reset();
  let counted = 0;
  let kept = 0;
  const wrong: string[] = [];
  for (const op of ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const) {
    for (const size of sizes) {
      for (const signed of [true, false]) {
        for (let round = 0; round < cases(6); round++) {
          const way = pick(ways);
          const register = pick(['x0', 'x1', 'x19', 'x9', 'x17', 'x10', 'sp', 'x3']);
          const from = calls.start();
          const bits = from.registers[register] ?? 0n;
          const left = (signed ? BigInt.asIntN : BigInt.asUintN)(8 * size, bits);
          const constant = pick([left, left - 1n, left + 1n, value(), -value(), 0n, 300n]);
          const displaced = displace(leaf, way) as Displaced;
          const { patched } = await client.plantEntry(leaf.code, displaced, way, {
            ...plainEntry,
            counters: [
              { kind: 'calls', at: place.counter, when: [{ register, size, signed, op, value: constant }] },
              { kind: 'calls', at: addOffset(place.counter, 8), when: [] },
            ],
          });
          await machine.writeWord(place.counter, 41n);
          await machine.writeWord(addOffset(place.counter, 8), 6n);
          await new Caller(target, machine).both(t, [leaf.code, patched, way], from);
          const yes = (await machine.word(place.counter)) === 42n;
          if ((await machine.word(addOffset(place.counter, 8))) !== 7n) wrong.push('the counter without a condition');
          if (yes !== holds[op](left, constant)) wrong.push(`${register} ${left} ${op} ${constant}: ${yes}`);
          if (yes) counted++;
          else kept++;
        }
      }
    }
  }
  t.same(wrong, []);
  t.ok(counted > 25 && kept > 25, `${counted} counted, ${kept} not`);
  t.equal(await client.claimed(), 0, 'counting claims nothing');
});

t.test('calls are counted by the size of an integer in a register', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const leaf = functionNamed('is a leaf');
  await client.reset();
  const wrong: string[] = [];
  const seen = new Set<number>();
  for (const size of sizes) {
    for (const signed of [true, false]) {
      for (const register of usually(counted, (one) => one !== 'x7' && one !== 'x3')) {
        const way = pick(ways);
        const start = calls.start();
        // As many bits as not: otherwise nearly all are of the highest bucket.
        const bits = BigInt.asUintN(64, value()) >> BigInt(pick([0, 1, 8, 20, 33, 50, 62]));
        const name = register;
        const given = register === 'x3' || register === 'x9' ? (start.registers[name] ?? 0n) : bits;
        const from = { ...start, registers: { ...start.registers, [name]: given } };
        const displaced = displace(leaf, way) as Displaced;
        const { patched } = await client.plantEntry(leaf.code, displaced, way, {
          ...plainEntry,
          counters: [{ kind: 'buckets', at: place.counter, when: [], of: { register, size, signed } }],
        });
        await machine.write(place.counter, new Uint8Array(8 * limits.length));
        await new Caller(target, machine).both(t, [leaf.code, patched, way], from);
        const integer = (signed ? BigInt.asIntN : BigInt.asUintN)(8 * size, given);
        const bucket = limits.findIndex((limit) => integer >= limit.from && integer < limit.below);
        const bytes = await machine.read(place.counter, 8 * limits.length);
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
        const counted = limits.flatMap((_, i) => (view.getBigUint64(8 * i, true) === 0n ? [] : [i]));
        const one = view.getBigUint64(8 * bucket, true) === 1n;
        if (!one || counted.length !== 1) wrong.push(`${register} ${integer}: ${counted}, not ${bucket}`);
        seen.add(bucket);
      }
    }
  }
  t.same(wrong, []);
  t.ok(seen.size > 10, `${seen.size} buckets`);
  t.equal(await client.claimed(), 0, 'counting claims nothing');
});

t.test('what is in a register, or behind it, is added up in 128 bits, between two other counters', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const leaf = functionNamed('is a leaf');
  const words = place.data + 0x8000n;
  await client.reset();
  const wrong: string[] = [];
  const before = [0n, 1n, (1n << 64n) - 1n, -1n, -(1n << 64n), (1n << 63n) - 1n, 1n << 100n];
  for (const size of sizes) {
    for (const signed of [true, false]) {
      for (const register of usually(counted, (one) => one !== 'x7' && one !== 'x3')) {
        const way = pick(ways);
        const start = calls.start();
        const name = register;
        const behind =
          register !== 'x3' && register !== 'x9' && pick([true, false]) ? pick(references(size)) : undefined;
        const { words: content, first } = pointsOf(words, pick, value);
        const number = pick([0n, 1n, (1n << 64n) - 1n, 1n << 63n, BigInt.asUintN(64, value())]);
        const given = register === 'x3' || register === 'x9' ? (start.registers[name] ?? 0n) : behind ? first : number;
        const from = { ...start, registers: { ...start.registers, [name]: given } };
        const of = { register, size, signed, ...(behind && { behind }) };
        const { patched } = await client.plantEntry(leaf.code, displace(leaf, way) as Displaced, way, {
          ...plainEntry,
          counters: [
            { kind: 'calls', at: place.counter, when: [] },
            { kind: 'sum', at: addOffset(place.counter, 8), when: [], of },
            { kind: 'calls', at: addOffset(place.counter, 32), when: [] },
          ],
        });
        for (const [index, word] of content.entries()) await machine.writeWord(words + BigInt(8 * index), word);
        const was = pick(before);
        for (const [index, word] of [4n, 7n, was, was >> 64n, 9n].entries())
          await machine.writeWord(addOffset(place.counter, 8 * index), BigInt.asUintN(64, word));
        await new Caller(target, machine).both(t, [leaf.code, patched, way], from);
        const integer = behind
          ? readBehind(of, first, content, words)
          : (signed ? BigInt.asIntN : BigInt.asUintN)(8 * size, given);
        const sum = was + (integer ?? 0n);
        const wanted = [5n, integer === undefined ? 7n : 8n, sum, sum >> 64n, 10n].map((word) =>
          BigInt.asUintN(64, word),
        );
        const got = [];
        for (const index of wanted.keys()) got.push(await machine.word(addOffset(place.counter, 8 * index)));
        if (got.join() !== wanted.join())
          wrong.push(`${JSON.stringify({ ...of, way: way.name })} ${was} + ${integer}: ${got}`);
      }
    }
  }
  t.same(wrong, []);
  t.equal(await client.claimed(), 0, 'counting claims nothing');
});

t.test('of several conditions all must hold, else there is no record and no hook', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const tested = functionNamed('pushes a frame');
  await machine.write(place.helper, helper);
  for (const way of ways) {
    const displaced = displace(tested, way) as Displaced;
    const from = calls.start();
    const equal = (register: string, by: bigint): Condition => {
      const constant = BigInt.asUintN(64, (from.registers[register] ?? 0n) + by);
      return { register, size: 8, signed: false, op: 'eq', value: constant };
    };
    for (const [first, second] of [
      [0n, 0n],
      [0n, 1n],
      [1n, 0n],
    ] as const) {
      await client.reset();
      const { patched } = await client.plantEntry(tested.code, displaced, way, {
        ...plainEntry,
        when: [equal('x0', first), equal('x17', second)],
        hook: { exit: place.exit, keep: ['x0'] },
        nesting: { self: 'x2', plan: place.plan },
      });
      await client.plantExit({ fields: [], keep: ['x0'], nesting: true });
      await new Caller(target, machine).both(t, [tested.code, patched, way], from);
      t.equal(await client.claimed(), first === 0n && second === 0n ? 2 : 0);
    }
  }
});

t.test('what the plan lists is copied out of the Future whose poll is open', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const tested = functionNamed('is a leaf');
  const offsets = [0, 9, 3, 200];
  await machine.write(place.plan, new Uint8Array(Uint32Array.of(offsets.length, ...offsets).buffer));
  for (const way of ways) {
    for (const [outer, room, copied] of [
      [place.data, 4, true],
      [place.data, 24, true],
      [place.data, 3, false],
      [0n, 24, false],
    ] as const) {
      const from = calls.start();
      await client.reset();
      await client.set(controlBlock.outer, outer);
      await client.set(controlBlock.outerPlan, place.plan);
      const displaced = displace(tested, way) as Displaced;
      const { patched } = await client.plantEntry(tested.code, displaced, way, {
        ...plainEntry,
        fields: [
          { at: 8, size: 8, from: { kind: 'control', offset: controlBlock.outer } },
          ...['x16', 'x11', 'x12', 'x13'].flatMap((name, index) =>
            name === 'x16' && way.kind === 'far'
              ? []
              : [{ at: 64 + 8 * index, size: 8, from: { kind: 'register', name } } as const],
          ),
        ],
        outerCopy: { at: 17, room },
      });
      await new Caller(target, machine).both(t, [tested.code, patched, way], from);
      const record = await client.record(0);
      t.equal(unsigned(record, 8), outer);
      const wanted = offsets.map((offset) => (copied ? (from.data[offset] ?? -1) : 0));
      t.same([...new Uint8Array(record.buffer, record.byteOffset + 17, 6)], [...wanted, 0, 0]);
      for (const [index, name] of ['x11', 'x12', 'x13'].entries())
        t.equal(unsigned(record, 72 + 8 * index), from.registers[name], name);
    }
  }
});

t.test('a nested call sees the one around it as the open poll', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const tested = functionNamed('calls itself');
  for (const way of ways) {
    const from = calls.start();
    const start = { ...from, registers: { ...from.registers, x0: 3n } };
    await client.reset();
    await client.set(controlBlock.outer, 0x5000n);
    const fields: RecordField[] = [
      { at: 8, size: 8, from: { kind: 'register', name: 'x0' } },
      { at: 16, size: 8, from: { kind: 'control', offset: controlBlock.outer } },
      { at: 24, size: 8, from: { kind: 'time', counter: 'cntvct' } },
      { at: 40, size: 8, from: { kind: 'stack-pointer' } },
    ];
    const displaced = displace(tested, way) as Displaced;
    const { patched } = await client.plantEntry(tested.code, displaced, way, {
      ...plainEntry,
      fields,
      hook: { exit: place.exit, keep: ['x0', 'sp'] },
      nesting: { self: 'x0', plan: place.plan },
    });
    await client.plantExit({
      fields: [
        ...fields,
        { at: 48, size: 8, from: { kind: 'kept', index: 0 } },
        { at: 56, size: 8, from: { kind: 'kept', index: 1 } },
      ],
      keep: ['x0', 'sp'],
      nesting: true,
    });
    await new Caller(target, machine).call(patched, start);
    const records = await client.records();
    t.same(
      records.map((record) => unsigned(record, 16)),
      [0x5000n, 3n, 2n, 1n, 1n, 2n, 3n, 0x5000n],
      'outer',
    );
    t.same(
      records.slice(0, 4).map((record) => unsigned(record, 8)),
      [3n, 2n, 1n, 0n],
    );
    t.same(
      records.slice(4).map((record) => unsigned(record, 48)),
      [0n, 1n, 2n, 3n],
      'kept',
    );
    t.same(
      records.slice(4).map((record) => unsigned(record, 56)),
      records
        .slice(0, 4)
        .map((record) => unsigned(record, 40))
        .reverse(),
      'an exit knows the stack pointer of its entry',
    );
    t.same(
      records.slice(4).map((record) => unsigned(record, 40)),
      records.slice(4).map((record) => unsigned(record, 56)),
      'which is where it returns to',
    );
    for (const at of [24]) {
      const times = records.map((record) => unsigned(record, at));
      t.same(
        times,
        times.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
        'time goes on',
      );
      t.ok((times.at(-1) ?? 0n) > (times[0] ?? 0n));
    }
    t.equal(await client.control(controlBlock.outer), 0x5000n);
  }
});
