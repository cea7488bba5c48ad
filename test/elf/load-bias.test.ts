// A position-independent program at the addresses where a loader puts it: all that the debug info says, against binutils' word for the same
// place in the file.
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { addOffset, addr } from '../../src/base/addr.js';
import { CallFrames, DebugInfo, rangesOf, staticAddress } from '../../src/dwarf/index.js';
import { codePointers, ElfFile } from '../../src/elf/index.js';
import { variablesAt } from '../../src/values/index.js';
import { addressesNamed } from '../support/addresses-named.js';
import { compileC, symbolOf } from '../support/native.js';

const SOURCE = `
int counter = 5;
static int only_here = 7;
__attribute__((noinline)) int twice(int x) { counter += x; return only_here + x * 2; }
__attribute__((noinline)) int thrice(int x) { int kept = twice(x); return kept * 3 + twice(kept); }
int (*table[])(int) = { twice, thrice };
int main(int count, char **args) { only_here = count; return table[count & 1](count); }
`;
/** Where Linux puts programs, where it puts them under Sv57 and five-level paging, and where nobody does. */
const biases = [0x5555_5555_4000n, 0x00aa_aaaa_aaaa_a000n, 0xff10_0000_0000_1000n, (1n << 63n) - 0x1000n];

/** `file:line` of a function, as binutils says. */
function lineOf(program: string, name: string): string | undefined {
  const at = symbolOf(program, name).toString(16);
  return execFileSync('addr2line', ['-e', program, at], { encoding: 'utf8' }).trim().split(' ')[0];
}

for (const flags of [
  ['-gdwarf-5'],
  ['-gdwarf-4'],
  ['-gdwarf-5', '-O2'],
  ['-gdwarf-5', '-fno-asynchronous-unwind-tables'],
  ['-gdwarf-5', '-Wl,-z,pack-relative-relocs'],
]) {
  t.test(flags.join(' '), async (t) => {
    const program = compileC(t, SOURCE, ['-pie', '-fPIE', ...flags]);
    const linked = await ElfFile.open(program);
    const lines = new Map(['twice', 'thrice', 'main'].map((name) => [name, lineOf(program, name)]));
    for (const bias of biases) {
      const elf = linked.loadedAt(bias);
      const debug = DebugInfo.load(elf);
      const at = (name: string): bigint => symbolOf(program, name) + bias;
      t.equal(elf.entry, at('_start'));
      t.equal(elf.symbols.at(addr(at('thrice')))?.name, 'thrice');
      for (const name of ['twice', 'thrice', 'main']) {
        t.equal(debug.functionAt(addr(at(name)))?.name, name);
        t.equal(debug.functionAt(symbolOf(program, name)), undefined, 'nothing is where the file says');
        t.same(addressesNamed(debug, name), [at(name)]);
        const [die] = debug.functionsNamed(name);
        t.equal(die && rangesOf(die)[0]?.low, elf.codes.toCode(at(name)));
        const found = debug.lineAt(addr(at(name)));
        t.equal(`${found?.file}:${found?.line}`, lines.get(name));
      }
      for (const name of ['counter', 'only_here']) {
        const [die] = debug.variablesNamed(name);
        t.equal(die && staticAddress(die), at(name), name);
      }
      const parameters = variablesAt(debug, addOffset(addr(at('thrice')), 0));
      t.ok(
        parameters.some(({ name }) => name === 'x'),
        'a location list holds',
      );

      const frames = CallFrames.load(elf);
      t.ok(frames.rowAt(addr(at('thrice'))), 'call frame information');
      t.equal(frames.rowAt(symbolOf(program, 'thrice')), undefined);

      const words = new DataView((elf.bytesAt(addr(at('table')), 16) ?? new Uint8Array(16)).slice().buffer);
      t.same(
        [words.getBigUint64(0, true), words.getBigUint64(8, true)],
        [at('twice'), at('thrice')],
        'relocated pointers',
      );
      const kept = new Set<number>();
      codePointers(elf, (code) => kept.add(code));
      t.same(
        ['twice', 'thrice'].map((name) => kept.has(elf.codes.toCode(at(name)))),
        [true, true],
      );
      // Cut through the middle of both.
      const cut = elf.bytesAt(addr(at('table') + 3n), 10) ?? new Uint8Array(0);
      const whole = elf.bytesAt(addr(at('table')), 16) ?? new Uint8Array(0);
      t.same([...cut], [...whole.subarray(3, 13)]);
      const code = elf.bytesAt(addr(at('main')), 16);
      t.same(code, linked.bytesAt(symbolOf(program, 'main'), 16));
    }
  });
}

// Linked so far out, and in two parts: the way up to it, and what it is for.
for (const flags of [
  ['-gdwarf-5'],
  ['-gdwarf-4'],
  ['-gdwarf-4', '-ffunction-sections'],
  ['-gdwarf-5', '-ffunction-sections'],
]) {
  t.test(`linked beyond 2^53, ${flags.join(' ')}`, async (t) => {
    const source = SOURCE.replace(
      'int main(',
      '__attribute__((section(".boot"))) int boot(void) { return 1; }\nint main(',
    );
    const far = ['-no-pie', '-static', '-nostdlib', '-mcmodel=large', '-fno-pic', '-fno-asynchronous-unwind-tables'];
    const places = ['-Wl,-Ttext-segment=0xff10000080000000', '-Wl,--section-start=.boot=0x100000', '-Wl,-e,main'];
    const program = compileC(t, source, [...far, ...places, '-O2', '-fno-inline', ...flags]);
    const elf = await ElfFile.open(program);
    const debug = DebugInfo.load(elf);
    const frames = CallFrames.load(elf);
    t.same(frames.warnings, []);
    for (const name of ['twice', 'thrice', 'main', 'boot']) {
      const address = symbolOf(program, name);
      t.equal(address > 1n << 63n, name !== 'boot');
      t.equal(elf.symbols.at(address)?.name, name);
      t.equal(debug.functionAt(address)?.low, address);
      t.equal(debug.functionAt(address)?.name, name);
      t.same(addressesNamed(debug, name), [address]);
      t.ok(frames.rowAt(address), 'call frame information');
      const line = execFileSync('addr2line', ['-e', program, address.toString(16)], { encoding: 'utf8' });
      const found = debug.lineAt(address);
      t.equal(`${found?.file}:${found?.line}`, line.trim().split(' ')[0]);
    }
    const [static_] = debug.variablesNamed('only_here');
    t.equal(static_ && staticAddress(static_), symbolOf(program, 'only_here'));
    const word = elf.bytesAt(symbolOf(program, 'table'), 8);
    t.equal(word && new DataView(word.buffer, word.byteOffset).getBigUint64(0, true), symbolOf(program, 'twice'));
  });
}
