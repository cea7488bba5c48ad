import t from 'tap';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import type { Condition, FieldSource, RecordField } from '../../src/arch/inject/record-parts.js';
import { controlBlock } from '../../src/arch/inject/ring-contract.js';
import { addOffset } from '../../src/base/addr.js';
import { cases, usually } from '../support/long.js';
import { limits } from './buckets.js';
import type { Registers } from './machine.js';
import { Caller, Calls, type ProbeTarget, type TestFunction } from './probe-calls.js';
import { random, values } from './random.js';
import { holds, pointsOf, readBehind, references } from './references.js';
import { plainEntry, unsigned, type Way } from './ring.js';

/** What the tests of trampolines need to know besides. */
export interface TrampolineTarget extends ProbeTarget {
  /** Registers to count by: arguments, what is kept, what the code works with. */
  readonly counted: readonly string[];
  /** Those of them that every run tries. */
  readonly usual: readonly string[];
  /** Of the registers to count by those that must stay as they are. */
  readonly fixed: readonly string[];
  /** A register that is no argument and leads into the data. */
  readonly leading: string;
  /** One that is 0, and one that points to where nothing may be read. */
  readonly nothing: readonly [string, string];
  /** Registers that trampolines work with. */
  readonly scratch: readonly [string, string, string, string];
  /** Fields that only this architecture has. */
  readonly sources: readonly FieldSource[];
  /** What of a hart's number is known, by the registers. */
  readonly hartOf: (from: FieldSource & { kind: 'hart' }, registers: Registers) => bigint | { readonly at: bigint };
  /** Other names of registers. */
  readonly aliases?: Readonly<Record<string, string>>;
}

interface Known {
  readonly registers: Registers;
  readonly kept: Registers;
  readonly sp: bigint;
  readonly data: Uint8Array;
}

const sizes = [1, 2, 4, 8] as const;

/** What a trampoline must leave as it was, and what its records must hold. */
export function trampolineTests(target: TrampolineTarget): void {
  const { code: probeCode, place, ways, smallRing, functions, helper, names, order, aliases = {} } = target;
  const { leading, nothing, scratch, fixed } = target;
  const next = random(5);
  const calls = new Calls(target, next);
  const { argument, pointer, link, lost } = names;

  const displace = ({ code }: TestFunction, { kind }: Way): Displaced | undefined => {
    const displaced = probeCode.displace(code, place.code, kind);
    return 'refused' in displaced ? undefined : displaced;
  };

  const SLOT = 2 ** smallRing.slotShift;
  const value = values(next);
  const pick = <T>(list: readonly T[]): T => list[next() % list.length] as T;

  const functionNamed = (name: string): TestFunction =>
    functions.find((one) => one.name.startsWith(name)) as TestFunction;
  const inOrder = (register: string): string => aliases[register] ?? register;

  /** A record full of random fields. */
  const randomFields = (sources: readonly FieldSource[]): RecordField[] => {
    const fields: RecordField[] = [];
    for (let at = 8; at < SLOT; ) {
      const size = pick(sizes);
      at = Math.ceil(at / size) * size;
      if (at + size > SLOT) break;
      fields.push({ at, size, from: pick(sources) });
      at += size;
    }
    return fields;
  };

  const KEEP = [pointer, leading, 'sp', scratch[3]] as const;

  const shared: readonly FieldSource[] = [
    ...[...order, ...Object.keys(aliases)]
      .filter((name) => ![lost, link, 'sp', 'pc'].includes(name))
      .map((name) => ({ kind: 'register', name }) as const),
    { kind: 'stack-pointer' },
    { kind: 'return-address' },
    ...target.sources,
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
    fromRegister(pointer, 0, 8),
    fromRegister(pointer, 24, 8),
    fromRegister(pointer, -4, 8),
    fromRegister(leading, 16, 1),
    fromRegister(nothing[0], 0, 1),
    fromRegister(nothing[1], 0, 8),
    fromRegister(nothing[1], 4, 4),
    fromRegister(pointer, 4096, 8),
  ];
  const exitSources: readonly FieldSource[] = [
    ...KEEP.map((_, index) => ({ kind: 'kept', index }) as const),
    { kind: 'load', base: { kind: 'kept', index: 0 }, offset: 8, align: 8 },
    { kind: 'load', base: { kind: 'kept', index: 1 }, offset: 0, align: 4 },
  ];

  /** What the contract says that a field holds; undefined where that is not known here. */
  const expected = (from: FieldSource, size: number, known: Known): bigint | undefined => {
    const { registers, kept } = known;
    const named = (name: string): bigint => registers[inOrder(name)] ?? 0n;
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
      case 'hart': {
        const hart = target.hartOf(from, registers);
        return typeof hart === 'bigint' ? hart : inData(known, hart.at, 0, 4);
      }
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
  };

  const inData = ({ data }: Known, base: bigint, offset: number, size: number): bigint => {
    const at = Number(base - place.data) + offset;
    const bytes = Uint8Array.from({ length: size }, (_, index) => data[at + index] ?? 0);
    return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
  };

  const differences = (record: DataView, fields: readonly RecordField[], known: Known): string[] =>
    fields.flatMap(({ at, size, from }) => {
      const wanted = expected(from, size, known);
      const got = unsigned(record, at, size);
      if (wanted === undefined || got === BigInt.asUintN(8 * size, wanted)) return [];
      const what = JSON.stringify(from, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part));
      return [
        `${what} of ${size} at ${at}: 0x${got.toString(16)}, not 0x${BigInt.asUintN(8 * size, wanted).toString(16)}`,
      ];
    });

  t.test('a traced function leaves what it leaves untraced, and the records hold what was there', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    await machine.write(place.helper, helper);
    const entrySources = [...shared, ...entryLoads, { kind: 'register', name: link } as const];
    for (const [index, tested] of functions.entries()) {
      // Each function in the first way and in one of the others.
      const other = ways[1 + (index % (ways.length - 1))];
      for (const way of usually(ways, (one) => one === ways[0] || one === other)) {
        const displaced = displace(tested, way);
        if (displaced === undefined) continue;
        // One that loses its return address at once returns in another way.
        const isHookable = !/^calls .*at once$/.test(tested.name);
        // A hook with nesting has all that one without has, and code is come to in the first way with neither.
        const hooks = usually([false, true], (one) => one || way === ways[0]);
        for (const hooked of isHookable ? hooks : [false]) {
          for (const nested of hooked ? usually([false, true], (one) => one) : [false]) {
            const what = `${tested.name}, ${way.name}${hooked ? ', hooked' : ''}${nested ? ', nesting' : ''}`;
            const from = calls.start();
            await client.reset();
            await client.set(controlBlock.outerPlan, 77n);
            const kept = way.kind === 'near' ? [{ kind: 'register', name: lost } as const] : [];
            const fields = randomFields([...entrySources, ...kept]);
            const exitFields = randomFields([...shared, ...exitSources]);
            const keep = hooked ? KEEP : [];
            const { patched, trampoline } = await client.plantEntry(tested.code, displaced, way, {
              ...plainEntry,
              fields,
              hook: hooked ? { exit: place.exit, keep } : undefined,
              nesting: nested ? { self: pointer, plan: place.plan } : undefined,
            });
            const exit = await client.plantExit({ fields: hooked ? exitFields : [], keep, nesting: nested });
            t.ok(trampoline.length < 700 && exit.length < 700, `${trampoline.length} and ${exit.length} bytes`);
            const path = tested.name === `calls by ${lost}` ? { ...way, kind: 'near' as const } : way;
            const untraced = await caller.both(t, [tested.code, patched, path], from, what);

            const depth = tested.name === 'calls itself' ? Number((from.registers[argument] ?? 0n) & 3n) + 1 : 1;
            t.equal(await client.claimed(), hooked ? 2 * depth : depth, 'events');
            const sp = from.registers.sp as bigint;
            const record = await client.record(0);
            t.equal(unsigned(record, 0, 8), client.claimOf(0), 'committed');
            t.same(differences(record, fields, { registers: from.registers, kept: {}, sp, data: from.data }), []);
            if (hooked) {
              const last = await client.record(2 * depth - 1);
              t.equal(unsigned(last, 0, 8), client.claimOf(2 * depth - 1), 'exit committed');
              // Registers that the trampoline works with are what the function left in them.
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

  t.test('conditions compare as integers of their type do, with any constant', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
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
            const register = pick([...target.counted, 'sp']);
            const from = calls.start();
            const bits = from.registers[inOrder(register)] ?? 0n;
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
            await caller.both(t, [leaf.code, patched, way], from);
            const yes = (await machine.word(place.counter)) === 42n;
            if ((await machine.word(addOffset(place.counter, 8))) !== 7n) wrong.push('the counter without a condition');
            if (yes !== holds({ register, size, signed, op, value: constant }, left))
              wrong.push(`${register} ${left} ${op} ${constant}: ${yes}`);
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
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    const leaf = functionNamed('is a leaf');
    await client.reset();
    const wrong: string[] = [];
    const seen = new Set<number>();
    for (const size of sizes) {
      for (const signed of [true, false]) {
        for (const register of usually(target.counted, (one) => target.usual.includes(one))) {
          const way = pick(ways);
          const start = calls.start();
          // As many bits as not: otherwise nearly all are of the highest bucket.
          const bits = BigInt.asUintN(64, value()) >> BigInt(pick([0, 1, 8, 20, 33, 50, 62]));
          const name = inOrder(register);
          const given = fixed.includes(register) ? (start.registers[name] ?? 0n) : bits;
          const from = { ...start, registers: { ...start.registers, [name]: given } };
          const displaced = displace(leaf, way) as Displaced;
          const { patched } = await client.plantEntry(leaf.code, displaced, way, {
            ...plainEntry,
            counters: [{ kind: 'buckets', at: place.counter, when: [], of: { register, size, signed } }],
          });
          await machine.write(place.counter, new Uint8Array(8 * limits.length));
          await caller.both(t, [leaf.code, patched, way], from);
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
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    const leaf = functionNamed('is a leaf');
    const words = place.data + 0x8000n;
    await client.reset();
    const wrong: string[] = [];
    const before = [0n, 1n, (1n << 64n) - 1n, -1n, -(1n << 64n), (1n << 63n) - 1n, 1n << 100n];
    for (const size of sizes) {
      for (const signed of [true, false]) {
        for (const register of usually(target.counted, (one) => target.usual.includes(one))) {
          const way = pick(ways);
          const start = calls.start();
          const name = inOrder(register);
          const behind = !fixed.includes(register) && pick([true, false]) ? pick(references(size)) : undefined;
          const { words: content, first } = pointsOf(words, pick, value);
          const number = pick([0n, 1n, (1n << 64n) - 1n, 1n << 63n, BigInt.asUintN(64, value())]);
          const given = fixed.includes(register) ? (start.registers[name] ?? 0n) : behind ? first : number;
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
          await caller.both(t, [leaf.code, patched, way], from);
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
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
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
          when: [equal(argument, first), equal(scratch[3], second)],
          hook: { exit: place.exit, keep: [argument] },
          nesting: { self: pointer, plan: place.plan },
        });
        await client.plantExit({ fields: [], keep: [argument], nesting: true });
        await caller.both(t, [tested.code, patched, way], from);
        t.equal(await client.claimed(), first === 0n && second === 0n ? 2 : 0);
      }
    }
  });

  t.test('what the plan lists is copied out of the Future whose poll is open', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    const tested = functionNamed('is a leaf');
    const offsets = [0, 9, 3, 200];
    const others = scratch.slice(0, 3);
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
            ...[lost, ...others].flatMap((name, index) =>
              name === lost && way.kind === 'far'
                ? []
                : [{ at: 64 + 8 * index, size: 8, from: { kind: 'register', name } } as const],
            ),
          ],
          outerCopy: { at: 17, room },
        });
        await caller.both(t, [tested.code, patched, way], from);
        const record = await client.record(0);
        t.equal(unsigned(record, 8), outer);
        const wanted = offsets.map((offset) => (copied ? (from.data[offset] ?? -1) : 0));
        t.same([...new Uint8Array(record.buffer, record.byteOffset + 17, 6)], [...wanted, 0, 0]);
        for (const [index, name] of others.entries())
          t.equal(unsigned(record, 72 + 8 * index), from.registers[name], name);
      }
    }
  });

  t.test('a nested call sees the one around it as the open poll', async (t) => {
    await using machine = await target.start();
    const caller = new Caller(target, machine);
    const client = caller.ring();
    const tested = functionNamed('calls itself');
    for (const way of ways) {
      const from = calls.start();
      const start = { ...from, registers: { ...from.registers, [argument]: 3n } };
      await client.reset();
      await client.set(controlBlock.outer, 0x5000n);
      const fields: RecordField[] = [
        { at: 8, size: 8, from: { kind: 'register', name: argument } },
        { at: 16, size: 8, from: { kind: 'control', offset: controlBlock.outer } },
        { at: 24, size: 8, from: { kind: 'time' } },
        { at: 40, size: 8, from: { kind: 'stack-pointer' } },
      ];
      const displaced = displace(tested, way) as Displaced;
      const { patched } = await client.plantEntry(tested.code, displaced, way, {
        ...plainEntry,
        fields,
        hook: { exit: place.exit, keep: [argument, 'sp'] },
        nesting: { self: argument, plan: place.plan },
      });
      await client.plantExit({
        fields: [
          ...fields,
          { at: 48, size: 8, from: { kind: 'kept', index: 0 } },
          { at: 56, size: 8, from: { kind: 'kept', index: 1 } },
        ],
        keep: [argument, 'sp'],
        nesting: true,
      });
      await caller.call(patched, start);
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
      const times = records.map((record) => unsigned(record, 24));
      t.same(
        times,
        times.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
        'time goes on',
      );
      t.ok((times.at(-1) ?? 0n) > (times[0] ?? 0n));
      t.equal(await client.control(controlBlock.outer), 0x5000n);
    }
  });
}
