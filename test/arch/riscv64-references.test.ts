// What lies behind references: conditions on it and loads of it, in QEMU, with references that are null or not aligned.
import t from 'tap';
import type { Displaced } from '../../src/arch/inject/displaced.js';
import type { Condition, IntegerIn, RecordField } from '../../src/arch/inject/record-parts.js';
import { probeCode } from '../../src/arch/riscv64/trampoline.js';
import { cases } from '../support/long.js';
import { Caller, Calls } from './probe-calls.js';
import { random, values } from './random.js';
import { holds, pointsOf, readBehind, references } from './references.js';
import { functions } from './riscv64-functions.js';
import { Machine } from './riscv64-machine.js';
import { place, plainEntry, Ring, unsigned, ways } from './riscv64-ring.js';
import { target } from './riscv64-target.js';

const next = random(78);
const calls = new Calls(target, next);
const value = values(next);
const pick = <T>(list: readonly T[]): T => list[next() % list.length] as T;
/** Beyond what the functions use. */
const words = place.data + 0x8000n;

t.test('conditions and loads behind references', async (t) => {
  await using machine = await Machine.start();
  const client = new Ring(machine);
  const leaf = functions.find(({ name }) => name === 'is a leaf of short instructions');
  if (!leaf) throw new Error('there is no such function');
  await client.reset();
  let [held, dropped] = [0, 0];
  const wrong: string[] = [];
  for (let round = 0; round < cases(240); round++) {
    const way = pick(ways);
    const displaced = probeCode.displace(leaf.code, place.code, way.kind) as Displaced;
    const register = pick(['a0', 'a7', 's0', 't2', 't3']);
    const size = pick([1, 2, 4, 8] as const);
    const behind = pick(references(size));
    const number: IntegerIn = { register, size, signed: pick([true, false]), behind };
    const base = { kind: 'register', name: register, through: behind.through } as const;
    const fields: RecordField[] = [{ at: 8, size, from: { kind: 'load', base, offset: behind.offset, align: size } }];
    const { words: content, first } = pointsOf(words, pick, value);
    const found = readBehind(number, first, content, words);
    const constant = pick([value(), 0n, found ?? 1n, (found ?? 1n) + 1n]);
    const condition: Condition = { ...number, op: pick(['eq', 'ne', 'lt', 'le', 'gt', 'ge']), value: constant };
    await client.openFor(2);
    const before = await client.claimed();
    const entry = { ...plainEntry, fields, when: [condition] };
    const { patched } = await client.plantEntry(leaf.code, displaced, way, entry);
    for (const [index, word] of content.entries()) await machine.writeWord(words + BigInt(8 * index), word);
    const start = calls.start();
    const from = { ...start, registers: { ...start.registers, [register === 's0' ? 'fp' : register]: first } };
    await new Caller(target, machine).both(t, [leaf.code, patched, way], from);
    const claimed = (await client.claimed()) - before;
    const hold = found !== undefined && holds(condition, found);
    if (claimed !== (hold ? 1 : 0))
      wrong.push(`${register} ${JSON.stringify(behind)}: ${found} ${condition.op} ${constant}`);
    if (!hold) dropped++;
    else {
      held++;
      const got = unsigned(await client.record(before), 8, size);
      if (got !== BigInt.asUintN(8 * size, found))
        wrong.push(`${register} ${JSON.stringify(behind)}: ${got}, not ${found}`);
    }
  }
  t.same(wrong, []);
  t.ok(held > cases(40) && dropped > cases(40), `${held} held, ${dropped} not`);
});
