// What lies behind references: conditions on it, loads of it, and what counts by it, on the processor, with references that are null or not aligned.
import { deepStrictEqual as same } from 'node:assert';
import t from 'tap';
import { type Condition, controlBlock, type IntegerIn, type RecordField } from '../../src/arch/index.js';
import { addr } from '../../src/base/addr.js';
import { limits } from './buckets.js';
import { random, values } from './random.js';
import { holds, pointsOf, readBehind, references } from './references.js';
import { calls, inRegister, names, plainProbe, RING_BYTES, run, words } from './x86_64-probe-calls.js';
import type { Call } from './x86_64-probe-host.js';
import { COUNTER, SLOT } from './x86_64-probe-memory.js';

const next = random(77);
const value = values(next);
const pick = <T>(list: readonly T[]): T => list[next() % list.length] as T;

/** The words of a sum, and of a histogram, after a call with that number, or without a call. */
function added(value: bigint | undefined): bigint[] {
  const buckets = limits.map(({ from, below }) => (value !== undefined && value >= from && value < below ? 1n : 0n));
  const sum = value === undefined ? [0n, 0n, 0n] : [1n, value, value >> 64n];
  return [...sum, ...buckets].map((word) => BigInt.asUintN(64, word));
}

t.test('conditions and loads behind references', async (t) => {
  let [held, tried, loaded] = [0, 0, 0];
  for (let round = 0; round < 60; round++) {
    const register = pick(names.filter((name) => name !== 'rsp'));
    const size = pick([1, 2, 4, 8] as const);
    const behind = pick(references(size));
    const number: IntegerIn = { register, size, signed: pick([true, false]), behind };
    const base = { kind: 'register', name: register, through: behind.through } as const;
    const field: RecordField = { at: 8, size, from: { kind: 'load', base, offset: behind.offset, align: size } };
    const memories = Array.from({ length: 6 }, () => pointsOf(words, pick, value));
    const constant = pick([value(), 0n, 5n, readBehind(number, words, memories[0]?.words ?? []) ?? 1n]);
    const condition: Condition = { ...number, op: pick(['eq', 'ne', 'lt', 'le', 'gt', 'ge']), value: constant };
    const counted = [{ kind: 'calls' }, { kind: 'sum', of: number }, { kind: 'buckets', of: number }] as const;
    for (const count of [true, false]) {
      const probe = {
        ...plainProbe,
        when: [condition],
        counted: count ? counted : [],
        ...(count ? {} : { entry: [field] }),
      };
      const list: Call[] = memories.flatMap(({ words: content, first }) => {
        const writes = content.map((word, index) => ({ address: addr(words + BigInt(8 * index)), value: word }));
        return calls(probe, 1, next, { writes }).map((call) => ({
          ...call,
          registers: call.registers.map((was, at) => (names[at] === register ? first : was)),
        }));
      });
      const ran = run(probe, list);
      for (const [index, call] of list.entries()) {
        const content = memories[index]?.words ?? [];
        const found = readBehind(number, inRegister(call.registers, register), content, words);
        const hold = found !== undefined && holds(condition, found);
        const events = Number(ran.control(index, controlBlock.head)) - RING_BYTES;
        same([events, ran.control(index, COUNTER)], count ? [0, hold ? 1n : 0n] : [hold ? 2 * SLOT : 0, 0n]);
        if (count) {
          const words = Array.from({ length: 3 + limits.length }, (_, word) =>
            ran.control(index, COUNTER + 8 + 8 * word),
          );
          same(words, added(hold ? found : undefined));
        }
        tried++;
        if (!hold) continue;
        held++;
        if (count) continue;
        const slot = ran.slot(index, RING_BYTES);
        const bytes = [...new Uint8Array(slot.buffer, slot.byteOffset + 8, size)].reverse();
        same(
          bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
          BigInt.asUintN(8 * size, found),
        );
        loaded++;
      }
    }
  }
  t.ok(held > tried / 10 && held < (tried * 9) / 10 && loaded > 20, `${held} of ${tried}, ${loaded} loads`);
});
