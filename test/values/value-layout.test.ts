// Layouts: every struct of every guest against llvm-dwarfdump; C's bit-fields, unions and arrays in three versions of DWARF
// against gdb; what no compiler here emits against what the writer was told. And random bytes as values.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import type { MemoryReader } from '../../src/base/memory-reader.js';
import {
  DebugInfo,
  type Die,
  DieCursor,
  DW_AT,
  DW_TAG,
  DW_FORM as F,
  layoutOf,
  sizeOf,
  typeName,
} from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import {
  describeType,
  evaluateMemberExpr,
  formatValue,
  ObjectPlace,
  ProgramNames,
  parseMemberExpr,
  plainValue,
  readValue,
  Shapes,
  textValue,
  type Value,
  valueJson,
} from '../../src/values/index.js';
import { elfPath, guests } from '../qemu/guests/guests.js';
import { debugOf } from '../support/dwarf-debug.js';
import { type DieSpec, DwarfWriter } from '../support/dwarf-writer.js';
import { dumpInfo } from '../support/dwarfdump.js';
import { usually } from '../support/long.js';

const COMPOSITE = new Set<number>([DW_TAG.structure_type, DW_TAG.union_type]);

/** Both versions of DWARF and both manglings; the types of the other guests are the same. */
const chosen = new Set(['rv-o2-dwarf5', 'x86-o2-legacy']);
const all = guests().filter((g) => g.source === undefined && !g.name.endsWith('-long'));

for (const { name } of usually(all, (g) => chosen.has(g.name))) {
  t.test(`${name}: every struct's size and every member's offset`, async (t) => {
    const path = elfPath(name);
    // What llvm-dwarfdump says: a line for each type and each member directly or through variants below it.
    const wanted = new Map<number, string[]>();
    const around: { depth: number; lines: string[] | undefined }[] = [];
    for (const die of dumpInfo(path)) {
      while (around.length > 0 && (around.at(-1)?.depth ?? 0) >= die.depth) around.pop();
      const lines = around.at(-1)?.lines;
      const text = (attribute: string): string => die.attributes.get(attribute) ?? '-';
      if (die.tag === 'structure_type' || die.tag === 'union_type') {
        const own = [`size ${Number(text('byte_size'))} align ${Number(text('alignment'))}`];
        wanted.set(die.offset, own);
        around.push({ depth: die.depth, lines: own });
      } else if (die.tag === 'variant_part' || die.tag === 'variant') {
        if (die.tag === 'variant') lines?.push(`variant ${text('discr_value')}`.replace(/<0x10> .*/, 'wide'));
        around.push({ depth: die.depth, lines });
      } else if (die.tag === 'member' && !(text('artificial') === 'true')) {
        lines?.push(`${text('name')} ${Number(text('data_member_location'))} ${text('type').split(' ')[0]}`);
      } else around.push({ depth: die.depth, lines: undefined });
    }
    const debug = DebugInfo.load(await ElfFile.open(path));
    const wrong: string[] = [];
    let members = 0;
    for (const unit of debug.units) {
      for (const cursor = DieCursor.of(unit); cursor.next(); ) {
        if (!COMPOSITE.has(cursor.tag)) continue;
        const layout = layoutOf(cursor.die());
        const line = (m: (typeof layout.members)[number]): string =>
          `"${m.name}" ${m.offset} 0x${m.type?.offset.toString(16).padStart(8, '0')}`;
        const variants = layout.variantPart?.variants ?? [];
        const said = [`size ${layout.size} align ${layout.align ?? Number.NaN}`, ...layout.members.map(line)];
        for (const { values, members: inside } of variants) {
          said.push(`variant ${values === undefined ? '-' : values[0]?.low}`, ...inside.map(line));
        }
        members += said.length - 1;
        const dumped = (wanted.get(cursor.offset) ?? []).map((l) =>
          l.replace(/^variant (0x[0-9a-f]+)$/, (_, v: string) => `variant ${BigInt(v)}`),
        );
        const same =
          said.length === dumped.length && said.every((l, i) => l === dumped[i] || dumped[i] === 'variant wide');
        if (!same) wrong.push(`0x${cursor.offset.toString(16)}\n${said.join('\n')}\nnot\n${dumped.join('\n')}`);
      }
    }
    t.strictSame(wrong.slice(0, 3), []);
    t.ok(wanted.size > 1500 && members > 2500, `${wanted.size} types, ${members} members and variants`);
  });
}

const C_SOURCE = `
struct flags { unsigned a : 3; unsigned b : 7; int c : 4; unsigned long d : 40; unsigned char e : 2; char tail; short last; };
enum kind { NONE, SOME = 7, NEG = -3 };
union either { int whole; char parts[4]; struct flags deep; };
typedef struct { struct flags f; enum kind k, n; int grid[2][3]; union either u; char name[12]; struct flags *next;
  int (*call)(int); double d; _Bool yes; unsigned char raw[3]; } outer_t;
outer_t object = { { 5, 100, -3, 0x123456789aul, 2, 'x', -7 }, SOME, NEG, { { 1, 2, 3 }, { 4, 5, 6 } }, { 0x44434241 },
  "hello", 0, 0, 1.5, 1, { 1, 2, 3 } };
int varied(int n) { volatile int those[n]; those[0] = n; return those[0]; }
int main(int count, char **args) { return varied(count) + object.f.a; }
`;

t.test('what gcc writes of bit-fields, unions and arrays', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-layout-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'a.c'), C_SOURCE);
  for (const version of usually(['3', '4', '5'], (one) => one === '5')) {
    const path = join(folder, `a${version}`);
    execFileSync('gcc', [`-gdwarf-${version}`, '-gstrict-dwarf', '-no-pie', '-O0', '-o', path, join(folder, 'a.c')]);
    const gdb = (...commands: string[]): string =>
      execFileSync('gdb', ['-nx', '-batch', path, ...commands.flatMap((c) => ['-ex', c])], { encoding: 'utf8' });
    const elf = await ElfFile.open(path);
    const debug = DebugInfo.load(elf);
    const [names, shapes] = [new ProgramNames(debug), new Shapes(debug)];
    for (const type of ['struct flags', 'outer_t']) {
      const [found] = names.types(type);
      if (found === undefined) throw new Error(`no ${type}`);
      const described = describeType(found.die, found.name);
      const show = 'print(f.name, f.bitpos, f.bitsize, f.type.sizeof)';
      const fields = gdb(`python exec("for f in gdb.lookup_type('${type}').fields(): ${show}")`).trim().split('\n');
      t.strictSame(
        described.members.map((m) => {
          const first = m.offset * 8 + (m.bits?.offset ?? 0);
          return `${m.name} ${first} ${m.bits?.size ?? 0} ${m.size}`;
        }),
        fields,
        `DWARF ${version}: ${type}`,
      );
      // gdb calls the last hole padding.
      const holes = [...gdb(`ptype /o ${type}`).matchAll(/^\/\* XXX +(\d+)-byte (?:hole|padding) +\*\//gm)];
      const inner = type === 'outer_t' ? 2 : 0;
      t.equal(described.holes.length + inner, holes.length, `DWARF ${version}: holes of ${type}`);
    }
    const memory: MemoryReader = { read: async (address, length) => elf.bytesAt(address, length) };
    const said = async (expression: string): Promise<string> => {
      const found = await evaluateMemberExpr(parseMemberExpr(expression), { shapes, names, memory });
      return formatValue(await readValue(shapes, memory, found.shape, found.place));
    };
    const numbers = ['a', 'b', 'c', 'd', 'e', 'last'].map((field) => `object.f.${field}`);
    const others = ['k', 'n', 'd', 'yes', 'u.whole', 'grid[1][2]'].map((member) => `object.${member}`);
    const asked = [...numbers.map((one) => `output/d ${one}`), ...others.map((one) => `output ${one}`)];
    const shown = gdb(...asked.flatMap((one) => [one, 'echo \\n'])).split('\n');
    for (const [i, expression] of [...numbers, ...others].entries())
      t.equal(await said(expression), shown[i]?.trim(), expression);
    t.equal(await said('object.name'), '"hello"');
    t.equal(await said('object.raw'), '[1, 2, 3]');
    t.equal(await said('object.grid'), '[[1, 2, 3], [4, 5, 6]]');
    const arrays = typesOf(debug).filter(({ tag }) => tag === DW_TAG.array_type);
    t.match(gdb('whatis object.grid'), 'int [2][3]');
    t.ok(arrays.some((one) => typeName(one) === '[[int; 3]; 2]'));
    const varied = arrays.find((one) => typeName(one).includes('volatile'));
    t.same([varied && typeName(varied), varied && sizeOf(varied)], ['[volatile int]', undefined]);
    const { shape, place } = await evaluateMemberExpr(parseMemberExpr('object.f'), { shapes, names, memory });
    t.match(plainValue(await readValue(shapes, memory, shape, place)), { b: 100, d: 78187493530n, last: -7 });
    t.equal(await said('*(&object.f as *const flags)'), await said('object.f'));
    t.match(
      await said('object'),
      /^\{ f: flags \{ a: 5, b: 100, c: -3, d: 78187493530, e: 2, tail: 120, last: -7 \}, k: SOME/,
    );
  }
});

const u8 = (label: string, name: string, size: number, encoding: number): DieSpec => ({
  tag: DW_TAG.base_type,
  label,
  attributes: [
    [DW_AT.name, F.string, name],
    [DW_AT.byte_size, F.data1, size],
    [DW_AT.encoding, F.data1, encoding],
  ],
});

t.test('discriminant lists, bytes that are no value', async (t) => {
  const writer = new DwarfWriter();
  const member = (name: string, ref: string, offset: number, label?: string): DieSpec => ({
    tag: DW_TAG.member,
    ...(label === undefined ? {} : { label }),
    attributes: [
      [DW_AT.name, F.string, name],
      [DW_AT.type, F.ref4, { ref }],
      [DW_AT.data_member_location, F.data1, offset],
    ],
  });
  writer.unit({
    version: 4,
    root: {
      tag: DW_TAG.compile_unit,
      children: [
        u8('u8', 'u8', 1, 8),
        u8('i8', 'i8', 1, 6),
        u8('bool', 'bool', 1, 2),
        u8('char', 'char', 4, 0x10),
        u8('huge', 'u256', 32, 7),
        {
          tag: DW_TAG.enumeration_type,
          label: 'level',
          attributes: [
            [DW_AT.name, F.string, 'Level'],
            [DW_AT.byte_size, F.data1, 1],
            [DW_AT.type, F.ref4, { ref: 'i8' }],
          ],
          children: [
            {
              tag: DW_TAG.enumerator,
              attributes: [
                [DW_AT.name, F.string, 'Low'],
                [DW_AT.const_value, F.sdata, -5],
              ],
            },
          ],
        },
        {
          tag: DW_TAG.structure_type,
          label: 'listed',
          attributes: [
            [DW_AT.name, F.string, 'Listed'],
            [DW_AT.byte_size, F.data1, 2],
          ],
          children: [
            {
              tag: DW_TAG.variant_part,
              attributes: [[DW_AT.discr, F.ref4, { ref: 'discr' }]],
              children: [
                member('tag', 'u8', 0, 'discr'),
                {
                  tag: DW_TAG.variant,
                  // label 3, range 5..=9 (DWARF 5, section 7.6 for the numbers)
                  attributes: [[DW_AT.discr_list, F.block1, Uint8Array.of(0, 3, 1, 5, 9)]],
                  children: [member('a', 'u8', 1)],
                },
                {
                  tag: DW_TAG.variant,
                  attributes: [[DW_AT.discr_value, F.data1, 4]],
                  children: [member('b', 'bool', 1)],
                },
              ],
            },
          ],
        },
      ],
    },
  });
  const debug = debugOf(writer);
  const shapes = new Shapes(debug);
  const read = async (label: string, ...bytes: number[]): Promise<string> => {
    const die = debug.die(writer.labels.get(label) ?? -1);
    const value = await readValue(
      shapes,
      { read: async () => undefined },
      shapes.of(die),
      ObjectPlace.bytes(Uint8Array.from(bytes)),
    );
    return formatValue(value);
  };
  t.equal(await read('listed', 3, 77), 'a { a: 77 }');
  t.equal(await read('listed', 5, 77), 'a { a: 77 }');
  t.equal(await read('listed', 9, 77), 'a { a: 77 }');
  t.equal(await read('listed', 4, 1), 'b { b: true }');
  t.equal(await read('listed', 4, 2), 'b { b: <invalid bool: 0x2> }');
  t.equal(await read('listed', 10, 0), '<invalid Listed: discriminant 0xa>');
  t.equal(await read('level', 0xfb), 'Low');
  t.equal(await read('level', 0xfa), '<invalid Level: discriminant -6>');
  t.equal(await read('char', 0x41, 0, 0, 0), "'A'");
  t.equal(await read('char', 0, 0xd8, 0, 0), '<invalid char: 0xd800>');
  t.equal(await read('i8', 0x80), '-128');
  t.equal(formatValue(textValue('str', Buffer.from('\ufeffa'), 4)), '"\\u{feff}a"');
  t.equal(await read('huge', ...new Array(32).fill(1)), `<u256: ${'01'.repeat(32)}>`);
  t.equal(await read('u8'), '<optimized out>');
});

t.test('library types that hold themselves, as only a damaged file has them', async (t) => {
  const writer = new DwarfWriter();
  const struct = (name: string, ...members: readonly (readonly [string, string])[]): DieSpec => ({
    tag: DW_TAG.structure_type,
    label: name,
    attributes: [
      [DW_AT.name, F.string, name],
      [DW_AT.byte_size, F.data1, 24],
    ],
    children: members.map(([member, ref]) => ({
      tag: DW_TAG.member,
      attributes: [
        [DW_AT.name, F.string, member],
        [DW_AT.type, F.ref4, { ref }],
      ],
    })),
  });
  const module = (name: string, ...children: DieSpec[]): DieSpec => ({
    tag: DW_TAG.namespace,
    attributes: [[DW_AT.name, F.string, name]],
    children,
  });
  const deep = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => [name, 'Deep'] as const);
  const children = [
    module('alloc', module('string', struct('String', ['vec', 'String']))),
    module('alloc', module('vec', struct('Vec', ['buf', 'Deep'], ['len', 'Deep']), struct('Deep', ...deep))),
    module('std', module('sync', struct('Mutex', ['data', 'Mutex']))),
  ];
  writer.unit({ version: 4, root: { tag: DW_TAG.compile_unit, children } });
  const shapes = new Shapes(debugOf(writer));
  for (const name of ['String', 'Vec', 'Mutex']) {
    const shape = shapes.of(shapes.debug.die(writer.labels.get(name) ?? -1));
    t.same([shape.kind, 'view' in shape && shape.view()], ['struct', undefined], name);
  }
});

/** All types of a program that take space. */
function typesOf(debug: DebugInfo): Die[] {
  const found: Die[] = [];
  for (const unit of debug.units) {
    for (const cursor = DieCursor.of(unit); cursor.next(); ) {
      if (COMPOSITE.has(cursor.tag) || cursor.tag === DW_TAG.pointer_type || cursor.tag === DW_TAG.array_type) {
        found.push(cursor.die());
      }
    }
  }
  return found;
}

function count(value: Value): number {
  switch (value.kind) {
    case 'struct':
      return value.fields.reduce((sum, f) => sum + count(f.value), 1);
    case 'sequence':
      return value.elements.reduce((sum, e) => sum + count(e), 1);
    case 'pointer':
      return 1 + (value.target === undefined ? 0 : count(value.target));
    case 'wrapper':
      return 1 + (value.value === undefined ? 0 : count(value.value));
    default:
      return 1;
  }
}

t.test('random bytes as values of random types keep to the limits', async (t) => {
  const debug = DebugInfo.load(await ElfFile.open(elfPath('rv-o0')));
  const [shapes, names] = [new Shapes(debug), new ProgramNames(debug)];
  const types = typesOf(debug);
  t.ok(types.length > 2000);
  const limits = { depth: 12, elements: 8, text: 32, values: 300, bytes: 4096 };
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...types),
      fc.uint8Array({ minLength: 16, maxLength: 64 }),
      fc.boolean(),
      async (type, seed, sparse) => {
        let bytes = 0;
        // Memory repeats the seed everywhere, so pointers lead back into it; half of the time much of it is not there.
        const memory: MemoryReader = {
          async read(address, length) {
            if (sparse && (address & 0x70n) !== 0n) return undefined;
            bytes += length;
            return Uint8Array.from(
              { length },
              (_, i) => seed[Number((address + BigInt(i)) % BigInt(seed.length))] as number,
            );
          },
        };
        const options = { limits, concrete: (vtable: Parameters<typeof names.concrete>[0]) => names.concrete(vtable) };
        for (const raw of [false, true]) {
          bytes = 0;
          const place = ObjectPlace.memory(addr(0x1000));
          const value = await readValue(shapes, memory, shapes.of(type), place, { ...options, raw });
          // Beyond the limit on values there may be one that is cut a level.
          if (count(value) > limits.values + limits.depth * 2 || bytes > limits.bytes) return false;
          formatValue(value);
          JSON.stringify(valueJson(value));
        }
        return true;
      },
    ),
    { seed: 7, numRuns: 3000 },
  );
});

t.test("a lock's tickets are numbers", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-ticket-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const [source, path] = [join(folder, 'a.cc'), join(folder, 'a')];
  // Paths and members as spin 0.10 has them.
  writeFileSync(
    source,
    `namespace core { namespace cell { struct UnsafeCell { unsigned value; }; } }
    namespace spin { namespace mutex { struct TicketMutex { unsigned long next_ticket, next_serving; core::cell::UnsafeCell data; }; } }
    spin::mutex::TicketMutex lock = { 3, 2, { 4 } };
    int main() { return lock.data.value; }`,
  );
  execFileSync('gcc', ['-x', 'c++', '-g', '-no-pie', '-O0', '-o', path, source]);
  const elf = await ElfFile.open(path);
  const debug = DebugInfo.load(elf);
  const [names, shapes] = [new ProgramNames(debug), new Shapes(debug)];
  const memory: MemoryReader = { read: async (address, length) => elf.bytesAt(address, length) };
  const { shape, place } = await evaluateMemberExpr(parseMemberExpr('lock'), { shapes, names, memory });
  const value = await readValue(shapes, memory, shape, place);
  t.equal(formatValue(value), 'TicketMutex(next_ticket=3, next_serving=2)(4)');
});

const CXX_SOURCE = `
struct B { int a; static int shared; char c; };
int B::shared = 77;
struct E { };
struct D : E, B { int b; };
struct V : virtual B { int v; };
D d = { {}, { 1, 'x' }, 2 };
V v;
int main() { return d.b + B::shared + v.v; }
`;

t.test('what g++ writes of classes that derive from others, and of static members', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-classes-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const source = join(folder, 'a.cc');
  writeFileSync(source, CXX_SOURCE);
  for (const version of ['4', '5']) {
    const path = join(folder, `a${version}`);
    execFileSync('gcc', ['-x', 'c++', '-fno-rtti', `-gdwarf-${version}`, '-no-pie', '-O0', '-o', path, source]);
    const elf = await ElfFile.open(path);
    const debug = DebugInfo.load(elf);
    const [names, shapes] = [new ProgramNames(debug), new Shapes(debug)];
    for (const type of ['B', 'D']) {
      const show = "[print(f.name, f.bitpos // 8) for f in gdb.lookup_type(T).fields() if hasattr(f, 'bitpos')]";
      const script = `python exec("T = '${type}'\\n${show}")`;
      const fields = execFileSync('gdb', ['-nx', '-batch', path, '-ex', script], { encoding: 'utf8' });
      const [found] = names.types(type);
      const described = found && describeType(found.die, type);
      const members = layoutOf(found?.die as Die).members.map(({ name, offset }) => `${name} ${offset}`);
      t.strictSame(members, fields.trim().split('\n'), `DWARF ${version}: ${type}`);
      t.strictSame(described?.holes, type === 'B' ? [{ offset: 5, size: 3 }] : []);
    }
    const memory: MemoryReader = { read: async (address, length) => elf.bytesAt(address, length) };
    const { shape, place } = await evaluateMemberExpr(parseMemberExpr('d'), { shapes, names, memory });
    t.equal(formatValue(await readValue(shapes, memory, shape, place)), 'D { E: E, B: B { a: 1, c: 120 }, b: 2 }');
    const [virtual] = names.types('V');
    // Where a virtual base lies is not known before there is an object.
    t.notOk(layoutOf(virtual?.die as Die).members.some(({ name }) => name === 'B'));
  }
});
