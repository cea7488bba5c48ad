// Programs of Linux that are unlike most: without a C library, and without a main thread any more.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);
const output = ['-o', join(folder, 'out.pftrace'), '--force', '--json'];
const build = (name: string, source: string, ...options: readonly string[]): string => {
  execFileSync('gcc', ['-g', '-O1', ...options, '-x', 'c', '-o', join(folder, name), '-'], { input: source });
  return join(folder, name);
};

for (const kind of ['-static', '-static-pie']) {
  t.test(`a program without a C library, ${kind}`, async (t) => {
    const program = build(
      'bare',
      `__attribute__((noinline)) void job(void) { asm volatile(""); }
void _start(void) { for (int i = 0; i < 10; i++) job(); asm volatile("syscall" ::"a"(60), "D"(3)); }`,
      '-nostdlib',
      kind,
    );
    const { stdout, stderr } = await rsptrace('run', ...output, '-p', 'fn:job', program).ended;
    t.match(
      JSON.parse(stdout || '{}'),
      { guest_exit: 'status 3', functions: [{ function: 'job', calls: 10 }] },
      stderr,
    );
  });
}

/** Its main thread ends; `argument` others go on for some seconds, and end well. */
const threads = build(
  'threads',
  `#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void job(void) { asm volatile(""); }
static void *work(void *a) { for (int i = 0; i < 4000; i++) { job(); usleep(1000); } return 0; }
int main(int c, char **v) {
  pthread_t t;
  for (int i = 0; i < atoi(v[1]); i++) pthread_create(&t, 0, work, 0);
  pthread_exit(0);
}`,
  '-pthread',
);

for (const count of [1, 2]) {
  t.test(`a process whose main thread has ended, with ${count} left`, async (t) => {
    const child = spawn(threads, [String(count)]);
    const ended = once(child, 'close');
    const folderOfIt = `/proc/${child.pid}`;
    while (!/\) Z/.test(readFileSync(`${folderOfIt}/stat`, 'latin1'))) await delay(10);
    const thread = readdirSync(`${folderOfIt}/task`).find((task) => task !== `${child.pid}`);
    const attach = ['attach', String(child.pid), threads, '-p', 'fn:job', '--max-events', '10'];
    const { status, stdout, stderr } = await rsptrace(...attach, ...output).ended;
    if (count === 1) {
      t.equal(status, 0, stderr);
      t.match(stderr, `the main thread of process ${child.pid} has ended: its last thread, ${thread}, is traced`);
      t.match(JSON.parse(stdout), { events: 10 });
    } else t.match(stderr, /has ended: gdbserver takes only one of its 2 other threads \[GDBSERVER_FAILED\]/);
    t.same(await ended, [0, null], 'it ends as it would');
  });
}
