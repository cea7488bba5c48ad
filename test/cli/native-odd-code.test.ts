// Programs whose code is none of a compiler's: what a step, a stop or memory of ours would change there.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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

/** libgcc sorts what it is told of at the next exception, and frees that when it is told no more. */
const allocates = build(
  'allocates',
  `#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile bool isOver;
static void *churn(void *) {
  void *all[64] = {};
  for (unsigned r = 1; !isOver;) {
    r = r * 1103515245 + 12345;
    void *&one = all[r >> 16 & 63];
    free(one);
    one = malloc(1100 + (r >> 8 & 4095));
  }
  return 0;
}
__attribute__((noinline)) void thrower() { throw 1; }
volatile int jobs;
extern "C" {
${Array.from({ length: 200 }, (_, i) => `__attribute__((noinline)) void job${i}() { jobs += ${i}; }`).join('\n')}
}
int main() {
  pthread_t t[2];
  for (pthread_t &each : t) pthread_create(&each, 0, churn, 0);
  write(1, "runs", 4);
  for (pollfd p = {0, POLLIN}; poll(&p, 1, 5) == 0;) { job7(); try { thrower(); } catch (int) {} }
  isOver = true;
  for (pthread_t each : t) pthread_join(each, 0);
  return 0;
}`,
  '-g -O1 -pthread -x c++',
);

t.test(
  'a thread that allocates comes out of that before libgcc frees on it, and others may hold the lock',
  async (t) => {
    const env = { ...process.env, MALLOC_ARENA_MAX: '1' };
    const child = spawn(allocates, { stdio: ['pipe', 'pipe', 'inherit'], env });
    t.teardown(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    for (let times = 0; times < 3; times++) {
      const words = ['attach', ...output, '--engine', 'target', '-d', '0.5', '-p', 'fn:job*', String(child.pid)];
      const { status, stderr } = await rsptrace(...words).ended;
      t.equal(status, 0, stderr);
    }
    child.stdin.end('\n');
    const [status] = await once(child, 'exit');
    t.equal(status, 0);
  },
);
