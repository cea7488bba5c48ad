// Futures held in every way, in a small program that itself says where each of them lies (held/held.rs), and in random types.
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { HeldFutures } from '../../../src/async/futures/held-futures.js';
import {
  FutureGraph,
  FutureNames,
  findFutures,
  futuresDot,
  futuresJson,
  futuresSizes,
  futuresTree,
  liveFutures,
} from '../../../src/async/futures/index.js';
import { AwaitTrees } from '../../../src/async/tasks/index.js';
import { type Addr, addOffset, addr, hex } from '../../../src/base/addr.js';
import { DebugInfo, DW_AT, DW_TAG, DW_FORM as F } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { scratchFolder } from '../../support/command.js';
import { debugOf } from '../../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../../support/dwarf-writer.js';
import { heldPlaces } from '../../support/held-places.js';

t.test('a program tells where its Futures lie', async (t) => {
  const path = join(scratchFolder(t), 'held.elf');
  writeFileSync(path, brotliDecompressSync(readFileSync(join(import.meta.dirname, 'held/held.elf.br'))));
  chmodSync(path, 0o755);
  const holders = new Map<string, Addr>();
  const leaves = new Map<string, string[]>();
  let arena = Buffer.alloc(0);
  let start = addr(0);
  for (const line of execFileSync(path, { encoding: 'utf8' }).split('\n')) {
    const [what, name = '', value = ''] = line.split(' ');
    if (what === 'holder') holders.set(name, addr(BigInt(value)));
    if (what === 'leaf') leaves.set(name, [...(leaves.get(name) ?? []), hex(BigInt(value))]);
    if (what === 'arena') {
      start = addr(BigInt(name));
      arena = Buffer.from(value, 'hex');
    }
  }
  const elf = await ElfFile.open(path);
  const memory = {
    read: async (address: Addr, length: number) => {
      const at = Number(address - start);
      return at >= 0 && at < arena.length ? arena.subarray(at, at + length) : elf.bytesAt(address, length);
    },
  };
  const set = findFutures(DebugInfo.load(elf));
  const future = (name: string) => {
    const found = set.all.find((f) => f.future === `held::${name}`);
    if (found === undefined) throw new Error(`no ${name}`);
    return found;
  };

  for (const [name, wanted] of leaves) {
    t.test(name, async (t) => {
      const places = await heldPlaces(future(name), holders.get(name) ?? addr(0), memory, set);
      t.strictSame(places.map(({ address }) => hex(address)).sort(), [...wanted].sort());
      t.ok(places.every((place) => place.future === future('Leaf') && !place.held.maybe));
      const { awaits } = await new AwaitTrees(set, memory).read(future(name), holders.get(name) ?? addr(0));
      t.strictSame(awaits.map(({ address }) => hex(address)).sort(), [...wanted].sort(), 'the tree has each of them');
    });
  }
  t.strictSame([...leaves.keys()], ['InPlace', 'Pointers', 'Lists']);

  t.test('what a suspended function keeps', async (t) => {
    const places = await heldPlaces(future('suspended'), holders.get('suspended') ?? addr(0), memory, set);
    const found = places.map(({ held, address }) => {
      const id = arena.readUInt32LE(Number(address - start));
      return `${id} ${held.role} ${held.path}${held.maybe ? '?' : ''}`;
    });
    t.strictSame(found.sort(), [
      '100 local argument?',
      '101 local kept[*]?',
      '102 local kept[*]?',
      '103 local alone?',
      '104 local borrowed?',
      '105 awaitee __awaitee',
    ]);
    // After it has been moved into the await, its place is still listed.
    const second = future('suspended').states.find((state) => state.name === 'Suspend1');
    t.ok(second?.holds.some(({ role, path }) => role === 'captured' && path === 'argument'));
    const [unresumed, returned] = future('suspended').states;
    t.strictSame(
      unresumed?.holds.map(({ path, role, maybe }) => [path, role, maybe]),
      [['argument', 'captured', false]],
    );
    t.strictSame(returned?.holds, []);
  });

  t.test('a null pointer leads nowhere', async (t) => {
    const lists = future('Lists');
    const at = Number((holders.get('Lists') ?? 0n) - start);
    const live = liveFutures(lists, arena.subarray(at, at + lists.size)).map(({ held }) => held.path);
    t.ok(live.some((path) => path.startsWith('unordered.')));
    t.notOk(live.some((path) => path.startsWith('drained.')));
  });

  t.test('a union holds it or not', async (t) => {
    const [one, ...rest] = future('Unsure').holds;
    t.match(one, { maybe: true, future: future('Leaf'), role: 'field', path: /^slot\.future/, offset: 0 });
    t.equal(rest.length, 0);
  });

  t.test('fields of a Future written by hand', async (t) => {
    // size_of and offset_of as rustc lays them out: each field ends where the program printed the next ones to begin.
    const fields = future('InPlace').fields;
    t.strictSame(
      fields.map(({ name }) => name).sort(),
      ['few', 'grid', 'niche', 'one', 'other', 'pad', 'pair', 'result'].sort(),
    );
    const one = fields.find(({ name }) => name === 'one');
    t.equal(hex(addOffset(holders.get('InPlace') ?? addr(0), one?.offset ?? 0)), leaves.get('InPlace')?.at(-1));
    t.match(one, { type: 'held::Leaf', size: 8 });
  });

  t.test('bytes that are cut off, or of something else, hold nothing by mistake', async (t) => {
    const inPlace = future('InPlace');
    const at = Number((holders.get('InPlace') ?? 0n) - start);
    const whole = arena.subarray(at, at + inPlace.size);
    const all = liveFutures(inPlace, whole);
    for (let length = 0; length <= whole.length; length += 7) {
      for (const { offset, held } of liveFutures(inPlace, whole.subarray(0, length))) {
        t.ok(offset !== undefined && offset + held.size <= length);
      }
    }
    // 0xff is no variant of any of its enums but those with a niche in the bool, which take it for true.
    const wild = liveFutures(inPlace, new Uint8Array(inPlace.size).fill(0xff)).map(({ held }) => held.path);
    t.strictSame([...new Set(wild)].sort(), ['niche.Pending.future', 'one', 'other.Pending.future']);
    t.equal(liveFutures(inPlace, Buffer.concat([Buffer.alloc(5), whole]), 5).length, all.length, 'at an offset');
  });
});

t.test('random types: it ends, within its bounds, and each place lies in its type', async (t) => {
  const size = 9;
  fc.assert(
    fc.property(
      fc.array(
        fc.array(
          fc.record({
            offset: fc.integer({ min: 0, max: 64 }),
            type: fc.integer({ min: 0, max: size - 1 }),
            kind: fc.constantFrom('plain', 'array', 'pointer', 'variant'),
          }),
          { maxLength: 4 },
        ),
        { minLength: size, maxLength: size },
      ),
      fc.integer({ min: 0, max: size - 1 }),
      (types, futureAt) => {
        const children: DieSpec[] = [];
        types.forEach((members, i) => {
          const inside: DieSpec[] = members.map(({ offset, type, kind }, m) => {
            const label = `${i}.${m}`;
            if (kind === 'array') {
              const subrange = { tag: DW_TAG.subrange_type, attributes: [[DW_AT.count, F.udata, 3]] as const };
              const attributes = [[DW_AT.type, F.ref4, { ref: `t${type}` }]] as const;
              children.push({ tag: DW_TAG.array_type, label, attributes, children: [subrange] });
            }
            if (kind === 'pointer') {
              const attributes = [
                [DW_AT.name, F.string, '&mut it'],
                [DW_AT.type, F.ref4, { ref: `t${type}` }],
              ] as const;
              children.push({ tag: DW_TAG.pointer_type, label, attributes });
            }
            const target = kind === 'array' || kind === 'pointer' ? label : `t${type}`;
            const member = {
              tag: DW_TAG.member,
              attributes: [
                [DW_AT.name, F.string, `m${m}`],
                [DW_AT.type, F.ref4, { ref: target }],
                [DW_AT.data_member_location, F.udata, offset],
              ] as const,
            };
            if (kind !== 'variant') return member;
            return { tag: DW_TAG.variant_part, children: [{ tag: DW_TAG.variant, children: [member] }] };
          });
          const attributes = [
            [DW_AT.name, F.string, `T${i}`],
            [DW_AT.byte_size, F.udata, 80],
          ] as const;
          children.push({ tag: DW_TAG.structure_type, label: `t${i}`, attributes, children: inside });
        });
        const writer = new DwarfWriter();
        writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
        const debug = debugOf(writer);
        const futureType = writer.labels.get(`t${futureAt}`);
        const held = new HeldFutures(debug, (type) =>
          // Any other object will do: it is only passed on.
          type.offset === futureType ? ({ instance: 'it' } as never) : undefined,
        );
        for (let i = 0; i < size; i++) {
          const die = debug.die(writer.labels.get(`t${i}`) ?? -1);
          const found = held.in(die);
          if (i === futureAt) t.equal(found.length, 1);
          if (found.length > 1024) return false;
          if (!found.every(({ offset, hops }) => offset >= 0 && hops.length <= 4)) return false;
        }
        return true;
      },
    ),
    { seed: 20_261, numRuns: 300 },
  );
});

t.test('damaged debug info: it ends, in what can be known or an error of ours', async (t) => {
  const whole = new Uint8Array(brotliDecompressSync(readFileSync(join(import.meta.dirname, 'held/held.elf.br'))));
  const sections = ElfFile.parse(whole, 'held.elf').sections.filter((s) => /^\.debug_(info|abbrev|str)$/.test(s.name));
  const junk = new Uint8Array(256).map((_, i) => (i * 37) ^ (i >> 3));
  let holds = 0;
  const harm = fc.record({ section: fc.nat(), at: fc.nat(), value: fc.integer({ min: 0, max: 255 }) });
  fc.assert(
    fc.property(fc.array(harm, { minLength: 1, maxLength: 3 }), (harms) => {
      const bytes = Uint8Array.from(whole);
      for (const { section, at, value } of harms) {
        const hit = sections[section % sections.length];
        if (hit !== undefined) bytes[hit.offset + (at % hit.size)] = value;
      }
      const set = findFutures(DebugInfo.load(ElfFile.parse(bytes, 'damaged.elf')));
      const names = new FutureNames(set.all);
      const graph = new FutureGraph(set, set.all);
      void [futuresTree(graph, names), futuresDot(graph, names), futuresSizes(set.all, names, { color: false })];
      void JSON.stringify(futuresJson({ program: '', buildId: undefined, futures: set.all, set }));
      for (const future of set.all) {
        holds += future.holds.length + future.states.reduce((sum, state) => sum + state.holds.length, 0);
        for (const { offset, held } of liveFutures(future, junk)) {
          if (offset !== undefined && offset + held.size > junk.length) return false;
        }
      }
      return true;
    }),
    { seed: 4, numRuns: 200 },
  );
  t.ok(holds > 1000, `${holds} held Futures were read all the same`);
});
