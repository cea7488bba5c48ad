// Processes that may not do what trampolines need, from the start or from a later moment on: nothing that is asked of
// their kernel has another effect than its result.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';

const folder = scratchFolder(t);
const output = ['-o', join(folder, 'out.pftrace'), '--force'];
const build = (name: string, source: string, ...options: readonly string[]): string => {
  const program = join(folder, name);
  execFileSync('gcc', ['-g', '-O1', '-pthread', ...options, '-x', 'c', '-o', program, '-'], { input: source });
  return program;
};

interface Report {
  readonly guest_exit: string;
  readonly functions: readonly { readonly function: string; readonly calls: number }[];
  readonly probes: readonly { readonly function: string; readonly engine: string; readonly why: string | null }[];
}

/** Runs a program untraced and traced; each writes what it has seen into a file. */
async function traced(program: string, options: readonly string[], ...words: readonly string[]) {
  const [alone, with_] = ['alone', 'traced'].map((name) => join(folder, name)) as [string, string];
  execFileSync(program, [alone, ...words]);
  const given = ['run', '--json', ...output, ...options, program, '--', with_, ...words];
  const { status, stdout, stderr } = await rsptrace(...given).ended;
  const report = JSON.parse(stdout) as Report;
  const calls = new Map(report.functions.map((row) => [row.function, row.calls]));
  return { status, stderr, report, calls, alone: readFileSync(alone, 'utf8'), seen: readFileSync(with_, 'utf8') };
}

const limited = build(
  'limited',
  `#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
static long jobs;
__attribute__((noinline)) void job(void) { jobs++; asm volatile(""); }
static int limit(int what, rlim_t most) { struct rlimit l = {most, most}; return setrlimit(what, &l); }
static int filter(void) {
  /* Kills for every call but those of the end. */
  struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog p = {sizeof f / sizeof *f, f};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
static int harm(const char *how, int when) {
  if (!strcmp(how, "fsize")) return limit(RLIMIT_FSIZE, 4096);
  if (!strcmp(how, "as")) return limit(RLIMIT_AS, (when ? 64 : 20) << 20); /* Later with what trampolines have. */
  if (!strcmp(how, "stack")) return limit(RLIMIT_STACK, 64 << 10);
  return filter();
}
int main(int c, char **v) {
  FILE *f = fopen(v[1], "w");
  int when = atoi(v[3]), r = 0;
  static char room[4096];
  setvbuf(f, room, _IOFBF, sizeof room);
  for (int i = 0; i < 20; i++) {
    if (i == when) r = harm(v[2], when);
    job();
    void *p = strcmp(v[2], "as") ? v : malloc(8 << 20);
    if (!p) return 7;
    if (p != v) memset(p, 1, 8 << 20), free(p);
  }
  fprintf(f, "%d jobs %ld\\n", r, jobs);
  return fclose(f) | r;
}`,
);

/** Each of them before each of its twenty calls. */
const moments = ['fsize', 'as', 'stack', 'filter'].flatMap((how) =>
  Array.from({ length: 20 }, (_, when) => [how, when] as const),
);
const some = new Set(['fsize 3', 'as 0', 'stack 5', 'filter 0', 'filter 7']);

for (const [how, when] of usually(moments, ([how, when]) => some.has(`${how} ${when}`))) {
  t.test(`a process that limits itself before its call ${when + 1}: ${how}`, async (t) => {
    const { status, stderr, calls, alone, seen } = await traced(limited, ['-p', 'fn:job'], how, `${when}`);
    t.equal(status, 0, stderr);
    t.equal(seen, alone);
    t.strictSame([...calls], [['job', 20]]);
  });
}

const odd = build(
  'odd',
  `#include <stdio.h>
static long jobs;
__attribute__((noinline)) void job(void) { jobs++; asm volatile(""); }
/* Entered by a jump; what lies where a return address would is 7. */
__attribute__((naked, noinline)) void odd(void) { asm volatile("pop %rcx; nop; nop; nop; nop; jmp *%rax"); }
int main(int c, char **v) {
  for (int i = 0; i < 5; i++) {
    job();
    asm volatile("lea 1f(%%rip), %%rax; push $7; jmp odd; 1:" ::: "rax", "rcx", "memory");
    job();
  }
  FILE *f = fopen(v[1], "w");
  fprintf(f, "jobs %ld\\n", jobs);
  return fclose(f);
}`,
  '-mno-red-zone',
);

t.test('a probe whose return cannot be awaited is left out, and says so', async (t) => {
  const options = ['--engine', 'stop', '-p', 'fn:job', '-p', 'fn:odd'];
  const { status, stderr, report, calls, alone, seen } = await traced(odd, options);
  t.equal(status, 0, stderr);
  t.equal(seen, alone);
  t.equal(calls.get('job'), 10);
  const probe = report.probes.find(({ function: name }) => name === 'odd');
  t.match(probe, { engine: 'none', why: 'the stub refused a breakpoint where its call returns, 0x7' });
});

t.test("a call of ours does not meet the program's probes", async (t) => {
  const program = build(
    'static',
    `#include <stdio.h>
static long jobs;
__attribute__((noinline)) void job(void) { jobs++; asm volatile(""); }
int main(int c, char **v) {
  for (int i = 0; i < 10; i++) job();
  FILE *f = fopen(v[1], "w");
  fprintf(f, "jobs %ld\\n", jobs);
  return fclose(f);
}`,
    '-static',
  );
  for (const engine of ['auto', 'target']) {
    const probes = ['-p', 'fn:job', '-p', 'fn:__register_frame_info', '-p', 'fn:__deregister_frame_info'];
    const { status, stderr, calls, alone, seen } = await traced(program, ['--engine', engine, ...probes]);
    t.equal(status, 0, stderr);
    t.equal(seen, alone);
    t.equal(calls.get('job'), 10);
  }
});
