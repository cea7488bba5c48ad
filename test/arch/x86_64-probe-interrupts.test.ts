import t from 'tap';
import { controlBlock } from '../../src/arch/index.js';
import { addOffset, addr } from '../../src/base/addr.js';
import { random } from './random.js';
import { calls, host, inRegister, memory, names, plainProbe, type Ran, run, words } from './x86_64-probe-calls.js';
import type { Call } from './x86_64-probe-host.js';
import { INNER_PLAN, install, type Probe, SEGMENTS, SLOT, slotOf } from './x86_64-probe-memory.js';

const ENTRY = 1n;
const EXIT = 2n;
/** Byte offsets that are copied out of the poll around a call, and out of the one that an interrupt opens. */
const outerPlan = [0, 8, 16, 24, 32];
const innerPlan = [1, 2, 3];
const value = host.symbol('value');
const next = random(77);

/** All that a probe can note, with the number of the call at 8 and what kind of event it is at 32. */
const interrupted = (target: string, ringShift: number): Probe => ({
  ...plainProbe,
  target,
  entry: [
    { at: 8, size: 8, from: { kind: 'register', name: 'rdi' } },
    { at: 16, size: 8, from: { kind: 'time' } },
    { at: 24, size: 8, from: { kind: 'load', base: { kind: 'register', name: 'rdx' }, offset: 0, align: 8 } },
    { at: 32, size: 8, from: { kind: 'constant', value: ENTRY } },
    { at: 40, size: 8, from: { kind: 'hart', how: 'apic' } },
  ],
  exit: [
    ...(plainProbe.exit ?? []),
    { at: 16, size: 8, from: { kind: 'time' } },
    { at: 32, size: 8, from: { kind: 'constant', value: EXIT } },
  ],
  nesting: 'rdx',
  room: 8,
  plan: outerPlan,
  countShift: 4,
  ringShift,
});

/** A call that is single-stepped, with room for so many records. */
function stepped(probe: Probe, room: number): Call {
  const [call] = calls(probe, 1, next, { flags: 0x302n }) as [Call];
  const registers = call.registers.map((each, number) => (names[number] === 'rdx' ? value : each));
  const writes = [
    { address: addOffset(probe.control, INNER_PLAN), value: 3n | (1n << 32n) },
    { address: addOffset(probe.control, INNER_PLAN + 8), value: 2n | (3n << 32n) },
    {
      address: addOffset(probe.control, controlBlock.limit),
      value: (1n << BigInt(probe.ringShift)) + BigInt(room * SLOT),
    },
  ];
  return { ...call, registers, writes };
}

/** Makes the calls; every interrupt calls the probed function. */
function interrupt(probe: Probe, list: readonly Call[]): Ran {
  const { from, to } = install(host, probe);
  const handler = host.functions.get(probe.target)?.start ?? addr(0);
  return run(probe, list, { from, to, handler, data: value, each: 3 });
}

/** The records of a call, by kind the numbers of the calls that they describe, and what is wrong. */
function look(ran: Ran, call: number, { ringShift }: Probe) {
  const claimed = Number(ran.control(call, controlBlock.head) - (1n << BigInt(ringShift))) / SLOT;
  const claims = Array.from({ length: claimed }, (_, index) => (1 << ringShift) + SLOT * index);
  const slots = claims.map((claim) => ran.slot(call, claim));
  const unwritten = slots.filter((slot, index) => slot.getBigUint64(0, true) !== BigInt(claims[index] ?? -1));
  const entries = slots.filter((slot) => slot.getBigUint64(32, true) === ENTRY);
  const numbers = (of: readonly DataView[]): bigint[] => of.map((slot) => slot.getBigUint64(8, true)).sort();
  const [entered, left] = [numbers(entries), numbers(slots.filter((slot) => !entries.includes(slot)))];
  return {
    claimed,
    unwritten: unwritten.length,
    entries,
    entered,
    left,
    twice: claimed - new Set(entered).size - new Set(left).size,
    dropped: Number(ran.control(call, controlBlock.dropped)),
    interrupts: ran.results.outcomes[call]?.interrupts ?? 0,
  };
}

t.test('interrupts after every instruction run trampolines of their own, and harm nobody', async (t) => {
  for (const target of ['plain', 'frames', 'push_call', 'short_branch', 'endbr']) {
    const probe = interrupted(target, 18);
    const capacity = (1 << probe.ringShift) / SLOT;
    for (const room of [capacity, 40]) {
      const call = stepped(probe, room);
      const ran = interrupt(probe, [call]);
      const { claimed, unwritten, entries, entered, left, twice, dropped, interrupts } = look(ran, 0, probe);
      t.ok(interrupts > (room === capacity ? 140 : 40), `${target}: ${interrupts} interrupts`);
      t.same({ unwritten, twice }, { unwritten: 0, twice: 0 });
      t.equal(
        claimed + dropped,
        1 + interrupts + entered.length,
        'what is not dropped is noted; an exit where the entry was',
      );
      const processors = new Set(entries.map((slot) => slot.getBigUint64(40, true)));
      t.same([...processors], [ran.results.apic], 'nothing was kept where interrupts write');
      const own = inRegister(call.registers, 'rdi');
      const all = [...Array.from({ length: interrupts }, (_, index) => BigInt(index)), own].sort();
      if (room === capacity) t.same([entered, left], [all, all], 'every call is there once, and returns once');
      else t.equal(claimed, room, `${dropped} are dropped when the ring is full`);
      const copies = { none: bytesAt(words, []), outer: bytesAt(words, outerPlan), inner: bytesAt(value, innerPlan) };
      const seen = new Set(entries.map((slot) => slot.getBigUint64(SLOT - 8, true)));
      const known = [...seen].every((copy) => Object.values(copies).includes(copy));
      t.ok(known, 'what was copied was copied by its own plan');
      const each = seen.has(copies.outer) && seen.has(copies.inner) && seen.has(copies.none);
      t.ok(room !== capacity || each, 'of either poll, or of none');
    }
  }
});

/** What a plan copies, as a little-endian number. */
function bytesAt(base: bigint, plan: readonly number[]): bigint {
  return plan.reduceRight((sum, offset) => (sum << 8n) | memory(base + BigInt(offset), 1, 0n), 0n);
}

t.test('one interrupt, wherever it comes, may take the last slot', async (t) => {
  const probe = interrupted('plain', 13);
  for (const room of [0, 1, 2, 3, 4]) {
    const call = stepped(probe, room);
    const list = Array.from({ length: 240 }, (_, index) => ({ ...call, goesOn: index > 0, interruptAt: index + 1 }));
    const ran = interrupt(probe, list);
    const looks = list.map((_, index) => look(ran, index, probe));
    const steps = looks.filter(({ interrupts }) => interrupts === 1).length;
    t.ok(steps > (room === 0 ? 30 : 80) && steps < list.length, `room for ${room}: ${steps} instructions`);
    const wrong = looks.flatMap(({ claimed, unwritten, twice, dropped, interrupts, entered, left }, index) => {
      const full = claimed === room || dropped === 0;
      const all = claimed + dropped === 1 + interrupts + entered.length && left.every((each) => entered.includes(each));
      const right = interrupts === (index < steps ? 1 : 0) && unwritten === 0 && twice === 0 && full && all;
      return right ? [] : [{ at: index + 1, claimed, unwritten, twice, dropped, interrupts, entered, left }];
    });
    t.same(wrong.slice(0, 2), []);
  }
});

t.test('a writer that never goes on leaves nothing but whole records', async (t) => {
  const probe = interrupted('plain', 13);
  const { from, to, regions, ring } = install(host, probe);
  const call = stepped(probe, 4);
  const watch = [{ address: SEGMENTS, size: 1 << probe.ringShift }];
  const list = Array.from({ length: 160 }, (_, index) => ({ ...call, interruptAt: index + 1 }));
  const { outcomes } = host.call(
    { watch, calls: list, interrupts: { from, to, handler: addr(0), data: value, each: 0 } },
    regions,
  );
  const records = outcomes.map(({ watched: [bytes] }) =>
    [0, 1].flatMap((index) => {
      const claim = BigInt((1 << probe.ringShift) + SLOT * index);
      const slot = slotOf(claim, ring, bytes as Uint8Array);
      if (slot.getBigUint64(0, true) !== claim) return [];
      const time = slot.getBigUint64(16, true);
      slot.setBigUint64(16, 0n);
      return [`${time > 0n} ${Buffer.from(slot.buffer, slot.byteOffset, SLOT).toString('hex')}`];
    }),
  );
  const whole = records.at(-1) ?? [];
  t.equal(whole.length, 2);
  const counts = [0, 1, 2].map((count) => records.filter(({ length }) => length === count).length);
  t.ok(
    counts.every((count) => count > 20),
    `${counts} calls with so many records`,
  );
  t.same(records.filter((some) => some.some((record, index) => record !== whole[index])).length, 0);
});
