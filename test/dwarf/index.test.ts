// Lookups: name -> entries and addresses, address -> symbol, line and functions. Expected values come from llvm-dwarfdump,
// llvm-addr2line, nm and the source of the small programs.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { addr } from '../../src/base/addr.js';
import {
  DebugInfo,
  type Die,
  DW_AT,
  DW_TAG,
  DW_FORM as F,
  layoutOf,
  linkageNameOf,
  typeName,
} from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { addressesNamed } from '../support/addresses-named.js';
import { DwarfWriter } from '../support/dwarf-writer.js';
import { dumpInfo, run } from '../support/dwarfdump.js';
import { usually } from '../support/long.js';
import { compile, SOURCE, scratch } from '../support/small-programs.js';

const folder = scratch();
const load = async (path: string): Promise<DebugInfo> => DebugInfo.load(await ElfFile.open(path));
const KINDS = new Map([
  ['structure_type', 'type'],
  ['union_type', 'type'],
  ['enumeration_type', 'type'],
  ['base_type', 'type'],
  ['typedef', 'type'],
  ['pointer_type', 'type'],
  ['subprogram', 'function'],
  ['variable', 'variable'],
] as const);

const isUsual = (name: string): boolean => /dwarf5|x86/.test(name);
for (const name of usually(['rv-o0', 'rv-o2', 'rv-o2-dwarf5', 'x86-o2-legacy'], isUsual)) {
  t.test(`${name}: every named entry is found by its name, and nothing else`, async (t) => {
    const debug = await load(elfPath(name));
    const wanted = new Map<string, Set<number>>();
    const parents: string[] = [];
    let copies = 0;
    for (const die of dumpInfo(elfPath(name))) {
      parents.length = die.depth;
      parents[die.depth] = die.tag;
      const kind = KINDS.get(die.tag as 'variable');
      const own = /^"(.*)"$/.exec(die.attributes.get('name') ?? '')?.[1]?.replaceAll('\\"', '"');
      if (kind === undefined || die.attributes.has('declaration')) continue;
      if (parents.slice(0, die.depth).includes('subprogram')) continue;
      if (kind === 'variable' && !die.attributes.has('location') && !die.attributes.has('const_value')) continue;
      // A copy of what is named elsewhere.
      if (own === undefined && (die.attributes.has('abstract_origin') || die.attributes.has('specification'))) copies++;
      if (own === undefined) continue;
      const key = `${kind} ${own}`;
      wanted.set(key, (wanted.get(key) ?? new Set()).add(die.offset));
    }
    const wrong: string[] = [];
    let checked = 0;
    for (const [key, offsets] of wanted) {
      const [kind, own] = [key.slice(0, key.indexOf(' ')) as 'type', key.slice(key.indexOf(' ') + 1)];
      const found = [...debug.names.find(own, kind)].filter((die) => die.name === own);
      const said = new Set(found.map((die) => die.offset));
      checked += offsets.size;
      const missing = [...offsets].filter((at) => !said.has(at));
      const more = [...said].filter((at) => !offsets.has(at));
      if (missing.length > 0 || more.length > 0) wrong.push(`${key}: ${missing} missing, ${more} too many`);
    }
    t.strictSame(wrong.slice(0, 10), []);
    t.ok(checked > 5000, `${checked} entries`);
    t.equal(debug.names.size.entries, checked + copies, 'and no others');
    t.ok(debug.names.size.bytes < 16 * debug.names.size.entries + 65536);
    t.strictSame([...debug.names.find('no_such_name', 'type')], []);
  });
}

t.test('paths and generic arguments', async (t) => {
  const debug = await load(elfPath('rv-o0'));
  const names = (dies: Die[]): string[] => dies.map((die) => typeName(die)).sort();
  t.strictSame(names(debug.typesNamed('Disk')), ['labkern::work::Disk']);
  t.strictSame(names(debug.typesNamed('work::Disk')), ['labkern::work::Disk']);
  t.strictSame(names(debug.typesNamed('labkern::work::Disk')), ['labkern::work::Disk']);
  t.strictSame(names(debug.typesNamed('other::Disk')), []);
  const options = names(debug.typesNamed('Option'));
  t.ok(options.length > 50 && options.every((name) => name.startsWith('core::option::Option<')));
  t.strictSame(names(debug.typesNamed('core::option::Option<u32>')), ['core::option::Option<u32>']);
  t.strictSame(new Set(options).size, options.length, 'each type once, however many units have it');
  t.strictSame(
    debug.functionsNamed('labkern::work::deep0').map((die) => die.linkageName ?? die.name),
    ['deep0'],
  );
  const symbols = run('nm', elfPath('rv-o0'));
  const deep = BigInt(`0x${/^(\w+) T deep0$/m.exec(symbols)?.[1]}`);
  t.strictSame(addressesNamed(debug, 'labkern::work::deep0'), [deep]);
  t.strictSame(addressesNamed(debug, 'deep0'), [deep]);
  // A method: the impl block has no name in DWARF.
  const methods = debug.functionsNamed('YieldN::poll').filter((die) => !Number.isNaN(die.lowPc));
  t.equal(methods.length, 1);
  t.match(methods[0]?.linkageName ?? '', /6YieldN/);
  const vtables = [...debug.names.find('<labkern::futs::Recv as core::future::future::Future>::{vtable}', 'variable')];
  t.ok(vtables.every((die) => die.tag === DW_TAG.variable));
});

const DIALECTS: readonly [string, string[]][] = [
  ['dwarf-2', ['-gdwarf-2', '-gstrict-dwarf']],
  ['dwarf-4', ['-gdwarf-4', '-fdebug-types-section']],
  ['dwarf-5', ['-gdwarf-5']],
];

for (const [dialect, flags] of DIALECTS) {
  t.test(`a C program in ${dialect}`, async (t) => {
    const path = compile(folder, dialect, flags);
    const symbols = new Map(
      [...run('nm', path).matchAll(/^(\w+) \w (\w+)$/gm)].map((m) => [m[2] as string, BigInt(`0x${m[1]}`)]),
    );
    const line = (text: string): number => SOURCE.split('\n').findIndex((l) => l.includes(text)) + 1;
    const debug = await load(path);
    const node = debug.typesNamed('node')[0];
    if (node === undefined) throw new Error('no struct node');
    const layout = layoutOf(node);
    // By the System V ABI; a bit-field's place is told in bits from DWARF 4 on.
    const members = layout.members.filter((m) => m.name !== 'flag').map((m) => [m.name, m.offset]);
    t.strictSame(members, [
      ['next', 0],
      ['value', 8],
      ['colour', 12],
      ['sizes', 24],
    ]);
    t.equal(layout.size, 24 + 6 * 8);
    t.strictSame(
      debug.typesNamed('either').map((d) => d.tag),
      [DW_TAG.union_type],
    );
    t.strictSame(
      debug.typesNamed('colour').map((d) => d.tag),
      [DW_TAG.enumeration_type],
    );
    t.strictSame(
      debug.typesNamed('word').map((d) => d.tag),
      [DW_TAG.typedef],
    );
    for (const name of ['outer', 'scale', 'table', 'sink', 'banner', '_start']) {
      t.strictSame(addressesNamed(debug, name), [symbols.get(name)], name);
    }
    t.strictSame(debug.variablesNamed('calls'), [], 'a static of a function is not in the index');
    t.equal(debug.functionsNamed('middle').length, 1, 'a function that is always inlined is');
    t.strictSame(addressesNamed(debug, 'middle'), []);
    // The symbol, and its alias.
    const outer = addr(symbols.get('outer') ?? 0n);
    t.strictSame(
      debug.elf.symbols
        .allAt(outer)
        .map((s) => s.name)
        .sort(),
      ['alias_of_outer', 'outer'],
    );
    // Inside innermost(), inside middle(), inside outer().
    const deepest = Array.from({ length: 64 }, (_, i) => debug.frameAt(addr(outer + BigInt(i)))).find(
      (place) => place.functions.length === 3,
    );
    t.strictSame(
      deepest?.functions.map((f) => [f.name, f.inlined]),
      [
        ['innermost', true],
        ['middle', true],
        ['outer', false],
      ],
    );
    // DWARF 2 does not say where the call stands.
    if (dialect === 'dwarf-2') return;
    const [, middle, whole] = deepest?.functions ?? [];
    t.equal(middle?.position?.line, line('int y = innermost'));
    t.ok([line('n->value.whole = middle'), line('int deep = middle')].includes(whole?.position?.line ?? 0));
    t.match(whole?.position?.file, /small\.c$/);
  });
}

for (const name of usually(['rv-o0', 'rv-o2', 'x86-o2', 'rv-o2-dwarf5'], isUsual)) {
  t.test(`${name}: addresses are in the functions that llvm-addr2line names`, async (t) => {
    const path = elfPath(name);
    const debug = await load(path);
    const text = debug.elf.sections.find((s) => s.name === '.text');
    if (text === undefined) throw new Error('no .text');
    const asked: bigint[] = [];
    for (let at = text.address + 2n; at < text.address + BigInt(text.size); at += 14n) asked.push(at);
    const input = asked.map((at) => `0x${at.toString(16)}\n`).join('');
    const answer = execFileSync('llvm-addr2line', ['-e', path, '-i', '-f', '-a'], {
      input,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    const blocks = answer.split(/^0x[0-9a-f]+\n/m).slice(1);
    t.equal(blocks.length, asked.length);
    const wrong: string[] = [];
    let deep = 0;
    asked.forEach((at, i) => {
      const lines = (blocks[i] as string).trim().split('\n');
      const wanted = lines.map((l, n) => (n % 2 === 0 ? l : l.endsWith(':0') ? '?' : l.replace(/ \(disc.*/, '')));
      const place = debug.frameAt(addr(at));
      // Assembly has no functions in DWARF; llvm-addr2line then names the symbol.
      const symbol = debug.elf.symbols.at(addr(at))?.name ?? '';
      if (place.functions.length === 0) wanted[0] = symbol;
      const where = (p: typeof place.position): string =>
        p === undefined || p.line === 0 ? '?' : `${p.file}:${p.line}`;
      const said =
        place.functions.length === 0
          ? [symbol, where(place.position)]
          : place.functions.flatMap((f) => [
              linkageNameOf(f.die) ?? f.name.split('::').at(-1) ?? '',
              where(f.position),
            ]);
      // Of functions that were folded into one, llvm-addr2line names another.
      const [outer = '', named = ''] = [said.at(-2), wanted.at(-2)];
      const addressOf = (name: string): unknown => debug.elf.symbols.named(name)[0]?.address ?? name;
      if (addressOf(outer) === addressOf(named)) wanted[wanted.length - 2] = outer;
      if (place.functions.length > 2) deep++;
      if (said.join() !== wanted.join()) wrong.push(`0x${at.toString(16)}: ${said.join()} is not ${wanted.join()}`);
    });
    t.strictSame(wrong.slice(0, 5), []);
    t.ok(deep > 200, `${deep} of ${asked.length} with two functions inlined at least`);
  });
}

t.test('a damaged unit costs its own names only', async (t) => {
  const writer = new DwarfWriter();
  const unit = (name: string, form: number): number =>
    writer.unit({
      version: 4,
      root: {
        tag: DW_TAG.compile_unit,
        children: [
          { tag: DW_TAG.base_type, attributes: [[DW_AT.name, F.string, name]] },
          { tag: DW_TAG.base_type, attributes: [[DW_AT.name, form, form === F.strp ? 'strings' : 1]] },
          { tag: DW_TAG.base_type, attributes: [[DW_AT.name, F.string, `${name}_last`]] },
        ],
      },
    });
  unit('good', F.strp);
  unit('bad', F.ref_sup4);
  unit('better', F.strp);
  const bytes = writer.elf();
  const elf = ElfFile.parse(bytes, 'test.elf');
  const abbrev = elf.sections.find((s) => s.name === '.debug_abbrev');
  if (abbrev === undefined) throw new Error('no .debug_abbrev');
  // The form of the second unit's second entry becomes one that nobody knows.
  const at = bytes.indexOf(F.ref_sup4, abbrev.offset);
  bytes[at] = 0x7d;
  const debug = DebugInfo.load(ElfFile.parse(bytes, 'test.elf'));
  const has = (name: string): number => debug.typesNamed(name).length;
  t.strictSame(['good', 'good_last', 'bad', 'bad_last', 'better', 'better_last'].map(has), [1, 1, 0, 0, 1, 1]);
  t.equal(debug.warnings.length, 1);
  t.match(debug.warnings[0], /unit at offset 0x[0-9a-f]+: .*unknown form/);
});

t.test('an alignment of 0, as of a damaged file, is none', async (t) => {
  const struct = (name: string, align: number) => ({
    tag: DW_TAG.structure_type,
    attributes: [
      [DW_AT.name, F.string, name],
      [DW_AT.alignment, F.udata, align],
    ] as const,
  });
  const writer = new DwarfWriter();
  const children = [struct('damaged', 0), struct('whole', 16)];
  writer.unit({ version: 5, root: { tag: DW_TAG.compile_unit, children } });
  const debug = DebugInfo.load(ElfFile.parse(writer.elf([]), 'test.elf'));
  const aligns = ['damaged', 'whole'].map((name) => debug.typesNamed(name).map((type) => layoutOf(type).align));
  t.same(aligns, [[undefined], [16]]);
});
