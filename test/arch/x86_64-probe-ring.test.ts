import { deepStrictEqual as same } from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import { type Condition, controlBlock, type FieldSource, type RecordField } from '../../src/arch/index.js';
import { probeCode } from '../../src/arch/x86_64/trampoline.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { random, values } from './random.js';
import { calls, hexed, host, inRegister, names, plainProbe, RING_BYTES, run } from './x86_64-probe-calls.js';
import type { Call } from './x86_64-probe-host.js';
import { COUNTER, install, type Probe, SLOT, SP } from './x86_64-probe-memory.js';

const size = fc.constantFrom(1, 2, 4, 8) as fc.Arbitrary<1 | 2 | 4 | 8>;

function holds({ register, size, signed, op, value }: Condition, registers: readonly bigint[]): boolean {
  const low = BigInt.asUintN(8 * size, inRegister(registers, register));
  const is = signed ? BigInt.asIntN(8 * size, low) : low;
  return { eq: is === value, ne: is !== value, lt: is < value, le: is <= value, gt: is > value, ge: is >= value }[op];
}

t.test('events are noted where all conditions hold, and there only', async (t) => {
  const edges = [
    0n,
    1n,
    0x7fn,
    0x80n,
    0xffn,
    0x7fff_ffffn,
    0x8000_0000n,
    1n << 63n,
    (1n << 63n) - 1n,
    (1n << 64n) - 1n,
  ];
  const random8 = values(random(3));
  const conditions = fc.record({
    register: fc.constantFrom(...names),
    size,
    signed: fc.boolean(),
    op: fc.constantFrom<Condition['op']>('eq', 'ne', 'lt', 'le', 'gt', 'ge'),
    value: fc.oneof(
      fc.constantFrom(...edges, ...edges.map((value) => -value), 1n << 64n, -1n - (1n << 63n)),
      fc.bigInt({ min: -(1n << 65n), max: 1n << 65n }),
    ),
  });
  let held = 0;
  let tried = 0;
  fc.assert(
    fc.property(fc.array(conditions, { minLength: 1, maxLength: 2 }), fc.boolean(), (when, count) => {
      const probe = { ...plainProbe, when, counted: count ? [{ kind: 'calls' } as const] : [] };
      const list = calls(probe, 1, random(9)).flatMap((call) =>
        [...edges, ...when.map(({ value }) => BigInt.asUintN(64, value)), random8()].map((value) => ({
          ...call,
          registers: call.registers.map((was, number) => (names[number] === 'rsp' ? was : value)),
        })),
      );
      const ran = run(probe, list);
      for (const [call, { registers }] of list.entries()) {
        const hold = when.every((condition) => holds(condition, registers));
        const events = Number(ran.control(call, controlBlock.head)) - RING_BYTES;
        same([events, ran.control(call, COUNTER)], count ? [0, hold ? 1n : 0n] : [hold ? 2 * SLOT : 0, 0n]);
        if (hold) held++;
        tried++;
      }
    }),
    { seed: 4, numRuns: 60, endOnFailure: true },
  );
  t.ok(held > tried / 10 && held < (tried * 9) / 10, `${held} of ${tried}`);
});

t.test('a full ring is waited for, then given up and left alone', async (t) => {
  const { control } = plainProbe;
  const word = (offset: number, value: bigint) => ({ address: addOffset(control, offset), value });
  const base = BigInt(RING_BYTES);
  const { head, limit, unattended, dropped, spins, allowed, patience } = controlBlock;
  const slot = BigInt(SLOT);
  const none = { claims: 0, written: 0, dropped: 1n, unattended: 1n };
  const both = { claims: 2, written: 2, dropped: 0n, unattended: 0n };
  const cases = [
    { name: 'full', writes: [word(limit, base)], want: none },
    {
      name: 'unattended',
      writes: [word(limit, base), word(unattended, 1n), word(spins, (1n << 64n) - 1n)],
      want: none,
    },
    {
      name: 'full for the exit',
      writes: [word(limit, base + slot)],
      want: { ...none, claims: 1, written: 1 },
    },
    { name: 'room', writes: [word(limit, base + 2n * slot), word(unattended, 1n)], want: { ...both, unattended: 1n } },
    { name: 'the end of a lap', writes: [word(head, 3n * base - 2n * slot), word(limit, 3n * base)], want: both },
    { name: 'laps behind the limit', writes: [word(limit, 4n * base + 1n)], want: both },
    { name: 'limit far off', writes: [word(limit, 1n << 63n)], want: both },
  ];
  const ways = [undefined, 'rdi'].flatMap((nesting) => [false, true].map((inProcess) => ({ nesting, inProcess })));
  // In ticks. The beat stands still.
  const measured = [word(allowed, 1n << 62n), word(patience, 100_000n)];
  for (const way of ways) {
    const probe = { ...plainProbe, ...way };
    const given = cases.map(({ writes }) => (way.inProcess ? [...measured, ...writes] : writes));
    const list = given.flatMap((writes) => calls(probe, 1, random(8), { writes }));
    const ran = run(probe, list);
    for (const [call, { name, writes, want }] of cases.entries()) {
      const from = writes.find(({ address }) => address === addOffset(control, head))?.value ?? base;
      const claims = Number(ran.control(call, head) - from) / SLOT;
      const made = Array.from({ length: claims }, (_, index) => Number(from) + SLOT * index);
      const written = made.filter((claim) => ran.slot(call, claim).getBigUint64(0, true) === BigInt(claim)).length;
      const counts = { dropped: ran.control(call, dropped), unattended: ran.control(call, unattended) };
      t.same({ claims, written, ...counts }, want, name);
      t.equal(ran.control(call, controlBlock.outer), 0n, 'no poll stays open');
    }
  }
});

t.test('claims go round the ring as the client lets them', async (t) => {
  for (const countShift of [0, 1, 3]) {
    const probe = { ...plainProbe, countShift };
    const turns = 200;
    const segment = BigInt(RING_BYTES >> countShift);
    const list = calls(probe, turns, random(21)).map((call, turn) => {
      // As a client does that reads a segment as soon as it is full.
      const claimed = BigInt(RING_BYTES + 2 * SLOT * turn);
      const limit = BigInt(RING_BYTES) + (claimed / segment) * segment;
      return {
        ...call,
        reset: turn === 0,
        writes: [{ address: addOffset(probe.control, controlBlock.limit), value: limit }],
      };
    });
    const ran = run(probe, list);
    const wrong = list.flatMap(({ registers }, turn) => {
      const claims = [0, 1].map((index) => RING_BYTES + SLOT * (2 * turn + index));
      const slots = claims.map((claim) => ran.slot(turn, claim));
      const is = slots.map((slot) => [Number(slot.getBigUint64(0, true)), slot.getBigUint64(8, true)]);
      const want = claims.map((claim) => [claim, inRegister(registers, 'rdi')]);
      return JSON.stringify(is, hexed) === JSON.stringify(want, hexed) ? [] : [{ turn, is, want }];
    });
    t.same(wrong.slice(0, 2), []);
  }
});

t.test('what cannot be noted is a RangeError', async (t) => {
  const field = (from: FieldSource, at = 8, size: RecordField['size'] = 8): RecordField[] => [{ at, size, from }];
  const load = (align: number, offset = 0): FieldSource => ({
    kind: 'load',
    base: { kind: 'register', name: 'rdi' },
    offset,
    align,
  });
  const wrong: [what: string, probe: Partial<Probe>][] = [
    ['a register of another kind', { entry: field({ kind: 'register', name: 'xmm0' }) }],
    ['kept words at an entry', { entry: field({ kind: 'kept', index: 0 }) }],
    ['a word that was not kept', { exit: field({ kind: 'kept', index: 1 }) }],
    ['another way to tell harts apart', { entry: field({ kind: 'hart', how: 'mhartid' }) }],
    ['a word behind the control block', { entry: field({ kind: 'control', offset: controlBlock.size }) }],
    ['an alignment that is none', { entry: field(load(3)) }],
    ['a load too far off', { entry: field(load(1, 2 ** 31)) }],
    ['a constant too large', { entry: field({ kind: 'constant', value: 256n }, 8, 1) }],
    ['the commit word', { entry: field({ kind: 'stack-pointer' }, 0) }],
    ['a field that is not aligned', { entry: field({ kind: 'stack-pointer' }, 12) }],
    ['a field behind the slot', { entry: field({ kind: 'stack-pointer' }, SLOT) }],
    ['a copy behind the slot', { room: 249 }],
    ['too many kept words', { keep: ['rdi', 'rsi', 'rdx', 'rcx', 'r8'] }],
    ['a condition on no register', { when: [{ register: 'eax', size: 4, signed: false, op: 'eq', value: 0n }] }],
    ['a poll without a return', { exit: undefined, nesting: 'rdi' }],
    ['a control block too far off', { control: addr(0x2_0000_0000n) }],
    ['a function too far off', { code: addr(0x2_0000_0000n), control: addr(0x2_1000_0000n) }],
    ['more segments than fit', { countShift: 7 }],
  ];
  for (const [what, probe] of wrong) t.throws(() => install(host, { ...plainProbe, ...probe }), RangeError, what);
  t.doesNotThrow(() => install(host, plainProbe));
});

t.test('an unwinder finds the return address of a hooked function', async (t) => {
  // What `own_address` does there: the return address that its callee sees is the original one, not one of the trampoline.
  for (const keep of [[], ['rdi'], ['rdi', 'rsi'], ['rdi', 'rsi', 'rdx'], ['rdi', 'rsi', 'rdx', 'rcx']]) {
    const probe = { ...plainProbe, target: 'seen_return', keep, exit: [] };
    const { exit } = install(host, probe);
    const [call] = calls(probe, 1, random(2)) as [Call];
    const { regions } = install(host, probe);
    const watch = [
      {
        address: addOffset(SP, -probeCode.hookedReturnOffset(keep.length, false)),
        size: probeCode.hookedReturnOffset(keep.length, false) + 8,
      },
    ];
    const { outcomes, returnAddress } = host.call({ watch, calls: [call] }, regions);
    t.equal(outcomes[0]?.registers[0], exit, 'it returns to the exit trampoline');
    t.equal(
      Buffer.from(outcomes[0]?.watched[0] ?? []).readBigUInt64LE(probeCode.hookedReturnOffset(keep.length, false)),
      returnAddress,
    );
    t.equal(probeCode.hookedReturnOffset(keep.length, false) % 16, 8, 'the stack is aligned as it was');
  }
});

t.test('a process waits for room no longer than it is allowed to', async (t) => {
  const { limit, allowed, patience, waited, dropped, unattended } = controlBlock;
  const probe = { ...plainProbe, inProcess: true };
  const word = (offset: number, value: bigint) => ({ address: addOffset(probe.control, offset), value });
  const full = [word(limit, BigInt(RING_BYTES)), word(patience, 1n << 62n)];
  const cases = [
    { name: 'not at all', writes: [...full, word(allowed, 5n), word(waited, 5n)], least: 0n },
    { name: 'for some ticks', writes: [...full, word(allowed, 200_005n), word(waited, 5n)], least: 200_000n },
    { name: 'it waited too long already', writes: [...full, word(allowed, 5n), word(waited, 6n)], least: 0n },
  ];
  const ran = run(
    probe,
    cases.flatMap(({ writes }) => calls(probe, 1, random(8), { writes })),
  );
  for (const [call, { name, writes, least }] of cases.entries()) {
    const before = writes.find(({ address }) => address === addOffset(probe.control, waited))?.value ?? 0n;
    const took = ran.control(call, waited) - before;
    t.equal(ran.control(call, dropped), 1n, name);
    t.equal(ran.control(call, unattended), 0n, 'it may wait again later');
    t.ok(least === 0n ? took === 0n : took >= least, `${name}: ${took}`);
  }
});
