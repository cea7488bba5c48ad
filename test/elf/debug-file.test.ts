// Debug info in a file of its own, as objcopy and gcc make it: by build id, by .gnu_debuglink, by name; and what is not read at all.
// The expected places are the ones that GDB's manual lists, and the same program with its debug info inside.
import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Logger } from '../../src/base/logger.js';
import { silent } from '../../src/base/logger.js';
import { DebugInfo, DW_AT, DW_TAG, DW_FORM as F } from '../../src/dwarf/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { enginePlan, prepare } from '../../src/record/index.js';
import { elfPath } from '../qemu/guests/guests.js';
import { addressesNamed } from '../support/addresses-named.js';
import { DwarfWriter } from '../support/dwarf-writer.js';
import { run } from '../support/dwarfdump.js';
import { writeElf } from '../support/elf-writer.js';
import { bytesOf, compile, scratch } from '../support/small-programs.js';

const folder = scratch();
const PACKAGE = ['.debug_info.dwo', '.debug_cu_index'].map((name) => ({ name, bytes: new Uint8Array(16) }));

/** A program without debug info, the file that has it, and the whole; the build id as readelf prints it. */
function split(name: string, flags: readonly string[], link: boolean) {
  const home = join(folder, name);
  mkdirSync(home);
  const whole = compile(home, 'whole', flags);
  const debug = join(home, 'program.debug');
  const program = join(home, 'program');
  run('objcopy', '--only-keep-debug', whole, debug);
  execFileSync('objcopy', ['--strip-all', ...(link ? [`--add-gnu-debuglink=program.debug`] : []), whole, program], {
    cwd: home,
  });
  const id = /Build ID: ([0-9a-f]+)/.exec(run('readelf', '-n', whole))?.[1];
  return { home, whole, debug, program, id };
}

function listening(): { readonly logger: Logger; readonly said: string[] } {
  const said: string[] = [];
  return { logger: { ...silent, warn: (_, message) => said.push(message) }, said };
}

/** All that the whole program and the two halves must agree on. */
function facts(elf: ElfFile): unknown {
  const debug = DebugInfo.load(elf);
  const [outer] = addressesNamed(debug, 'outer');
  if (outer === undefined) throw new Error('no outer');
  return {
    outer,
    symbols: [...elf.symbols].map((s) => `${s.name} ${s.address} ${s.size}`),
    functions: debug.frameAt(outer).functions.map((f) => [f.name, f.position]),
    types: debug.typesNamed('node').map((die) => die.number(DW_AT.byte_size)),
    code: [...(elf.bytesAt(outer, 16) ?? [])],
  };
}

t.test('by .gnu_debuglink: beside the program, in .debug, under a folder', async (t) => {
  const { home, whole, debug, program } = split('link', ['-Wl,--build-id=none'], true);
  const wanted = facts(await ElfFile.open(whole));
  const beside = await ElfFile.open(program);
  t.equal(beside.debugFiles[0], debug);
  t.equal(beside.buildId, undefined);
  t.strictSame(facts(beside), wanted);

  mkdirSync(join(home, '.debug'));
  renameSync(debug, join(home, '.debug', 'program.debug'));
  t.equal((await ElfFile.open(program)).debugFiles[0], join(home, '.debug', 'program.debug'));

  const far = join(folder, 'far');
  mkdirSync(join(far, home), { recursive: true });
  renameSync(join(home, '.debug', 'program.debug'), join(far, home, 'program.debug'));
  const lost = await ElfFile.open(program);
  t.equal(lost.debugFiles[0], undefined);
  t.throws(() => DebugInfo.load(lost), { code: 'DWARF_MISSING', hint: /moved to program\.debug .*--debug-file/ });
  const found = await ElfFile.open(program, { debugDirs: [join(folder, 'nowhere'), far] });
  t.equal(found.debugFiles[0], join(far, home, 'program.debug'));
  t.strictSame(facts(found), wanted);

  // One byte more: the CRC is another.
  copyFileSync(found.debugFiles[0] ?? '', debug);
  appendFileSync(debug, 'x');
  const { logger, said } = listening();
  t.equal((await ElfFile.open(program, { logger })).debugFiles[0], undefined);
  t.match(said, [/program\.debug is not used as the debug file: its CRC is not the one in \.gnu_debuglink/]);
  await t.rejects(ElfFile.open(program, { debugFile: debug }), { code: 'DEBUG_FILE_MISMATCH', message: /CRC/ });
  // A file that is no ELF at all.
  writeFileSync(debug, 'not an ELF');
  t.equal((await ElfFile.open(program, listening())).debugFiles[0], undefined);
  await t.rejects(ElfFile.open(program, { debugFile: debug }), { code: 'ELF_NOT_ELF' });
  await t.rejects(ElfFile.open(program, { debugFile: join(folder, 'none') }), { code: 'ELF_UNREADABLE' });
});

t.test('by build id', async (t) => {
  const { whole, debug, program, id } = split('id', ['-Wl,--build-id=sha1'], false);
  t.match(id, /^[0-9a-f]{40}$/);
  const dir = join(folder, 'system');
  const place = join(dir, '.build-id', id?.slice(0, 2) ?? '', `${id?.slice(2)}.debug`);
  mkdirSync(join(place, '..'), { recursive: true });
  copyFileSync(debug, place);
  const found = await ElfFile.open(program, { debugDirs: [dir] });
  t.equal(found.debugFiles[0], place);
  t.equal(found.buildId, id);
  t.strictSame(facts(found), facts(await ElfFile.open(whole)));
  // Named, and of another build.
  t.equal((await ElfFile.open(program, { debugFile: debug })).debugFiles[0], debug);
  const other = split('other', ['-Wl,--build-id=sha1', '-O1'], false);
  await t.rejects(ElfFile.open(program, { debugFile: other.debug }), {
    code: 'DEBUG_FILE_MISMATCH',
    message: new RegExp(`its build id is ${other.id}, the program's is ${id}`),
  });
  copyFileSync(other.debug, place);
  const { logger, said } = listening();
  t.equal((await ElfFile.open(program, { debugDirs: [dir], logger })).debugFiles[0], undefined);
  t.equal(said.length, 1);
});

t.test('a guest whose debug info was moved is traced like the whole one', async (t) => {
  const whole = elfPath('rv-o2');
  const [debug, program] = [join(folder, 'rv.debug'), join(folder, 'rv')];
  run('riscv64-linux-gnu-objcopy', '--only-keep-debug', whole, debug);
  run('riscv64-linux-gnu-objcopy', '--strip-all', whole, program);
  const probes = async (path: string, files = {}): Promise<unknown> =>
    enginePlan(await prepare(path, [], silent, files)).plans.map(({ address, name }) => [address, name]);
  t.strictSame(await probes(program, { debugFile: debug }), await probes(whole));
  await t.rejects(probes(program), { code: 'DWARF_MISSING' });
});

t.test('split files without their program and supplementary files are said, not guessed', async (t) => {
  const home = join(folder, 'dwo');
  mkdirSync(home);
  compile(home, 'program', ['-gsplit-dwarf']);
  const dwo = readdirSync(home).find((name) => name.endsWith('.dwo'));
  t.throws(() => DebugInfo.load(ElfFile.parse(bytesOf(join(home, dwo ?? '')), 'x.dwo')), {
    code: 'DWARF_SPLIT',
    message: 'x.dwo is a .dwo file: split debug info without its program',
  });
  t.throws(() => DebugInfo.load(ElfFile.parse(writeElf({ sections: PACKAGE }), 'x.dwp')), {
    code: 'DWARF_SPLIT',
    message: /is a \.dwp package/,
  });
  // A skeleton beside a whole unit: the whole one is used.
  const writer = new DwarfWriter();
  const dwoName = [[DW_AT.dwo_name, F.string, 'gone.dwo']] as const;
  writer.unit({ version: 5, unitType: 4, root: { tag: DW_TAG.skeleton_unit, attributes: dwoName }, dwoId: 7n });
  const whole = { tag: DW_TAG.base_type, attributes: [[DW_AT.name, F.string, 'u32']] } as const;
  writer.unit({ version: 5, root: { tag: DW_TAG.compile_unit, children: [whole] } });
  const alt = { name: '.gnu_debugaltlink', bytes: Buffer.from('/usr/lib/debug/.dwz/shared.debug\0id') };
  const debug = DebugInfo.load(ElfFile.parse(writer.elf([alt]), 'mixed.elf'));
  t.equal(debug.typesNamed('u32').length, 1);
  t.match(debug.warnings, [
    /^1 of 2 units of mixed\.elf have their debug info in \.dwo files, which were not found \(gone\.dwo, \.\.\.\)/,
    /^mixed\.elf shares debug info with the supplementary file \/usr\/lib\/debug\/\.dwz\/shared\.debug, which is not read/,
  ]);
});
