// What the code keeps of a call's arguments, compared with what debug info says of them where it says something.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { type Architecture, architectureOf } from '../../src/arch/index.js';
import { findFutures } from '../../src/async/futures/index.js';
import { addr } from '../../src/base/addr.js';
import { DebugInfo, type Die, DW_AT, DW_TAG, locationAt, rangesOf } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { FunctionGraphs, neverReturns } from '../../src/probes/function-graphs.js';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder } from '../support/command.js';

/** The DWARF number of the register that holds all of a parameter; undefined if it is not in one. */
function registerOf(parameter: Die, code: number): number | undefined {
  const [operation, ...more] = locationAt(parameter, DW_AT.location, code) ?? [];
  return operation !== undefined && more.length === 0 && operation >= 0x50 && operation < 0x70
    ? operation - 0x50
    : undefined;
}

interface Compared {
  agree: number;
  readonly wrong: string[];
}

function compare(debug: DebugInfo, arch: Architecture): Compared {
  const names = Array.from(
    { length: arch.frames?.registerCount ?? 0 },
    (_, number) => arch.dwarfRegister(number) ?? '',
  );
  const graphs = new FunctionGraphs(debug, arch);
  const found: Compared = { agree: 0, wrong: [] };
  const polls = findFutures(debug).all.flatMap((future) => future.polls);
  for (const { address } of polls) {
    const host = debug.functionAt(address)?.die;
    const graph = host && graphs.of(host);
    const [self] = [...(host?.children() ?? [])].filter((die) => die.tag === DW_TAG.formal_parameter);
    const entry = self && host && registerOf(self, rangesOf(host)[0]?.low ?? host.lowPc);
    if (!graph || !host || !self || entry === undefined) continue;
    for (const { address: at } of graph.steps) {
      const told = registerOf(self, host.unit.codes.toCode(addr(at)));
      if (told === undefined) continue;
      for (const [number, name] of names.entries()) {
        const same = graphs.kept(host, name, at).find(({ register }) => register === names[told]);
        if (same?.offset === 0 && number === entry) found.agree++;
        else if (same) found.wrong.push(`${host.name} at 0x${at.toString(16)}: ${name} in ${same.register}`);
      }
    }
  }
  return found;
}

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(name, async (t) => {
    const elf = await ElfFile.open(elfPath(name));
    const arch = architectureOf(elf.machine);
    if (!arch) throw new Error(`no architecture of ${name}`);
    await arch.prepare();
    const { agree, wrong } = compare(DebugInfo.load(elf), arch);
    t.strictSame(wrong, []);
    t.ok(agree > 1000, `${agree}`);
  });
}

t.test('frames of an ELF whose linker left out call frame information are those that this has', async (t) => {
  const without = join(scratchFolder(t), 'without.elf');
  execFileSync('riscv64-linux-gnu-objcopy', ['-R', '.debug_frame', elfPath('rv-locks-o2'), without]);
  const [told, derived] = await Promise.all([elfPath('rv-locks-o2'), without].map((path) => ElfFile.open(path)));
  const arch = told && architectureOf(told.machine);
  if (!told || !derived || !arch) throw new Error('no ELF');
  await arch.prepare();
  const debug = DebugInfo.load(told);
  const [expected, found] = [debug, DebugInfo.load(derived)].map((one) => new FunctionGraphs(one, arch));
  const hosts = [...told.symbols].flatMap(({ address }) => debug.functionAt(address)?.die ?? []);
  const places = hosts.flatMap((host) => expected?.of(host)?.steps.map(({ address }) => address) ?? []);
  const known = places.filter((at) => found?.frameAt(at) !== undefined);
  t.strictSame(
    known.map((at) => found?.frameAt(at)),
    known.map((at) => expected?.frameAt(at)),
  );
  t.ok(known.length > 0.9 * places.length, `${known.length} of ${places.length}`);
});

t.test("functions of a program's own return, although they are called as those of a library that do not", async (t) => {
  const own = ['_ZN6kernel7process5abort17h0123456789abcdefE', 'try_handle_alloc_error', '_Unwind_Resume_or_Rethrow'];
  const library = [
    '_ZN3std7process5abort17h0123456789abcdefE',
    '_RNvNtCsjrHSEGnQ3l9_3std7process5abort',
    '_RNvNtCsbzFhQ9P3Ot2_4core9panicking9panic_fmt',
    '_RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind',
    'rust_begin_unwind',
    '_Unwind_Resume',
  ];
  const names = [...own, ...library];
  const path = join(scratchFolder(t), 'names');
  const functions = names.map((name, i) => `void f${i}(void) __asm__("${name}"); void f${i}(void) {}`);
  execFileSync('gcc', ['-x', 'c', '-', '-o', path], {
    input: `${functions.join('\n')}\nint main(void) { f0(); return 7; }`,
  });
  t.equal(spawnSync(path).status, 7, 'main goes on behind a call of the first one');
  const elf = await ElfFile.open(path);
  const answers = names.map((name) => {
    const symbol = [...elf.symbols].find((one) => one.name === name);
    return symbol && neverReturns(elf, undefined, symbol.address);
  });
  t.same(answers, [...own.map(() => false), ...library.map(() => true)]);
});
