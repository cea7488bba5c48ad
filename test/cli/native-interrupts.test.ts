// Recording interrupts a process now and then. The program must not see by which signal: here are programs that take
// SIGINT as most daemons do, and one whose process group has another process in it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder, start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC } from '../support/native.js';

/** Calls `tick` each millisecond until there is a file. Ends with another status than 0 if a SIGINT reaches anybody. */
const waiting = `
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int ticks;
__attribute__((noinline)) int tick(int n) { ticks = n + 1; return n * 2; }
static void *waits(void *set) { int signal; sigwait(set, &signal); exit(3); }
int main(int argc, char **argv) {
  sigset_t set;
  struct signalfd_siginfo info;
  pthread_t thread;
  pid_t child = 0;
  int file = -1, status;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  if (strcmp(argv[1], "child") != 0) sigprocmask(SIG_BLOCK, &set, NULL);
  if (!strcmp(argv[1], "signalfd")) file = signalfd(-1, &set, SFD_NONBLOCK);
  if (!strcmp(argv[1], "sigwait")) pthread_create(&thread, NULL, waits, &set);
  if (!strcmp(argv[1], "child") && setpgid(0, 0) == 0 && (child = fork()) == 0) for (;;) pause();
  puts("ticking");
  fflush(stdout);
  while (access(argv[2], F_OK) != 0) {
    tick(ticks);
    usleep(1000);
    if (file >= 0 && read(file, &info, sizeof info) == sizeof info) return 4;
    if (child && waitpid(child, &status, WNOHANG) == child) return 5;
  }
  if (child) kill(child, SIGKILL);
  return 0;
}`;

for (const by of usually(['signalfd', 'sigwait', 'child', 'nothing'], (one) => one === 'signalfd' || one === 'child')) {
  t.test(`attach to a program that takes SIGINT by ${by}: it gets none`, async (t) => {
    const folder = scratchFolder(t);
    const end = join(folder, 'end');
    const target = start(compileC(t, waiting, ['-pthread']), [by, end]);
    t.teardown(() => void target.process.kill('SIGKILL'));
    await target.shows('ticking');
    const out = ['-o', join(folder, 'out.txt')];
    const ran = await rsptrace('attach', String(target.process.pid), '--json', '-p', 'fn:tick', '-n', '400', ...out)
      .ended;
    t.equal(ran.status, 0, ran.stderr);
    t.match(JSON.parse(ran.stdout), { functions: [{ function: 'tick' }] }, ran.stderr);
    writeFileSync(end, '');
    t.match(await target.ended, { status: 0 }, 'it has run to its end');
  });
}
