// Many functions armed at once: milliseconds from the connection until the target runs with all of them in, each time in a process of its own, as a
// command would be. The programs are made for it: so many functions of some twenty instructions, which are called in turn for ever.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { folder } from '../bench-lib.mjs';
import { build, row, timed } from './common.mjs';

/**
 * A kernel in M-mode. The assembler's debug info says that its functions take no arguments; they begin with nops to be patched, as Linux's do, since
 * the memory for trampolines is far from them.
 */
function kernel(count) {
  const one = (i) => `
    .globl f${i}
    .type f${i}, @function
f${i}:
    .4byte 0x13, 0x13
    addi sp, sp, -32
    sd ra, 24(sp)
    sd s0, 16(sp)
    mv s0, a0
    li a5, ${i}
    bltz s0, 1f
    add a0, a0, a5
    slli a4, a0, 3
    xor a0, a0, a4
    andi a4, a0, 15
    beqz a4, 2f
1:  addi a0, a0, ${i % 2000}
    srli a4, a0, 7
    or a0, a0, a4
2:  sub a0, a0, s0
    and a4, a5, a0
    add a0, a0, a4
    ld s0, 16(sp)
    ld ra, 24(sp)
    addi sp, sp, 32
    ret
    .size f${i}, . - f${i}`;
  const numbers = Array.from({ length: count }, (_, i) => i);
  const text = `    .option norelax
    .text
    .globl _start
_start:
    la sp, top
0:
${numbers.map((i) => `    call f${i}`).join('\n')}
    la t0, 0b
    jr t0
${numbers.map(one).join('')}
    .bss
    .skip 4096
top:
`;
  const [source, object, elf] = ['s', 'o', 'elf'].map((end) => join(folder, `functions.${end}`));
  writeFileSync(source, text);
  build('riscv64-linux-gnu-as', ['-g', '-march=rv64imac_zicsr_zifencei', '-o', object, source]);
  build('riscv64-linux-gnu-ld', ['--no-warn-rwx-segments', '-Ttext=0x80000000', '-static', object, '-o', elf]);
  return elf;
}

/** A program for gdbserver, which leaves it running when it is killed: it ends with it. */
function program(count) {
  const one = (i) => `
N long f${i}(long a, long b) {
  if (a < ${i % 100}) sink += b ^ ${i};
  for (long i = a & 3; i < 4; i++) sink ^= i * b;
  return a + sink + ${i};
}`;
  const numbers = Array.from({ length: count }, (_, i) => i);
  // A table: one function that calls them all would keep the compiler busy.
  const table = numbers.map((i) => `f${i}`).join(', ');
  const text = `#include <signal.h>
#include <sys/prctl.h>
#define N __attribute__((noinline))
volatile long sink;
${numbers.map(one).join('')}
long (*volatile const all[])(long, long) = {${table}};
int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (long s = 0;;) for (long i = 0; i < ${count}; i++) s += all[i](s, i);
}
`;
  const elf = join(folder, 'functions');
  writeFileSync(`${elf}.c`, text);
  build('gcc', ['-g', '-O1', '-fcf-protection=none', '-no-pie', '-o', elf, `${elf}.c`]);
  return elf;
}

export async function arm({ rounds, functions }) {
  const targets = {
    'riscv64 QEMU': ['qemu', kernel(functions)],
    'x86_64 gdbserver': ['gdbserver', program(functions)],
  };
  const runs = Object.fromEntries(Object.keys(targets).map((name) => [name, []]));
  const once = resolve(import.meta.dirname, 'arm-once.mjs');
  for (let round = 0; round < rounds; round++) {
    for (const [name, target] of Object.entries(targets)) {
      const { status, stdout, stderr } = timed(process.execPath, [once, ...target]);
      if (status !== 0) throw new Error(stderr);
      runs[name].push(JSON.parse(stdout));
    }
  }
  for (const [name, list] of Object.entries(runs)) {
    const [{ installed, stopping }] = list;
    const refused = functions - installed - stopping;
    console.log(
      `arm, ${name}: ${installed} functions armed, ${stopping} with a stop, ${refused} for which there was no room`,
    );
    const of = (key) => list.map((run) => run[key]);
    row('from the connection to running', of('running'), 'ms');
    row('  of it until breakpoints are in', of('planted'), 'ms');
    row('  of it until the first is called', of('called'), 'ms');
    row("  rsptrace's CPU meanwhile", of('cpu'), 'ms');
    row('detaching', of('left'), 'ms');
  }
}
