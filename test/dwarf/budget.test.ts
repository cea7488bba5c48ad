// One budget for the whole of a file: what asks for more than its size allows ends in one error, before the work is done. Time is
// counted as work, so that the test says the same on every machine; memory is the process's own.
import t from 'tap';
import { findFutures } from '../../src/async/futures/index.js';
import { shortType } from '../../src/async/futures/short-names.js';
import { Budget } from '../../src/base/budget.js';
import { RsptraceError } from '../../src/base/errors.js';
import { CallFrames, DebugInfo, DieCursor, demangle, rangesOf, stripGenerics } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { namedFunctions } from '../../src/probes/function-names.js';
import { ProgramNames } from '../../src/values/index.js';
import { brokenSection, costlyElves, nested } from '../support/costly-elves.js';
import { long } from '../support/long.js';

/** The code of what was thrown, or `read`. */
function outcome(read: () => void): string {
  try {
    read();
    return 'read';
  } catch (error) {
    if (error instanceof RsptraceError) return error.code;
    throw error;
  }
}

/** What the commands ask of a program, each by itself: one that fails must not spare the next its error. */
function readEverything(elf: ElfFile): Set<string> {
  const codes = new Set([outcome(() => elf.symbols.named('none')), outcome(() => CallFrames.load(elf))]);
  for (const { name } of elf.sections) codes.add(outcome(() => elf.section(name)));
  let debug: DebugInfo | undefined;
  codes.add(
    outcome(() => {
      debug = DebugInfo.load(elf);
    }),
  );
  const known = debug;
  codes.add(outcome(() => [...namedFunctions(elf, known)]));
  if (known === undefined) return codes;
  codes.add(outcome(() => new ProgramNames(known).types('Aa')));
  codes.add(outcome(() => void findFutures(known).all));
  codes.add(
    outcome(() => {
      for (const unit of known.units) {
        known.lineTable(unit);
        known.attempt(unit, () => {
          for (const cursor = DieCursor.of(unit); cursor.next(); ) rangesOf(cursor);
        });
      }
    }),
  );
  return codes;
}

const MAX_GROWTH_KB = 350_000;

for (const [name, bytes] of costlyElves) {
  t.test(`${name}: over the budget, in bounded memory`, async (t) => {
    // A quarter of it without `--long`: who charges nothing meets none.
    if (!long) process.env.RSPTRACE_BUDGET = '0.25';
    t.teardown(() => delete process.env.RSPTRACE_BUDGET);
    const elf = ElfFile.parse(bytes(), `${name}.elf`);
    const before = process.resourceUsage().maxRSS;
    const codes = readEverything(elf);
    t.ok(codes.has('ELF_TOO_COSTLY'), [...codes].join(', '));
    t.throws(() => elf.budget.spend(0, 'anything'), { code: 'ELF_TOO_COSTLY' }, 'and nothing goes on after it');
    t.ok(process.resourceUsage().maxRSS - before < MAX_GROWTH_KB, 'memory');
  });
}

t.test('the error says what was read, of which file, and the way out', async (t) => {
  const bytes = new Map(costlyElves).get('symbols')?.() ?? new Uint8Array(0);
  t.throws(() => [...ElfFile.parse(bytes, 'k.elf').symbols], {
    code: 'ELF_TOO_COSTLY',
    message: 'reading the names of symbols of k.elf takes more work than a file of 560 KiB should need',
    hint: /set RSPTRACE_BUDGET=10 to allow ten times as much$/,
  });
});

t.test('a section that does not unpack is unpacked once', async (t) => {
  const elf = ElfFile.parse(brokenSection(), 'x');
  const thrown = [1, 2, 3].map(() => {
    try {
      return elf.section('.debug_str');
    } catch (error) {
      return error;
    }
  });
  t.match(thrown[0], { code: 'ELF_DAMAGED', message: /\.debug_str is damaged/ });
  t.equal(thrown[1], thrown[0], 'the same error');
  t.equal(thrown[2], thrown[0]);
});

t.test('a name that grows without end stays mangled, and is charged', async (t) => {
  const budget = new Budget('x', 0);
  t.equal(demangle(nested(1), budget), nested(1));
  t.ok(budget.used.work > 0.05, `${budget.used.work}`);
  t.equal(demangle('_RNvC7labkern4main', budget), 'labkern::main');
});

t.test('questions that come with events do not use the budget up', async (t) => {
  const budget = new Budget('x', 0);
  for (let i = 0; i < 100_000; i++) budget.answer(() => budget.spend(1000, 'answers'));
  t.equal(budget.used.work, 0);
  budget.answer(() => budget.answer(() => budget.spend(1_002_000, 'a table')));
  t.ok(budget.used.work > 0.049 && budget.used.work < 0.051, 'what is more than an answer is charged');
});

t.test('names for people are made in one pass', async (t) => {
  // Each took more than 10 s when it went over the name once for every letter.
  t.equal(shortType('a'.repeat(60_000)).length, 60_000);
  t.equal(stripGenerics('Aa<>'.repeat(15_000)), 'Aa'.repeat(15_000));
  t.equal(shortType('a::b<c::d::e, f>'), 'b<e, f>');
});
