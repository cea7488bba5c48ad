// What a thread's context is part of, in a program whose source says so.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { addOffset } from '../../../src/base/addr.js';
import { DebugInfo } from '../../../src/dwarf/index.js';
import { ElfFile } from '../../../src/elf/index.js';
import { Holders } from '../../../src/probes/kinds/switches/holders.js';
import { ThreadNames } from '../../../src/probes/kinds/switches/names.js';
import { scratchFolder } from '../../support/command.js';

const one = `
struct context { long sp, ra; };
struct thread { int pid; char name[12]; struct context context; };
static struct thread table[4];
struct { long id; struct thread idle; struct context own; } scheduler;
struct { unsigned long id; struct context own; } large;
struct { double id; struct context own; } real;
void *kept[] = { table, &scheduler, &large, &real };
int main(void) { return 0; }`;
const other = `
struct context { long sp, ra; };
struct worker { char name[16]; long unused, tid; struct context context; };
static struct worker table[2];
void *others[] = { table };`;

t.test('tables of one name in two files, and a thread inside of what has a number, too', async (t) => {
  const folder = scratchFolder(t);
  const [first, second, program] = ['one.c', 'other.c', 'program'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(first, one);
  writeFileSync(second, other);
  execFileSync('gcc', ['-g', '-no-pie', '-o', program, first, second]);
  const elf = await ElfFile.open(program);
  const holders = new Holders(elf, DebugInfo.load(elf));
  const found = (name: string, size: number, offset: number): unknown[] => {
    const symbol = [...elf.symbols].find((each) => each.name === name && each.size === size);
    if (!symbol) throw new Error(`no ${name}`);
    const { base = symbol.address, place, fields } = holders.of(addOffset(symbol.address, offset)) ?? {};
    return [place, Number(base - symbol.address), fields?.number?.offset, fields?.name?.offset];
  };
  // Four threads of 32 bytes, and two workers of 48.
  t.strictSame(found('table', 128, 64 + 16), ['table[2]', 64, 0, 4]);
  t.strictSame(found('table', 96, 48 + 32), ['table[1]', 48, 24, 0]);
  t.strictSame(found('scheduler', 56, 8 + 16), ['scheduler.idle.context', 8, 0, 4]);
  t.strictSame(found('scheduler', 56, 8 + 32), ['scheduler.own', 0, 0, undefined]);
  const names = new ThreadNames(elf, DebugInfo.load(elf));
  const called = (name: string): string => {
    const [symbol] = [...elf.symbols].filter((each) => each.name === name);
    if (!symbol) throw new Error(`no ${name}`);
    const memory = { at: () => ({ bytes: new Uint8Array(8).fill(0xff) }) };
    return names.of(addOffset(symbol.address, 8), memory as never).name;
  };
  t.equal(called('large'), '18446744073709551615 (large.own)');
  t.equal(called('real'), 'real.own', 'no number of a thread');
});
