// Programs whose code is none of a compiler's: what a step, a stop or memory of ours would change there.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);
const output = ['-o', join(folder, 'out.pftrace'), '--force', '--json'];
const build = (name: string, source: string, flags = '-g -O1 -x c'): string => {
  const program = join(folder, name);
  execFileSync('gcc', [...flags.split(' '), '-o', program, '-', '-lstdc++'], { input: source });
  return program;
};

interface Report {
  readonly functions: readonly { readonly function: string; readonly calls: number; readonly at_least: boolean }[];
}

const calls = (stdout: string): readonly (readonly [string, number, boolean])[] =>
  (JSON.parse(stdout) as Report).functions.map(({ function: name, calls, at_least }) => [name, calls, at_least]);

const stepped = build(
  'stepped',
  `#include <stdlib.h>
__asm__(".globl flags, fill\\n.type flags,@function\\n.type fill,@function\\n"
  "flags: pushfq\\n pop %rax\\n ret\\n.size flags,.-flags\\n"
  "fill: rep stosb\\n ret\\n.size fill,.-fill\\n");
long flags(void);
char buffer[4096];
static void set(char *to, long count) { asm volatile("call fill" : "+D"(to), "+c"(count) : "a"(1L) : "memory"); }
int main(void) {
  for (int i = 0; i < 3; i++) if (flags() & 0x100) return 1;
  set(buffer, 3); set(buffer, 1000);
  for (int i = 0; i < 1001; i++) if (buffer[i] != (i < 1000)) return 2;
  return 0;
}`,
);

t.test('a step sets no flag that the program sees, and goes through an instruction that repeats itself', async (t) => {
  const { status, stdout, stderr } = await rsptrace(
    ...['run', ...output, '--engine', 'stop', '-p', 'fn:flags', '-p', 'fn:fill', stepped],
  ).ended;
  t.equal(status, 0, stderr);
  t.same(calls(stdout), [
    ['fill', 2, false],
    ['flags', 3, false],
  ]);
});

const heap = build(
  'heap',
  `#include <unistd.h>
volatile int jobs;
__attribute__((noinline)) void job(void) { jobs++; }
int main(void) {
  for (int i = 0; i < 256; i++) { job(); if (sbrk(1 << 20) == (void *)-1) return 1; }
  return 0;
}`,
  '-g -O1 -no-pie -x c',
);

t.test('a program that is not position-independent has room for its heap', async (t) => {
  const { status, stdout, stderr } = await rsptrace(...['run', ...output, '--engine', 'target', '-p', 'fn:job', heap])
    .ended;
  t.equal(status, 0, stderr);
  t.same(calls(stdout), [['job', 256, false]]);
});
