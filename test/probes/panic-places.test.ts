// Which functions that panic have a breakpoint: those that a panic does not come by with its caller still known.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { architectureOf } from '../../src/arch/index.js';
import { ElfFile } from '../../src/elf/index.js';
import { panicPlaces } from '../../src/probes/panic-places.js';
import { elfPath } from '../qemu/guests/guests.js';
import { scratchFolder } from '../support/command.js';

/** The symbols of the places, without what mangling adds. */
async function placesIn(path: string): Promise<string[]> {
  const elf = await ElfFile.open(path);
  const arch = architectureOf(elf.machine);
  if (!arch) throw new Error(`no architecture of ${path}`);
  await arch.prepare();
  return panicPlaces({ elf, arch, debug: undefined })
    .map((place) => elf.symbols.at(place)?.name.replace(/^.*?\d(?=[a-z_]+$)/, '') ?? '')
    .sort();
}

const panicking = (name: string): string => `_RNvNtCs_4core9panicking${name.length}${name}`;

/** An ELF of functions called `core::panicking::NAME`, and of others. */
function functions(t: Test, prefix: string, code: Readonly<Record<string, string>>): string {
  const folder = scratchFolder(t);
  const [object, elf] = [join(folder, 'a.o'), join(folder, 'a.elf')];
  const symbol = (name: string): string => (/^panic/.test(name) ? panicking(name) : name);
  const source = Object.entries(code).map(([name, text]) => {
    const body = text.replace(/\bpanic\w*/g, panicking);
    const at = symbol(name);
    return `.globl ${at}\n.type ${at}, @function\n${at}:\n${body}\n.size ${at}, .-${at}`;
  });
  execFileSync(`${prefix}as`, ['-o', object, '-'], { input: `.text\n${source.join('\n')}\n` });
  execFileSync(`${prefix}ld`, ['-e', '0', '-o', elf, object]);
  return elf;
}

const saves = 'addi sp, sp, -16; sd ra, 8(sp)';
const handler = { rust_begin_unwind: '1: j 1b' };

t.test('a function is left out if the caller is known at what it leads to', async (t) => {
  const kept = await placesIn(
    functions(t, 'riscv64-linux-gnu-', {
      ...handler,
      panic_fmt: `${saves}; call rust_begin_unwind`,
      panic_jumps: 'tail panic_fmt',
      panic_branches: `${saves}; bnez a0, 1f; call panic_fmt; 1: call panic_jumps`,
      between: `${saves}; call panic_fmt`,
      panic_deep: `${saves}; call between`,
      panic_first_calls: `${saves}; call helper; call panic_fmt`,
      helper: 'ret',
    }),
  );
  t.strictSame(kept, ['rust_begin_unwind']);
});

t.test('a function is kept if its caller is lost, or if it may end otherwise', async (t) => {
  const kept = await placesIn(
    functions(t, 'riscv64-linux-gnu-', {
      ...handler,
      panic_fmt: `${saves}; call rust_begin_unwind`,
      panic_unsaved: 'addi sp, sp, -16; call panic_fmt',
      panic_overwrites: `${saves}; bnez a0, 1f; sd zero, 8(sp); 1: call panic_fmt`,
      panic_aborts: `${saves}; bnez a0, 1f; call panic_fmt; 1: unimp`,
      panic_waits: `${saves}; bnez a0, 1f; call panic_fmt; 1: j 1b`,
      panic_returns: `${saves}; bnez a0, 1f; call panic_fmt; 1: ret`,
      panic_pointer: `${saves}; jalr a0`,
      panic_one: `${saves}; call panic_other`,
      panic_other: `${saves}; call panic_one`,
      ends: '1: j 1b',
      panic_elsewhere: `${saves}; call ends`,
    }),
  );
  const all = 'aborts elsewhere other overwrites pointer returns unsaved waits'.split(' ');
  // Of two that lead to each other, the one that was asked last.
  t.strictSame(kept, [...all.map((name) => `panic_${name}`), 'rust_begin_unwind']);
});

t.test('x86_64 always keeps the return address; calls may go through a word', async (t) => {
  const lab = await placesIn(elfPath('x86-faulty'));
  t.match(execFileSync('nm', [elfPath('x86-faulty')], { encoding: 'utf8' }), /4core9panicking9panic_fmt\n/);
  t.strictSame(lab, ['rust_begin_unwind']);
  const kept = await placesIn(
    functions(t, '', {
      ...{ rust_begin_unwind: '1: jmp 1b' },
      panic_fmt: 'subq $40, %rsp; call *word(%rip); int3',
      panic_moved: 'movq %rdi, %rsp; call panic_fmt',
      word: '.quad rust_begin_unwind',
    }),
  );
  t.strictSame(kept, ['panic_moved', 'rust_begin_unwind']);
});
