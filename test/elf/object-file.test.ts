// Object files placed and relocated: each debug section as binutils' linker writes it at the same addresses, and what a command says of one.
// Relocations of loongarch64, for which Debian 12 has no linker, by their formulas in the psABI.
//
// `scripts/test --long` has all compilers and flags.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import t from 'tap';
import { RsptraceError } from '../../src/base/errors.js';
import { DebugInfo } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { ByteWriter, writeElf } from '../support/elf-writer.js';
import { long } from '../support/long.js';
import { randomOf } from '../support/mutations.js';

const SOURCE = `
static int counter = 5; int other[40]; static _Thread_local int mine; _Thread_local int tls = 4; extern int elsewhere(int);
struct ops { int (*a)(int); int (*b)(int); };
__attribute__((noinline)) static int twice(int x) { counter += x; tls++; return x * 2 + elsewhere(x); }
__attribute__((noinline)) int thrice(int x) {
  if (x > 20) { for (int i = 0; i < x; i++) other[i] += twice(i); }
  int kept = twice(x); mine += x; return kept * 3 + twice(kept);
}
const struct ops table = { twice, thrice };
__attribute__((section(".init.text"))) int setup(int n) { return n > 3 ? twice(n) : thrice(n); }
`;
const compilers = ['', 'aarch64-linux-gnu-'];
const flagged = [
  ['-O2'],
  ['-O2', '-gdwarf-4', '-ffunction-sections', '-fdata-sections', '-fno-asynchronous-unwind-tables'],
  ['-O1', '-gz'],
];
/** What `riscv64-linux-gnu-gcc -c -g -O1 -gz` makes of {@link SOURCE}: nothing else needs that compiler. */
const ready: Variant = { prefix: 'riscv64-linux-gnu-', flags: ['-O1', '-gz'], object: 'riscv64-object.elf.br' };
const variants: readonly Variant[] = [
  ...compilers.flatMap((prefix, i) => flagged.flatMap((flags, j) => (long || i === j ? [{ prefix, flags }] : []))),
  ready,
];

interface Variant {
  readonly prefix: string;
  readonly flags: readonly string[];
  /** It is made already, and lies there. */
  readonly object?: string;
}

function unpacked(folder: string, packed: string): string {
  const object = join(folder, 'a.o');
  writeFileSync(object, brotliDecompressSync(readFileSync(join(import.meta.dirname, packed))));
  return object;
}

function objectOf(folder: string, prefix: string, flags: readonly string[]): string {
  const object = join(folder, 'a.o');
  writeFileSync(join(folder, 'a.c'), SOURCE);
  execFileSync(`${prefix}gcc`, ['-c', '-g', ...flags, '-o', object, join(folder, 'a.c')]);
  return object;
}

t.test('a section for each type unit', async (t) => {
  for (const version of ['4', '5']) {
    const object = objectOf(scratchFolder(t), '', [`-gdwarf-${version}`, '-fdebug-types-section']);
    const debug = DebugInfo.load(await ElfFile.open(object));
    const found = [debug.functionsNamed('thrice'), debug.variablesNamed('table'), debug.typesNamed('ops')];
    t.same(
      found.map(({ length }) => length),
      [1, 1, 1],
      version,
    );
  }
});

/** The object as a linker links it, with its sections at these addresses. Its strings stay as they are, in their order. */
function linkedAt(object: string, prefix: string, elf: ElfFile): string {
  const [plain, script, linked] = [`${object}.plain`, `${object}.ld`, `${object}.linked`];
  const asTheyAre = ['.debug_str', '.debug_line_str'].flatMap((name) => ['--set-section-flags', `${name}=readonly`]);
  execFileSync('llvm-objcopy', ['--decompress-debug-sections', ...asTheyAre, object, plain]);
  const placed = elf.sections.filter(
    ({ name, flags, size }) => (flags & 2) !== 0 && size > 0 && !/^\.t(?:data|bss)/.test(name),
  );
  const lines = placed
    .sort((a, b) => Number(a.address - b.address))
    .map(({ name, address }) => `${name} ${address} : SUBALIGN(1) { *(${name}) }`);
  writeFileSync(script, `SECTIONS { ${lines.join('\n')}\n .tdata : { *(.tdata*) } .tbss : { *(.tbss*) } }`);
  const options = ['--no-relax', '--unresolved-symbols=ignore-all', '--no-warn-rwx-segments', '-e', '0'];
  execFileSync(`${prefix}ld`, [...options, '-T', script, '-o', linked, plain]);
  return linked;
}

for (const { prefix, flags, object: packed } of variants) {
  t.test(`${prefix}gcc ${flags.join(' ')}`, async (t) => {
    const folder = scratchFolder(t);
    const object = packed === undefined ? objectOf(folder, prefix, flags) : unpacked(folder, packed);
    const elf = await ElfFile.open(object);
    const linked = await ElfFile.open(linkedAt(object, prefix, elf));
    const names = elf.sections.map(({ name }) => name).filter((name) => /^\.debug_|^\.eh_frame$|^\.rodata$/.test(name));
    t.ok(names.includes('.debug_info') && names.includes('.debug_line'));
    for (const name of names) {
      const [own, judged] = [elf, linked].map((one) => Buffer.from(one.section(name) ?? []));
      // The linker pads the last of the call frames.
      if (name !== '.eh_frame' || own?.length === judged?.length) t.same(own, judged, name);
    }
    const ofLinked = new Map([...linked.symbols].map((one) => [one.name, one.address]));
    const functions = [...elf.symbols].filter(({ name }) => /^(?:twice|thrice|setup|table|other)$/.test(name));
    t.equal(functions.length, 5);
    for (const { name, address } of functions) t.equal(address, ofLinked.get(name), name);
    const [debug, judge] = [DebugInfo.load(elf), DebugInfo.load(linked)];
    for (const { address } of functions) t.same(debug.lineAt(address), judge.lineAt(address));
    t.same(debug.warnings, []);
  });
}

t.test('a command without a target reads one, and a target is refused', async (t) => {
  const object = objectOf(scratchFolder(t), '', ['-O2']);
  const { stdout } = await rsptrace('types', object, 'ops').ended;
  t.match(stdout, /struct ops {2}\(16 bytes\)[\s\S]*0 {5}8 {2}a: \*fn[\s\S]*8 {5}8 {2}b: \*fn/);
  const qemu = 'qemu-system-x86_64 -display none'.split(' ');
  const { status, stderr } = await rsptrace('run', '-p', 'fn:thrice', '-o', `${object}.txt`, object, '--', ...qemu)
    .ended;
  t.equal(status, 1);
  t.match(stderr, /is an object file, .*\[ELF_NOT_LINKED\]/);
  // Its probes and a target that is not there are no matter then: `.text` begins at 0, which is not its entry point.
  const dry = await rsptrace('run', '--dry-run', '-p', 'fn:**', object).ended;
  t.match(dry.stderr, /is an object file, .*\[ELF_NOT_LINKED\]/);
});

/** An object with these bytes as its debug info, and one relocation after the other at its places. */
function objectWith(
  machine: number,
  bytes: readonly number[],
  relocations: readonly (readonly number[])[],
): Uint8Array {
  const symbols = new ByteWriter().raw(new Uint8Array(24)).uint(1, 4).u8(2).u8(0).uint(1, 2).uint(0x10, 8).uint(4, 8);
  const table = new ByteWriter();
  for (const [at = 0, type = 0, symbol = 0, addend = 0] of relocations)
    table.uint(at, 8).uint(type, 4).uint(symbol, 4).uint(addend, 8);
  const text = { name: '.text', bytes: new Uint8Array(32), flags: 6 };
  const info = { name: '.debug_info', bytes: Uint8Array.from(bytes) };
  const names = { name: '.strtab', bytes: Buffer.from('\0f\0'), type: 3 };
  const symtab = { name: '.symtab', bytes: symbols.bytes(), type: 2, link: 3 };
  const rela = { name: '.rela.debug_info', bytes: table.bytes(), type: 4, link: 4, info: 2 };
  return writeElf({ type: 1, machine, sections: [text, info, names, symtab, rela] });
}

t.test('sums, differences, six bits and LEB128 of loongarch64 and riscv64', async (t) => {
  // The symbol is 0x10. Sums: 3 + (0x10 + 2) - (0x10 - 1) = 6.
  const sum = (add: number, sub: number, bytes: number[], at = 0): Uint8Array | undefined =>
    ElfFile.parse(
      objectWith(add < 47 || add > 108 ? 243 : 258, bytes, [
        [at, add, 1, 2],
        [at, sub, 1, -1],
      ]),
      'x',
    ).section('.debug_info');
  for (const [add, sub, size] of [
    [47, 52, 1],
    [48, 53, 2],
    [49, 54, 3],
    [50, 55, 4],
    [51, 56, 8],
    [33, 37, 1],
    [34, 38, 2],
    [35, 39, 4],
    [36, 40, 8],
  ] as const)
    t.same(
      sum(add, sub, [9, 3, ...new Array(size - 1).fill(0), 9], 1),
      Buffer.from([9, 6, ...new Array(size - 1).fill(0), 9]),
      `${add}`,
    );
  t.same(sum(105, 106, [0x83]), Buffer.from([0x86]), 'the two bits above six stay');
  t.same(sum(107, 108, [0x83, 0x80, 0x00, 7]), Buffer.from([0x86, 0x80, 0x00, 7]), 'a LEB128 keeps its length');
  const one = (machine: number, type: number, bytes: number[], addend = 0): Uint8Array | undefined =>
    ElfFile.parse(objectWith(machine, bytes, [[1, type, 1, addend]]), 'x').section('.debug_info');
  t.same(one(258, 99, [0, 0, 0, 0, 0], 4), Buffer.from([0, 0x13, 0, 0, 0]), '0x10 + 4 - 1');
  t.same(one(243, 53, [0, 0xc7], 5), Buffer.from([0, 0xd5]));
  t.same(one(243, 60, [0, 0x80, 0x01], 0x100), Buffer.from([0, 0x90, 0x02]));
});

t.test('what is not known or damaged is said', async (t) => {
  const parse = (bytes: Uint8Array): ElfFile => ElfFile.parse(bytes, 'x');
  const four = [0, 0, 0, 0];
  t.throws(() => parse(objectWith(62, four, [[0, 99, 1]])), {
    code: 'DWARF_RELOCATABLE',
    message: /\.debug_info .* type 99/,
  });
  t.throws(() => parse(objectWith(62, four, [[1, 10, 1]])), { code: 'ELF_DAMAGED', message: /past the end/ });
  t.throws(() => parse(objectWith(62, four, [[0, 10, 2]])), { code: 'ELF_DAMAGED', message: /symbol 2/ });
  t.throws(() => parse(objectWith(258, [0x80, 0x80], [[0, 107, 1]])), { code: 'ELF_DAMAGED' }, 'a LEB128 without end');
  const good = readFileSync(objectOf(scratchFolder(t), '', ['-O1', '-gz']));
  const random = randomOf(1);
  const headers = good.readUInt32LE(0x28);
  const codes = new Set<string>();
  for (let i = 0; i < (long ? 20_000 : 200); i++) {
    const bytes = Uint8Array.from(good);
    for (let n = 0; n < 3; n++) {
      const at = i % 2 === 0 ? random(bytes.length) : headers + random(bytes.length - headers);
      bytes[at] = [0, 0xff, 0x7f, random(256)][random(4)] as number;
    }
    try {
      DebugInfo.load(parse(bytes)).walk(() => undefined);
    } catch (error) {
      if (!(error instanceof RsptraceError)) throw error;
      codes.add(error.code);
    }
  }
  t.ok(codes.has('ELF_DAMAGED'));
  t.notOk(codes.has('INTERNAL'));
});
