import { deepStrictEqual as same } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import { controlBlock, type FieldSource, type RecordField } from '../../src/arch/index.js';
import { type Addr, addOffset, addr } from '../../src/base/addr.js';
import { usually } from '../support/long.js';
import { limits } from './buckets.js';
import { random } from './random.js';
import {
  calls,
  host,
  inRegister,
  memory,
  names,
  plainProbe,
  type Ran,
  RING_BYTES,
  RING_SHIFT,
  run,
  words,
} from './x86_64-probe-calls.js';
import type { CallResults } from './x86_64-probe-host.js';
import { COUNTER, INNER_PLAN, OUTER_PLAN, type Probe, SLOT } from './x86_64-probe-memory.js';

const size = fc.constantFrom(1, 2, 4, 8) as fc.Arbitrary<1 | 2 | 4 | 8>;
const register = fc.constantFrom(...names);

/** Registers that all of the functions leave alone: pointers that can be followed at an exit too. */
const saved = fc.constantFrom('rbx', 'rbp', 'r12', 'r13', 'r14', 'r15', 'rsp');

function source(at: 'entry' | 'exit', keep: readonly string[]): fc.Arbitrary<FieldSource> {
  const base = [
    (at === 'entry' ? register : saved).map((name) => ({ kind: 'register', name }) as const),
    ...(at === 'exit' && keep.length > 0
      ? [fc.nat(keep.length - 1).map((index) => ({ kind: 'kept', index }) as const)]
      : []),
  ];
  return fc.oneof(
    { weight: 4, arbitrary: register.map((name): FieldSource => ({ kind: 'register', name })) },
    {
      weight: 3,
      arbitrary: fc
        .record({ base: fc.oneof(...base), offset: fc.constantFrom(0, 1, 8, 56), align: fc.constantFrom(1, 2, 8, 256) })
        .map((load): FieldSource => ({ kind: 'load', ...load })),
    },
    {
      weight: 4,
      arbitrary: fc.constantFrom<FieldSource>(
        { kind: 'stack-pointer' },
        { kind: 'return-address' },
        { kind: 'time' },
        { kind: 'hart', how: 'fs' },
        { kind: 'hart', how: 'apic' },
        { kind: 'control', offset: controlBlock.outer },
        { kind: 'control', offset: controlBlock.outerPlan },
        { kind: 'control', offset: controlBlock.spins },
      ),
    },
    fc.bigInt({ min: -(1n << 63n), max: (1n << 64n) - 1n }).map((value): FieldSource => ({ kind: 'constant', value })),
    ...(at === 'exit' && keep.length > 0
      ? [fc.nat(keep.length - 1).map((index): FieldSource => ({ kind: 'kept', index }))]
      : []),
  );
}

/** Fields one after the other, each where its size lets it lie. */
function fields(from: fc.Arbitrary<FieldSource>): fc.Arbitrary<RecordField[]> {
  return fc.array(fc.tuple(size, from), { maxLength: 10 }).map((list) => {
    let at = 8;
    return list.map(([size, from]) => {
      at = Math.ceil(at / size) * size + size;
      const value = from.kind === 'constant' ? BigInt.asUintN(8 * size, from.value) : 0n;
      return { at: at - size, size, from: from.kind === 'constant' ? { ...from, value } : from };
    });
  });
}

function probes(target: string): fc.Arbitrary<Probe> {
  return fc
    .record({ keep: fc.array(register, { maxLength: 4 }), hooked: fc.boolean(), nested: fc.boolean() })
    .chain(({ keep, hooked, nested }) =>
      fc.record<Probe>({
        target: fc.constant(target),
        entry: fields(source('entry', [])),
        exit: hooked ? fields(source('exit', keep)) : fc.constant(undefined),
        keep: fc.constant(keep),
        when: fc.constant([]),
        nesting: hooked && nested ? register : fc.constant(undefined),
        room: fc.constantFrom(undefined, undefined, 0, 5, 64),
        plan: fc.option(fc.array(fc.nat(60), { maxLength: 7 }), { nil: undefined }),
        counted: fc.constant([]),
        countShift: fc.constantFrom(0, 1, 2, 5),
        ringShift: fc.constant(RING_SHIFT),
        ...addresses,
      }),
    );
}

const addresses = {
  code: fc.constantFrom(addr(0x1100_0000), addr(0x8f00_0000n)),
  control: fc.constantFrom(addr(0x1200_0000), addr(0x8e00_0000n)),
};

/** In its own calls of itself, other registers are numbers. */
function followable(target: string): (field: RecordField) => boolean {
  return ({ from }) =>
    target !== 'recursive' ||
    from.kind !== 'load' ||
    (from.base.kind === 'register' && /^r1[2-5]$/.test(from.base.name));
}

interface Moment {
  readonly registers: readonly bigint[];
  readonly kept: readonly bigint[];
  readonly returnAddress: bigint;
  readonly control: ReadonlyMap<number, bigint>;
  readonly results: CallResults;
}

/** What the field must hold; undefined for the time. */
function expected({ size, from }: RecordField, moment: Moment): bigint | undefined {
  switch (from.kind) {
    case 'register':
      return inRegister(moment.registers, from.name);
    case 'stack-pointer':
      return inRegister(moment.registers, 'rsp');
    case 'return-address':
      return moment.returnAddress;
    case 'kept':
      return moment.kept[from.index];
    case 'constant':
      return from.value;
    case 'time':
      return undefined;
    case 'hart':
      return from.how === 'fs' ? moment.results.fs : moment.results.apic;
    case 'control':
      return moment.control.get(from.offset);
    case 'load': {
      const { base, offset, align } = from;
      const pointer =
        base.kind === 'kept' ? (moment.kept[base.index] as bigint) : inRegister(moment.registers, base.name);
      if (pointer === 0n || pointer % BigInt(align) !== 0n) return -1n;
      return memory(pointer + BigInt(offset), size, moment.returnAddress);
    }
  }
}

function wrongFields(record: DataView, list: readonly RecordField[], moment: Moment): object[] {
  return list.flatMap((field) => {
    const actual = read(record, field);
    const value = expected(field, moment);
    if (value === undefined ? field.size < 8 || actual !== 0n : actual === BigInt.asUintN(8 * field.size, value))
      return [];
    return [{ field, actual: actual.toString(16), expected: value?.toString(16) }];
  });
}

function read(record: DataView, { at, size }: Pick<RecordField, 'at' | 'size'>): bigint {
  const value = [...new Uint8Array(record.buffer, record.byteOffset + at, size)].reverse();
  return value.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

// The one that says its return address differs with a hook.
for (const target of [...host.functions.keys()].filter((name) => name !== 'seen_return')) {
  t.test(`${target} with probes of all kinds`, async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(probes(target), fc.integer({ min: 1 }), (any, seed) => {
          const [entry = [], exit] = [any.entry, any.exit].map((list) => list?.filter(followable(target)));
          const probe = { ...any, entry, exit };
          const list = calls(probe, 8, random(seed));
          const ran = run(probe, list);
          for (const [call, { registers }] of list.entries()) checkRecords(probe, ran, call, registers);
        }),
        { seed: 11, numRuns: 24, endOnFailure: true },
      ),
    );
  });
}

/** The first event of a call is its entry, the last its exit; between them come those of its own calls of itself. */
function checkRecords(probe: Probe, ran: Ran, call: number, registers: readonly bigint[]): void {
  const { results, bare } = ran;
  const events = Number(ran.control(call, controlBlock.head)) - RING_BYTES;
  const turns = probe.target === 'recursive' ? Number(inRegister(registers, 'rdi') & 7n) + 1 : 1;
  same(events, SLOT * turns * (probe.exit === undefined ? 1 : 2), 'as many events as calls and returns');
  const claims = Array.from({ length: events / SLOT }, (_, index) => RING_BYTES + SLOT * index);
  same(
    claims.map((claim) => Number(ran.slot(call, claim).getBigUint64(0, true))),
    claims,
    'all are committed',
  );
  same(ran.control(call, controlBlock.dropped), 0n);

  const { outer, outerPlan, spins } = controlBlock;
  const { plan, nesting, room } = probe;
  const was = [
    plan === undefined ? 0n : words,
    plan === undefined ? 0n : addOffset(probe.control, OUTER_PLAN),
  ] as const;
  same([ran.control(call, outer), ran.control(call, outerPlan)], was, 'polls that were open are open again');
  const returnAddress = results.returnAddress;
  const kept = probe.keep.map((name) => inRegister(registers, name));
  const atEntry = new Map([
    [outer, was[0]],
    [outerPlan, was[1]],
    [spins, 3n],
  ]);
  const first = ran.slot(call, RING_BYTES);
  const entry = { registers, kept, returnAddress, control: atEntry, results };
  same(wrongFields(first, probe.entry, entry), [], 'the entry');
  if (room !== undefined) {
    const copied = [...new Uint8Array(first.buffer, first.byteOffset + SLOT - room, room)];
    const fits = plan !== undefined && plan.length <= room ? plan : [];
    const bytes = fits.map((offset) => Number(memory(words + BigInt(offset), 1, 0n)));
    same(copied, [...bytes, ...Array.from({ length: room - bytes.length }, () => 0)], "the outer poll's bytes");
  }
  if (probe.exit === undefined) return;
  const left = bare[call]?.registers ?? [];
  const open = nesting === undefined ? was : [inRegister(registers, nesting), addOffset(probe.control, INNER_PLAN)];
  const atExit = new Map([
    [outer, open[0] ?? 0n],
    [outerPlan, open[1] ?? 0n],
    [spins, 3n],
  ]);
  const last = ran.slot(call, claims.at(-1) ?? 0);
  const exit = { registers: left, kept, returnAddress, control: atExit, results };
  same(wrongFields(last, probe.exit, exit), [], 'the exit');
}

// rax and rcx are those that the code works with; rsi and r9 have low bytes that need a prefix.
const registers = ['rax', 'rcx', 'rdi', 'rsi', 'r9'];
const isUsual = (register: string): boolean => register === 'rcx' || register === 'rsi';
for (const register of usually(registers, isUsual)) {
  t.test(`calls are counted by the size of what is in ${register}`, async (t) => {
    for (const size of [1, 2, 4, 8] as const) {
      for (const signed of [true, false]) {
        const of = { register, size, signed };
        const limit = { register, size, signed, op: 'ne', value: 1n } as const;
        const counted = [{ kind: 'buckets', of }] as const;
        const probe = { ...plainProbe, entry: [], exit: undefined, keep: [], counted, when: [limit] };
        const list = calls(probe, 6, random(size));
        const ran = run(probe, list);
        for (const [call, { registers }] of list.entries()) {
          const value = (signed ? BigInt.asIntN : BigInt.asUintN)(8 * size, inRegister(registers, register));
          const words = Array.from({ length: 66 }, (_, i) => Number(ran.control(call, COUNTER + 8 * i)));
          const wanted = limits.map(({ from, below }) => (value !== 1n && value >= from && value < below ? 1 : 0));
          t.strictSame(words, wanted, `${value}`);
          t.equal(ran.control(call, controlBlock.head), BigInt(RING_BYTES), 'nothing is claimed');
        }
      }
    }
  });
}

// What was there before: sums of 128 bits that carry, borrow and go around.
for (const register of usually(registers, isUsual)) {
  t.test(`what is in ${register} is added up in 128 bits, between two other counters`, (t) => {
    const next = random(31);
    const pick = <T>(list: readonly T[]): T => list[next() % list.length] as T;
    for (const size of [1, 2, 4, 8] as const) {
      for (const signed of [true, false]) {
        const of = { register, size, signed };
        const counted = [{ kind: 'calls' }, { kind: 'sum', of }, { kind: 'calls' }] as const;
        const probe = { ...plainProbe, entry: [], exit: undefined, keep: [], counted };
        const at = (word: number): Addr => addOffset(probe.control, COUNTER + 8 * word);
        const before = [0n, 1n, (1n << 64n) - 1n, -1n, -(1n << 64n), (1n << 63n) - 1n, 1n << 100n];
        const list = before.flatMap((sum) => {
          const writes = [4n, 7n, sum, sum >> 64n, 9n].map((value, word) => ({
            address: at(word),
            value: BigInt.asUintN(64, value),
          }));
          const given = pick([0n, 1n, (1n << 64n) - 1n, 1n << 63n, BigInt(next())]);
          return calls(probe, 1, next, { writes }).map((call) => ({
            ...call,
            registers: call.registers.map((was, number) => (names[number] === register ? given : was)),
          }));
        });
        const ran = run(probe, list);
        for (const [call, { registers }] of list.entries()) {
          const value = (signed ? BigInt.asIntN : BigInt.asUintN)(8 * size, inRegister(registers, register));
          const sum = (before[call] ?? 0n) + value;
          const words = Array.from({ length: 5 }, (_, word) => ran.control(call, COUNTER + 8 * word));
          const wanted = [5n, 8n, sum, sum >> 64n, 10n].map((word) => BigInt.asUintN(64, word));
          t.strictSame(words, wanted, `${before[call]} + ${value}`);
          t.equal(ran.control(call, controlBlock.head), BigInt(RING_BYTES), 'nothing is claimed');
        }
      }
    }
    t.end();
  });
}
