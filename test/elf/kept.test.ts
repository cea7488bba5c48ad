// What passes over debug info have found is kept for the next time. Expected values come from a reading that keeps
// nothing; whether a pass took place, from the work that the budget counts.
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { findFutures } from '../../src/async/futures/index.js';
import { addr } from '../../src/base/addr.js';
import { DebugInfo, DW_TAG, pathOf } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { Kept } from '../../src/elf/kept.js';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder } from '../support/command.js';
import { pollsProgram } from '../support/native.js';
import { scratch } from '../support/small-programs.js';

const folder = scratch();
const path = elfPath('rv-o0');

/** What a start reads: types by name, Futures, a function at an address; and the work that this took. */
async function read(): Promise<{ found: unknown; work: number }> {
  const elf = await ElfFile.open(path);
  const debug = DebugInfo.load(elf);
  const futures = findFutures(debug).all.map(({ future, size, states, polls, inlined, vtables }) => {
    return [future, size, states.length, polls.map(({ address }) => address), inlined.length, vtables];
  });
  const types = debug.typesNamed('Option').map((die) => [die.offset, pathOf(die).join('::')]);
  const functions = debug.functionsNamed('main').map((die) => [die.offset, die.tag === DW_TAG.subprogram]);
  const at = debug.functionAt(elf.entry)?.name;
  return { found: { futures, types, functions, at, warnings: debug.warnings }, work: elf.budget.used.work };
}

const files = (): string[] => readdirSync(folder).map((name) => join(folder, name));

t.test('what was kept is what is read, and is not read anew; a file that is damaged is', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  process.env.RSPTRACE_CACHE = 'off';
  const plain = await read();
  process.env.RSPTRACE_CACHE = folder;
  const first = await read();
  t.same(first.found, plain.found);
  t.same(
    files()
      .map((file) => file.replace(/.*-/, ''))
      .sort(),
    ['futures', 'inlined', 'merged', 'names', 'polls', 'ranges', 'scopes'],
  );
  const kept = await read();
  t.same(kept.found, plain.found);
  t.ok(kept.work < plain.work / 2, `${kept.work} of ${plain.work}`);
  for (const spoil of [flipped, cut, () => Buffer.alloc(0)]) {
    for (const file of files()) writeFileSync(file, spoil(readFileSync(file)));
    const again = await read();
    t.same(again.found, plain.found, `${spoil.name}: nothing of it is used`);
    t.ok(again.work > plain.work / 2);
    t.equal((await read()).work, kept.work, 'it was kept anew');
  }
});

t.test('a program that its loader puts elsewhere each time', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  const file = await ElfFile.open(pollsProgram(t, 'polls'));
  const code = [...file.symbols].filter(({ type, size }) => type === 'function' && size > 0);
  const functions = (bias: bigint) => {
    const debug = DebugInfo.load(file.loadedAt(bias));
    return code.map(({ address }) => debug.functionAt(addr(address + bias))?.name);
  };
  process.env.RSPTRACE_CACHE = 'off';
  const plain = functions(0n);
  t.ok(plain.filter((name) => name !== undefined).length > 100);
  process.env.RSPTRACE_CACHE = scratchFolder(t);
  for (const bias of [0x5555_5555_4000n, 0n, 0x7f00_0000_0000n]) t.same(functions(bias), plain, bias.toString(16));
});

t.test('columns of which one is empty', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  process.env.RSPTRACE_CACHE = scratchFolder(t);
  const kept = Kept.of(await ElfFile.open(path));
  const columns = [Uint32Array.of(1, 2, 3), Float64Array.from([]), new Uint8Array(0), Float64Array.of(0.5)];
  kept?.write('columns', columns);
  t.same(kept?.read('columns'), columns);
});

t.test('a folder that cannot be made: nothing is kept, and the rest is as ever', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  process.env.RSPTRACE_CACHE = 'off';
  const plain = await read();
  for (const folder of ['/proc/rsptrace', '/etc/passwd/rsptrace']) {
    process.env.RSPTRACE_CACHE = folder;
    t.same((await read()).found, plain.found);
  }
});

t.test('more than 500 MB are not kept: what was used last stays', async (t) => {
  t.teardown(() => {
    delete process.env.RSPTRACE_CACHE;
  });
  process.env.RSPTRACE_CACHE = folder;
  await read();
  const [old, foreign] = ['old', 'trace'].map((name) => join(folder, name)) as [string, string];
  const begin = readFileSync(files()[0] as string).subarray(0, 100);
  for (const [file, content] of [
    [old, begin],
    [foreign, 'of somebody else'],
  ] as const) {
    writeFileSync(file, content);
    truncateSync(file, 501e6);
    utimesSync(file, 1, 1);
  }
  for (const file of files()) if (file.endsWith('-names')) writeFileSync(file, '');
  await read();
  t.equal(statSync(foreign).size, 501e6, 'what others have in the folder stays');
  rmSync(foreign);
  t.same(
    files()
      .map((file) => file.replace(/.*-/, ''))
      .sort(),
    ['futures', 'inlined', 'merged', 'names', 'polls', 'ranges', 'scopes'],
  );
  t.ok(files().every((file) => statSync(file).size < 1e6));
});

function flipped(file: Buffer): Buffer {
  file.writeUInt8(file.readUInt8(file.length >> 1) ^ 4, file.length >> 1);
  return file;
}

function cut(file: Buffer): Buffer {
  return file.subarray(0, file.length - 4);
}

t.test('a program that was changed in place is another one, although it has the same build id', (t) => {
  const bytes = readFileSync('/bin/true');
  const elf = ElfFile.parse(bytes, 'true');
  t.match(elf.buildId, /^[0-9a-f]+$/);
  t.same(ElfFile.parse(Buffer.from(bytes), 'true').identity(), elf.identity());
  for (const name of ['.text', '.rodata']) {
    const changed = Buffer.from(bytes);
    const at = elf.sections.find((section) => section.name === name)?.offset ?? 0;
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    const other = ElfFile.parse(changed, 'true');
    t.equal(other.buildId, elf.buildId);
    t.notSame(other.identity(), elf.identity(), name);
  }
  t.end();
});
