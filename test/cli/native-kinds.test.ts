// Programs that move control in ways of their own (test/native/kinds.c): they print what they print untraced, and their own counts are those
// of both engines: usually of trampolines, because test/cli/native-signals.test.ts has signals and traps with stops.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptraceProcess, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC, compileReleased } from '../support/native.js';

const program = compileReleased(t, 'kinds.c', ['-O1', '-mno-red-zone']);
const probes = ['job', 'outer', 'deep', 'peek'].flatMap((name) => ['-p', `fn:${name}`]);

async function unnoticed(t: Test, engine: string, ...words: readonly string[]): Promise<void> {
  const untraced = execFileSync(program, words, { encoding: 'utf8' });
  const [, calls = Number.NaN, children = 0] = (/calls (\d+) children (\d+)/.exec(untraced) ?? []).map(Number);
  const options = ['--engine', engine, '--json', '-o', join(scratchFolder(t), 'out.txt'), ...probes];
  const { status, stdout, stderr } = await rsptraceProcess('run', ...options, program, '--', ...words).ended;
  t.equal(status, 0, stderr.slice(-300));
  t.ok(stderr.includes(untraced), `${untraced}but: ${stderr}`);
  const { functions } = JSON.parse(stdout) as { functions: { function: string; calls: number }[] };
  const seen = functions.find(({ function: name }) => name === 'job')?.calls;
  // A child of vfork runs in its parent's memory: through trampolines, but past stops.
  t.equal(seen, engine === 'stop' ? calls - children : calls);
}

for (const engine of usually(['auto', 'stop'], (one) => one === 'auto'))
  t.test(`all of them, --engine ${engine}`, (t) => unnoticed(t, engine, '1'));

const kinds = 'altstack vfork pages contexts stacks jit stepped of_files of_stack of_memory'.split(' ');
const alone = kinds.flatMap((kind) => Array.from({ length: 20 }, (_, calls) => [kind, calls + 1] as const));

for (const [kind, calls] of usually(alone, () => false))
  t.test(`${kind} after ${calls} calls`, (t) => unnoticed(t, 'auto', `${calls}`, kind));

t.test('a program that reads its own code sees what lies there, and that is said before', async (t) => {
  const source = `#include <stdio.h>
extern char __executable_start[], etext[];
static long calls;
__attribute__((noinline)) void job(void) { calls++; __asm__ volatile(""); }
static unsigned sum(void) { unsigned s = 0; for (char *p = (char *)job; p < (char *)job + 8; p++) s = s * 31 + *p; return s; }
int main(void) { unsigned before = sum(); for (int i = 0; i < 9; i++) job();
  printf("%s, %d bytes\\n", sum() == before ? "same" : "changed", etext > __executable_start); return 0; }`;
  const text = compileC(t, source);
  t.match((await start(text, []).ended).stdout, /^same/);
  const { status, stdout, stderr } = await rsptraceProcess('run', '-o', `${text}.txt`, '-p', 'fn:job', text).ended;
  t.equal(status, 0, stderr);
  t.match(
    stderr,
    /the program asks where its code lies \(etext\): if it reads it, .* it sees patches there, and breakpoints as well/,
  );
  t.match(stdout, /^changed/m);
});

t.test(
  'what lies below the stack of a coroutine stays as it is, when the memory is mapped and unwinders learn of it',
  async (t) => {
    const source = `#include <stdio.h>
#include <string.h>
#include <ucontext.h>
static struct { unsigned char below[8192], stack[16384]; } area;
static ucontext_t home, one;
__attribute__((noinline)) long job(long n) { __asm__ volatile(""); return n + 1; }
static void body(void) { char used[13000]; for (long i = 0; i < 9; i++) job(i); __asm__ volatile("" : : "r"(used) : "memory"); }
int main(void) { memset(area.below, 0xa5, sizeof area.below); getcontext(&one);
  one.uc_stack.ss_sp = area.stack, one.uc_stack.ss_size = sizeof area.stack, one.uc_link = &home;
  makecontext(&one, body, 0), swapcontext(&home, &one);
  long other = 0; for (unsigned i = 0; i < sizeof area.below; i++) other += area.below[i] != 0xa5;
  printf("%ld other bytes\\n", other); return 0; }`;
    const program = compileC(t, source, ['-Wl,--no-as-needed', '-lgcc_s']);
    const { status, stdout, stderr } = await rsptraceProcess('run', '-o', `${program}.txt`, '-p', 'fn:job', program)
      .ended;
    t.equal(status, 0, stderr);
    t.match(stderr, /1 probe, without stops/);
    t.match(stderr + stdout, /^0 other bytes/m);
  },
);
