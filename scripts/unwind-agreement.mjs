#!/usr/bin/env node
// Compares code analysis with call frame information at every instruction of ELFs, and prints a report in Markdown.
//   scripts/unwind-agreement.mjs                 the guests: what docs/internals/unwind-agreement.md shows
//   scripts/unwind-agreement.mjs ELF...          these, e.g. a vmlinux with debug info (riscv64 or x86_64)
// Needs dist/ (npm run build) and, without arguments, the unpacked guests.
import { basename } from 'node:path';
import { architectureOf } from '../dist/arch/index.js';
import { CallFrames } from '../dist/dwarf/index.js';
import { ElfFile } from '../dist/elf/index.js';
import { findGuest, readManifest, unpack } from '../test/qemu/guests/store.mjs';
import { compare } from '../test/target/unwind/agreement.mjs';

const given = process.argv.slice(2);
const paths = given.length > 0 ? given : readManifest().map(({ name }) => unpack(findGuest(name)));
const results = [];
for (const path of paths) {
  const elf = await ElfFile.open(path);
  const arch = architectureOf(elf.machine);
  if (arch === undefined) throw new Error(`${path} is for another architecture`);
  await arch.prepare();
  const cfi = CallFrames.load(elf);
  const name = basename(path, '.elf');
  results.push({ name, ...compare({ cfi, model: arch.frames, elf }) });
}

const percent = (part, whole) => (whole === 0 ? '-' : `${((100 * part) / whole).toFixed(3)} %`);
const row = (...cells) => console.log(`| ${cells.join(' | ')} |`);

console.log('| ELF | functions | instructions | agree | `sure` | `likely` | `guess` |');
console.log('|---|---|---|---|---|---|---|');
for (const { name, functions, instructions, agree, confidence } of results) {
  const of = (level) => {
    const { agree: yes = 0, differ = 0 } = confidence[level] ?? {};
    return yes + differ === 0 ? '-' : `${differ} of ${yes + differ} differ`;
  };
  row(name, functions, instructions, percent(agree, instructions), of('sure'), of('likely'), of('guess'));
}
console.log('\nThe rest by cause:\n');
console.log('| cause | ELF | instructions | for example |');
console.log('|---|---|---|---|');
for (const { name, causes } of results) {
  for (const [cause, { count, examples }] of Object.entries(causes)) {
    row(cause, name, count, examples.slice(0, 3).join(' '));
  }
}
