// Damaged files: whatever is flipped, overwritten or cut off, reading ends, in a result or an RsptraceError, and takes no more
// memory than the file allows. Most runs damage small real programs (gcc's and rustc's, in all DWARF versions), some whole guests,
// whose sections are unpacked first: a flipped bit in a compressed one would only ever show zlib's checksum.
//
// `scripts/test --long` makes 500 times the runs; RSPTRACE_FUZZ_SEED=N begins at case N.
// A failure names its case, which always does the same damage.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import t from 'tap';
import { findFutures } from '../../src/async/futures/index.js';
import { addOffset } from '../../src/base/addr.js';
import { RsptraceError } from '../../src/base/errors.js';
import {
  CallFrames,
  DebugInfo,
  DieCursor,
  DW_AT,
  DW_TAG,
  functionName,
  layoutOf,
  locationsOf,
  rangesOf,
  sizeOf,
  typeName,
} from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { addressesNamed } from '../support/addresses-named.js';
import { run } from '../support/dwarfdump.js';
import { long } from '../support/long.js';
import { damage, randomOf, type Sample, sampleOf } from '../support/mutations.js';
import { bytesOf, compile, scratch } from '../support/small-programs.js';

const TIMES = long ? 10 : 0.01;
const FIRST = Number(process.env.RSPTRACE_FUZZ_SEED ?? 0);
const folder = scratch();

function smallSamples(): Sample[] {
  const gcc: [string, string[]][] = [
    ['gcc-2', ['-gdwarf-2', '-gstrict-dwarf']],
    ['gcc-4', ['-gdwarf-4', '-fdebug-types-section']],
    ['gcc-5', ['-gdwarf-5']],
    ['gcc-5-types', ['-gdwarf-5', '-fdebug-types-section', '-O0']],
  ];
  const built = gcc.map(([name, flags]) => sampleOf(name, bytesOf(compile(folder, name, flags))));
  built.push(sampleOf('gcc-zlib', bytesOf(compile(folder, 'gcc-zlib', ['-gdwarf-4', '-gz=zlib']))));
  for (const name of ['tiny4', 'tiny5']) {
    const packed = readFileSync(join(import.meta.dirname, 'tiny', `${name}.elf.br`));
    built.push(sampleOf(name, new Uint8Array(brotliDecompressSync(packed))));
  }
  return built;
}

function guestSample(name: string): Sample {
  const path = join(folder, name);
  const objcopy = name.startsWith('rv') ? 'riscv64-linux-gnu-objcopy' : 'objcopy';
  run(objcopy, '--compress-debug-sections=none', elfPath(name), path);
  return sampleOf(name, bytesOf(path));
}

/** Everything that a caller would ask of a file. Returns how much there was. */
function readAll(bytes: Uint8Array): { futures: number; types: number; functions: number; lines: number } {
  const found = { futures: 0, types: 0, functions: 0, lines: 0 };
  const elf = ElfFile.parse(bytes, 'fuzzed.elf');
  try {
    return readElf(elf, found);
  } finally {
    const { work, memory } = elf.budget.used;
    most = { work: Math.max(most.work, work), memory: Math.max(most.memory, memory) };
  }
}

/** The largest parts of the budget that any file has used since {@link fuzz} began. */
let most = { work: 0, memory: 0 };

function readElf(elf: ElfFile, found: ReturnType<typeof readAll>): ReturnType<typeof readAll> {
  void elf.buildId;
  let asked = 0;
  for (const symbol of elf.symbols) {
    if (asked++ > 200) break;
    elf.symbols.allAt(symbol.address);
    elf.symbols.named(symbol.name);
  }
  const frames = CallFrames.load(elf);
  const debug = DebugInfo.load(elf);
  for (const future of findFutures(debug).all) {
    void [future.future, future.file, future.crate, future.states.length];
    for (const poll of future.polls) debug.frameAt(poll.address);
    found.futures++;
  }
  for (const unit of debug.units) debug.attempt(unit, () => readUnit(debug, unit, found));
  asked = 0;
  for (const symbol of elf.symbols) {
    if (asked++ > 50) break;
    for (const at of [symbol.address, addOffset(symbol.address, 9)]) {
      frames.rowAt(at);
      if (debug.frameAt(at).position !== undefined) found.lines++;
    }
    addressesNamed(debug, symbol.name);
  }
  return found;
}

/** The first entries of a unit, each asked for what its kind has. */
function readUnit(
  debug: DebugInfo,
  unit: DebugInfo['units'][number],
  found: { types: number; functions: number },
): void {
  debug.lineTable(unit);
  const cursor = DieCursor.of(unit);
  for (let count = 0; count < 300 && cursor.next(); count++) {
    switch (cursor.tag) {
      case DW_TAG.structure_type:
      case DW_TAG.union_type: {
        const die = cursor.die();
        found.types += layoutOf(die).members.length;
        if (die.name !== undefined && count % 4 === 0) debug.typesNamed(die.name);
        typeName(die);
        break;
      }
      case DW_TAG.subprogram:
        found.functions += rangesOf(cursor).length;
        if (count % 4 === 0) debug.functionsNamed(functionName(cursor.die()));
        break;
      case DW_TAG.variable:
      case DW_TAG.formal_parameter:
        locationsOf(cursor, DW_AT.location);
        sizeOf(cursor.follow(DW_AT.type));
        break;
    }
  }
}

/** Damages the sample `runs` times. Returns how often it could still be read. */
function fuzz(sample: Sample, runs: number): { readonly read: number; readonly most: typeof most } {
  let read = 0;
  most = { work: 0, memory: 0 };
  for (let number = FIRST; number < FIRST + runs; number++) {
    const bytes = damage(sample, randomOf(number));
    try {
      readAll(bytes);
      read++;
    } catch (error) {
      if (!(error instanceof RsptraceError)) {
        throw new Error(`${sample.name}, case ${number}: ${error instanceof Error ? error.stack : error}`, {
          cause: error,
        });
      }
    }
  }
  return { read, most };
}

// Garbage that waits for its collection counts too, so this is far above what one file takes, and far below what a size taken
// from a damaged header would.
const MAX_GROWTH_KB = 600_000;
/** Of the budget: what random damage comes to, with some room. Files made to cost more are in budget.test.ts. */
const MOST_WORK = 0.5;

function usedText({ work, memory }: typeof most): string {
  return `at most ${(100 * work).toFixed(1)} % of the work and ${(100 * memory).toFixed(1)} % of the memory`;
}

t.test('small programs', async (t) => {
  const samples = smallSamples();
  const rust = new Map([
    ['tiny4', 3],
    ['tiny5', 3],
  ]);
  for (const sample of samples) {
    const whole = readAll(sample.bytes);
    t.equal(whole.futures, rust.get(sample.name) ?? 0, `${sample.name}: undamaged, all of it is read`);
    t.ok(whole.types >= 7 && whole.functions >= 3 && whole.lines >= 4, JSON.stringify(whole));
  }
  const before = process.resourceUsage().maxRSS;
  const runs = Math.ceil((20_000 * TIMES) / samples.length);
  for (const sample of samples) {
    const { read, most } = fuzz(sample, runs);
    t.comment(`${sample.name}: ${runs} cases, ${read} still read, ${usedText(most)}`);
    t.ok(read > runs / 3, 'most damage leaves something to read');
    t.ok(most.work < MOST_WORK, `${usedText(most)}: damage makes no file costly`);
  }
  t.ok(process.resourceUsage().maxRSS - before < MAX_GROWTH_KB, 'in bounded memory');
});

t.test('whole guests', async (t) => {
  const before = process.resourceUsage().maxRSS;
  for (const name of ['rv-o2', 'rv-o2-dwarf5', 'x86-o2']) {
    const sample = guestSample(name);
    t.equal(readAll(sample.bytes).futures, 33);
    const { read, most } = fuzz(sample, Math.ceil(60 * TIMES));
    t.comment(`${name}: ${read} still read, ${usedText(most)}`);
    t.ok(most.work < MOST_WORK, `${usedText(most)}: damage makes no file costly`);
  }
  t.ok(process.resourceUsage().maxRSS - before < MAX_GROWTH_KB, 'in bounded memory');
});
