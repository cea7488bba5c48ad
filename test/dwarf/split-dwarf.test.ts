// Split DWARF: every entry of a program whose debug info lies in .dwo files or in a .dwp package, against the same program with all of
// it inside. The files are made by gcc, dwp and llvm-dwp here; rustc's are committed, see tiny/build.sh.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { findFutures } from '../../src/async/futures/index.js';
import { addr } from '../../src/base/addr.js';
import { DebugInfo, type Die, DieCursor, DW_AT, DW_OP, DW_TAG, locationsOf, rangesOf } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { addressesNamed } from '../support/addresses-named.js';
import { run } from '../support/dwarfdump.js';
import { compile, scratch } from '../support/small-programs.js';

const folder = scratch();

async function debugOf(path: string, files = {}): Promise<DebugInfo> {
  return DebugInfo.load(await ElfFile.open(path, files));
}

/** What is known of every entry but the units' own, whose place is the skeleton; in an order of its own. */
function entries(debug: DebugInfo): string[] {
  const found: string[] = [];
  for (const unit of debug.units) {
    for (const cursor = DieCursor.of(unit); cursor.next(); ) {
      if (cursor.tag !== DW_TAG.compile_unit && cursor.tag !== DW_TAG.type_unit) found.push(facts(debug, cursor.die()));
    }
  }
  return found.sort();
}

function facts(debug: DebugInfo, die: Die): string {
  const { file, line } = debug.declarationOf(die);
  const ranges = rangesOf(die).map(({ low, high }) => [low, high]);
  // In place of an address and of a type's offset split DWARF has other numbers: where those lead is compared by name below.
  const places = locationsOf(die, DW_AT.location).map(({ low, high, expression: [op = 0] }) => [
    `${low} ${high}`,
    [DW_OP.addr, DW_OP.addrx, DW_OP.GNU_addr_index].includes(op as 3) ? 'address' : op,
  ]);
  const type = die.follow(DW_AT.type);
  const size = die.number(DW_AT.byte_size);
  return JSON.stringify([die.tag, die.name, size, file, line, ranges, places, type?.tag, type?.name]);
}

/** Lines, functions and variables by address. */
function places(debug: DebugInfo): unknown {
  const names = ['outer', 'scale', 'table', 'sink', 'banner', 'calls', 'SINK', 'leaf', 'root', 'poll', '_start'];
  return names.map((name) => {
    const found = addressesNamed(debug, name);
    // Some of its instructions, and some behind them.
    const inside = found.flatMap((address) => Array.from({ length: 16 }, (_, i) => addr(address + BigInt(i * 4))));
    const around = inside.map((address) => {
      const { position, functions } = debug.frameAt(address);
      return [position, functions.map((each) => [each.name, each.position])];
    });
    return [name, found, around];
  });
}

async function same(t: Test, whole: string, split: string, files = {}): Promise<void> {
  const [expected, found] = [await debugOf(whole), await debugOf(split, files)];
  t.ok(entries(expected).length > 20);
  t.equal(entries(found).join('\n'), entries(expected).join('\n'));
  t.strictSame(places(found), places(expected));
  t.strictSame(found.warnings, []);
}

/** A program with its .dwo files or without, and the same compiled whole. */
function pair(name: string, flags: readonly string[], split = '-gsplit-dwarf') {
  const home = join(folder, name);
  mkdirSync(home);
  const path = compile(home, 'split', [...flags, split]);
  return { home, split: path, whole: compile(home, 'whole', flags) };
}

const dwoFiles = (home: string): string[] => readdirSync(home).filter((name) => name.endsWith('.dwo'));

t.test('.dwo files are read: DWARF 4 and 5, type units, where they were built and beside the program', async (t) => {
  for (const version of [4, 5]) {
    for (const types of [[], ['-fdebug-types-section']]) {
      const { home, split, whole } = pair(`dwo${version}${types.length}`, [`-gdwarf-${version}`, ...types]);
      t.not(dwoFiles(home).length, 0);
      await same(t, whole, split);
      // Moved together, and to a folder of its own.
      const moved = join(home, 'moved');
      mkdirSync(moved);
      for (const name of [...dwoFiles(home), 'split']) renameSync(join(home, name), join(moved, name));
      await same(t, whole, join(moved, 'split'));
      renameSync(join(moved, 'split'), split);
      await same(t, whole, split, { debugDirs: [moved] });
    }
  }
});

t.test(".dwp packages are read: GNU's of DWARF 4, by two tools", async (t) => {
  // Of DWARF 5 the next test has one: llvm-dwp 14 does not end with what gcc 12 makes.
  for (const tool of ['dwp', 'llvm-dwp']) {
    for (const types of [[], ['-fdebug-types-section']]) {
      const { home, split, whole } = pair(`${tool}${types.length}`, ['-gdwarf-4', ...types]);
      run(tool, '-e', split, '-o', `${split}.dwp`);
      for (const dwo of dwoFiles(home)) rmSync(join(home, dwo));
      await same(t, whole, split);
      renameSync(`${split}.dwp`, join(home, 'elsewhere'));
      await same(t, whole, split, { debugFile: join(home, 'elsewhere') });
      await t.rejects(debugOf(split), { code: 'DWARF_SPLIT' });
    }
  }
});

t.test("rustc's split debug info has the same entries and Futures as its whole one", async (t) => {
  for (const version of [4, 5]) {
    const home = join(folder, `rust${version}`);
    mkdirSync(home);
    for (const name of [`tiny${version}.elf`, `tiny${version}-split.elf`, `tiny${version}.dwo`]) {
      writeFileSync(
        join(home, name),
        brotliDecompressSync(readFileSync(join(import.meta.dirname, 'tiny', `${name}.br`))),
      );
    }
    const [whole, split] = [join(home, `tiny${version}.elf`), join(home, `tiny${version}-split.elf`)];
    // The name that rustc gave it.
    const name = /\S+\.dwo/.exec(run('llvm-dwarfdump', split))?.[0].replace(/^.*[/"]/, '') ?? '';
    renameSync(join(home, `tiny${version}.dwo`), join(home, name));
    await same(t, whole, split);
    const futures = async (path: string): Promise<unknown> =>
      findFutures(await debugOf(path)).all.map((each) => [each.instance, each.size, each.file, each.line]);
    t.strictSame(await futures(split), await futures(whole));
    const packed = join(home, 'packed');
    copyFileSync(split, packed);
    execFileSync('llvm-dwp', [join(home, name), '-o', `${packed}.dwp`]);
    rmSync(join(home, name));
    await same(t, whole, packed);
  }
});

t.test('a .dwo file of another build is not taken: lines are known, and a sentence says what is missing', async (t) => {
  const { home, split } = pair('old', ['-gdwarf-5']);
  const kept = join(home, 'kept');
  copyFileSync(split, kept);
  compile(home, 'split', ['-gdwarf-5', '-gsplit-dwarf', '-O1']);
  const elf = await ElfFile.open(kept);
  t.throws(() => DebugInfo.load(elf), {
    code: 'DWARF_SPLIT',
    message:
      /^1 of 1 units of .*kept have their debug info in \.dwo files, which are of another build \(.*\.dwo, \.\.\.\)$/,
    hint: /--debug-dir/,
  });
  const debug = DebugInfo.load(elf, { linesSuffice: true });
  t.match(debug.warnings, [/are of another build/]);
  const [outer = addr(0n)] = addressesNamed(debug, 'outer');
  t.match(debug.lineAt(outer), { file: /small\.c$/, line: 19 });
  t.equal(debug.functionAt(outer), undefined);
  // A name that leads to a pipe is not waited for.
  const [dwo = ''] = dwoFiles(home);
  rmSync(join(home, dwo));
  run('mkfifo', join(home, dwo));
  t.throws(() => DebugInfo.load(elf), { message: /cannot be read \(.*it is no regular file\)/ });
});
