// System calls of a process under gdbserver, against what the program itself has counted: threads that make them wait for each other,
// signals that interrupt them, children, vfork, exec.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import type { Recording } from '../support/recording.js';
import { freePort, untilListens } from '../support/stub-servers.js';

interface Calls extends Recording {
  readonly traps: readonly { readonly function: string; readonly calls: number; readonly lost: number }[];
  readonly system_calls?: unknown;
}

const folder = scratchFolder(t);
const program = join(folder, 'calls');
/** Where the program writes. */
const said = join(folder, 'said');
const threads = 3;
const rounds = 40;

/** Calls that the C library makes by itself are not counted. It prints what only it knows. */
const source = `#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int handled;
static int ends[2];
static void on(int s) { handled++; getppid(); }
static void *thread(void *a) {
  for (int i = 0; i < ${rounds}; i++) { pthread_mutex_lock(&mutex); getuid(); pthread_mutex_unlock(&mutex); }
  char c;
  return (void *)read(ends[0], &c, 1);
}
int main(int n, char **v) {
  if (n > 2) { for (int i = 0; i < 7; i++) syscall(SYS_geteuid); return 0; }
  pipe(ends);
  pthread_t t[${threads}];
  for (int i = 0; i < ${threads}; i++) pthread_create(t + i, 0, thread, 0);
  usleep(30000);
  write(ends[1], "abc", ${threads});
  for (int i = 0; i < ${threads}; i++) pthread_join(t[i], 0);
  struct sigaction a = {.sa_handler = on};
  sigaction(SIGALRM, &a, 0);
  int failed = 0;
  char c;
  /* One that comes before the read is followed by another. */
  struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
  for (int i = 0; i < 4; i++) {
    setitimer(ITIMER_REAL, &often, 0);
    if (read(ends[0], &c, 1) < 0 && errno == EINTR) failed++;
    setitimer(ITIMER_REAL, &never, 0);
  }
  int status = 0;
  for (int i = 0; i < 2; i++) { pid_t p = fork(); if (!p) { getgid(); _exit(3); } waitpid(p, &status, 0); }
  pid_t p = vfork();
  if (!p) { execl("/bin/true", "true", NULL); _exit(1); }
  waitpid(p, &status, 0);
  for (int i = 0; i < 5; i++) syscall(SYS_getsid, 0);
  open("/nonexistent/file", O_RDONLY);
  syscall(600);
  FILE *f = fopen(v[1], "w");
  fprintf(f, "handled %d failed %d\\n", handled, failed);
  fclose(f);
  execl(v[0], v[0], v[1], "again", NULL);
  return 1;
}`;
execFileSync('gcc', ['-g', '-O1', '-pthread', '-x', 'c', '-o', program, '-'], { input: source });

t.test('each system call of the process is one, and no other', async (t) => {
  const trace = join(folder, 'out.jsonl');
  const words = ['run', '--json', '-p', 'syscall:**', '-o', trace, program, '--', said];
  const { status, stdout, stderr } = await rsptrace(...words).ended;
  t.equal(status, 0, stderr);
  t.equal(stderr.split('its children are not traced').length, 2, 'children are left out, which is said once');
  const printed = /handled (\d+) failed (\d+)/.exec(readFileSync(said, 'latin1')) ?? [];
  const [handled, failed] = [Number(printed[1]), Number(printed[2])];
  t.equal(failed, 4, 'the program went as it goes untraced');
  const { traps } = JSON.parse(stdout) as Calls;
  const calls = (name: string): number | undefined => traps.find((row) => row.function === `syscall::${name}`)?.calls;
  t.same(
    Object.fromEntries(
      ['getuid', 'getppid', 'rt_sigreturn', 'getgid', 'getsid', '600', 'wait4'].map((name) => [name, calls(name)]),
    ),
    {
      getuid: threads * rounds,
      getppid: handled,
      rt_sigreturn: handled,
      getgid: undefined,
      getsid: 5,
      600: 1,
      wait4: 3,
    },
    'those of children are not its own',
  );
  t.equal(calls('geteuid'), 7, 'after an exec, too');
  t.equal(calls('vfork'), 1);
  t.same(
    [calls('clock_nanosleep'), calls('restart_syscall')],
    [1, undefined],
    'a sleep goes on that stops of others interrupt',
  );
  const lost = traps.filter((row) => row.lost > 0).map((row) => row.function);
  t.same(lost.sort(), ['syscall::execve', 'syscall::exit', 'syscall::exit_group'], 'what never returns');
  const lines = readFileSync(trace, 'latin1').split('\n');
  const results = (name: string): string[] =>
    lines.filter((line) => line.includes(`"syscall::${name}"`)).map((line) => JSON.parse(line).result as string);
  t.equal(results('openat').filter((result) => result === '-2 ENOENT').length, 1);
  t.same(results('600'), ['-38 ENOSYS']);
  t.equal(
    results('read').filter((result) => /^-512 ERESTARTSYS$/.test(result)).length,
    failed,
    'reads that a signal ended',
  );
  t.equal(results('read').filter((result) => result === '1').length, threads, 'reads that others interrupted go on');
});

t.test('some calls, beside functions without stops', async (t) => {
  const options = ['--json', '-p', 'syscall:getuid', '-p', 'syscall:getsid', '-p', 'fn:thread'];
  const { stdout, stderr } = await rsptrace('run', ...options, '-o', join(folder, 'some.pftrace'), program, '--', said)
    .ended;
  const { traps, functions } = JSON.parse(stdout) as Calls;
  t.match(
    traps.map((row) => [row.function, row.calls]).sort(),
    [
      ['syscall::getsid', 5],
      ['syscall::getuid', threads * rounds],
    ],
    stderr,
  );
  t.match(functions, [{ function: 'thread', calls: threads, lost: 0 }]);
});

t.test('what cannot be is an error', async (t) => {
  for (const [probe, code] of [
    ['irq:**', 'PROBE_NO_MATCH'],
    ['trap:**', 'PROBE_NO_MATCH'],
    ['syscall:getuidd', 'PROBE_NO_MATCH'],
  ] as const) {
    const { stdout } = await rsptrace('run', '--dry-run', '--json', '-p', probe, program).ended;
    t.match(JSON.parse(stdout), { error: { code } }, probe);
  }
  const { stdout } = await rsptrace('run', '--dry-run', '--json', '-p', 'syscall:**', program).ended;
  t.match(JSON.parse(stdout), { system_calls: 'all' });
  const port = await freePort();
  const server = start('lldb-server-14', ['gdbserver', `127.0.0.1:${port}`, '--', program]);
  t.teardown(() => void server.process.kill('SIGKILL'));
  await untilListens(port);
  const refused = await rsptrace('-r', `:${port}`, '--json', '-p', 'syscall:**', '-o', join(folder, 'no.txt'), program)
    .ended;
  t.match(JSON.parse(refused.stdout), { error: { code: 'CALLS_UNAVAILABLE' } });
});
