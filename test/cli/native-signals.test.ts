import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);
const output = ['-o', join(folder, 'out.pftrace'), '--force'];
const build = (name: string, source: string): string => {
  const program = join(folder, name);
  execFileSync('gcc', ['-g', '-O1', '-pthread', '-x', 'c', '-o', program, '-'], { input: source });
  return program;
};

/** Its own traps by an instruction, in a probed function's first byte too, and by signals; and a child that it traces. */
const traps = build(
  'traps',
  `#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long jobs, interrupts, kernel, sent, other;
static void on(int s, siginfo_t *i, void *c) {
  volatile long *n = s == SIGINT ? &interrupts : i->si_code == SI_KERNEL ? &kernel : i->si_code <= 0 ? &sent : &other;
  __sync_fetch_and_add(n, 1);
}
__attribute__((noinline)) void job(void) { __sync_fetch_and_add(&jobs, 1); }
__attribute__((naked, noinline)) void trapped(void) { asm volatile("int3; nop; nop; nop; nop; nop; ret"); }
static void *thread(void *a) {
  for (int i = 0; i < 10; i++) { job(); asm volatile("int3"); raise(SIGTRAP); }
  return 0;
}
int main(int c, char **v) {
  struct sigaction a = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &a, 0), sigaction(SIGINT, &a, 0);
  for (int i = 0; i < 5; i++) { job(); trapped(); job(); kill(getpid(), SIGTRAP); raise(SIGINT); }
  pthread_t t[2];
  for (int i = 0; i < 2; i++) pthread_create(t + i, 0, thread, 0);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  int status = 0, stops = 0;
  pid_t p = fork();
  if (!p) { ptrace(PTRACE_TRACEME, 0, 0, 0); signal(SIGTRAP, SIG_DFL); asm volatile("int3"); _exit(4); }
  while (waitpid(p, &status, 0) == p && WIFSTOPPED(status)) { stops++; ptrace(PTRACE_CONT, p, 0, 0); }
  FILE *f = fopen(v[1], "w");
  fprintf(f, "jobs %ld kernel %ld sent %ld other %ld interrupts %ld stops %d child %d\\n", jobs, kernel, sent, other,
    interrupts, stops, WEXITSTATUS(status));
  return fclose(f);
}`,
);

const ends = build(
  'ends',
  `#include <signal.h>
#include <stdlib.h>
__attribute__((noinline)) void job(void) { asm volatile(""); }
int main(int c, char **v) { job(); signal(atoi(v[1]), SIG_DFL); raise(atoi(v[1])); return 0; }`,
);

for (const engine of ['stop', 'auto']) {
  t.test(`--engine ${engine}: a program gets its own traps and interrupts`, async (t) => {
    const [alone, traced] = ['alone', `traced-${engine}`].map((name) => join(folder, name)) as [string, string];
    execFileSync(traps, [alone]);
    const untraced = readFileSync(alone, 'utf8');
    const probes = ['-p', 'fn:job', '-p', 'fn:trapped'];
    const words = ['run', '--json', ...output, '--engine', engine, ...probes, traps, '--', traced];
    const { status, stdout, stderr } = await rsptrace(...words).ended;
    t.equal(status, 0, stderr);
    t.equal(readFileSync(traced, 'utf8'), untraced);
    const { functions } = JSON.parse(stdout) as {
      functions: { function: string; calls: number; at_least: boolean }[];
    };
    const jobs = Number(/jobs (\d+)/.exec(untraced)?.[1]);
    // On a busy host the engine may switch off what stops, and says so.
    t.strictSame(
      functions.map(({ function: name, calls, at_least: isLeast }) => [name, isLeast && calls < 5 ? 5 : calls]),
      [
        ['job', jobs],
        ['trapped', 5],
      ],
    );
  });
}

t.test("the signal that ends a program has the system's number and name", async (t) => {
  const { signals } = constants;
  for (const name of ['SIGBUS', 'SIGUSR1', 'SIGSYS'] as const) {
    const { stdout } = await rsptrace('run', '--json', ...output, '-p', 'fn:job', ends, '--', `${signals[name]}`).ended;
    t.match(JSON.parse(stdout), { guest_exit: `signal ${signals[name]} (${name})` });
  }
});

/** A child in the memory of its parent, whose end that waits for. */
const sharing = build(
  'sharing',
  `#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
static char stack[65536];
static volatile long jobs;
__attribute__((noinline)) void job(void) { __sync_fetch_and_add(&jobs, 1); }
static int child(void *a) { for (int i = 0; i < 5; i++) job(); return 0; }
int main(void) {
  int status = 1;
  for (int i = 0; i < 5; i++) job();
  clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
  wait(&status);
  for (int i = 0; i < 5; i++) job();
  return status ? 1 : jobs;
}`,
);

t.test('a child in its parent memory: nothing is recorded from there on, which is said', async (t) => {
  for (const engine of ['target', 'stop']) {
    const words = ['run', '--json', ...output, '--engine', engine, '-p', 'fn:job', sharing];
    const { stdout, stderr } = await rsptrace(...words).ended;
    t.match(JSON.parse(stdout), { guest_exit: 'status 15', functions: [{ calls: 5 }] });
    t.match(stderr, /CLONE_VM/);
  }
});
