// How a program ends that `rsptrace run` has started: what its own status makes of ours.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';

const folder = scratchFolder(t);
const program = join(folder, 'ends');
/** Ends with the status that it is given; by a signal with `kill`; never with `spin`, nor with `nap`, where a thread spins. */
const source = `
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n; }
static void *spinner(void *_) { for (;;) __asm__ volatile(""); }
__attribute__((noinline)) void nap(void) { pthread_t it; pthread_create(&it, 0, spinner, 0); pause(); }
int main(int count, char **arguments) {
  const char *how = arguments[1];
  do work(count); while (!strcmp(how, "spin"));
  if (!strcmp(how, "nap")) nap();
  if (!strcmp(how, "kill")) raise(SIGABRT);
  return atoi(how);
}`;
execFileSync('gcc', ['-g', '-O1', '-x', 'c', '-', '-o', program], { input: source });

async function run(how: string, ...options: readonly string[]) {
  const words = ['run', '--json', '-p', 'fn:work', ...options, program, '--', how];
  const { status, stdout, stderr } = await rsptrace(...words).ended;
  return { status, stderr, output: stdout === '' ? undefined : (JSON.parse(stdout) as unknown) };
}

t.test('a status that is no success fails the recording', async (t) => {
  t.match(await run('0'), { status: 0, output: { guest_exit: 'status 0', events: 2 } });
  t.match(await run('3'), { status: 5, output: { guest_exit: 'status 3', events: 2 } });
  t.match(await run('3', '--guest-status'), { status: 3 });
  t.match(await run('3', '--success-status', '3'), { status: 0 });
  t.match(await run('kill', '--guest-status'), { status: 5, output: { guest_exit: 'signal 6', events: 2 } });
});

t.test("as cargo's runner: the program stands behind --", async (t) => {
  t.match(await rsptrace('run', '--json', '-p', 'fn:work', '--guest-status', '--', program, '7').json(7), {
    guest_exit: 'status 7',
    events: 2,
  });
});

t.test('a program that is ended for a limit fails, for our own it does not', async (t) => {
  t.match(await run('spin', '--time-limit', '500ms', '--max-events', '1000000000'), { status: 5 });
  // Before its program has begun.
  t.match(await run('spin', '--time-limit', '1ms', '--max-events', '1000000000'), { status: 5 });
  t.match(await run('spin', '--guest-time-limit', '1us'), { status: 5 });
  t.match(await run('spin', '--max-events', '100'), { status: 0 });
});

t.test('what only a machine has is refused', async (t) => {
  const console = /--console-\w+ is for machines: what a program writes does not pass rsptrace \[USAGE\]/;
  for (const option of ['--console-expect', '--console-fail', '--console-until']) {
    t.match(await run('0', option, 'text'), { status: 2, stderr: console });
  }
  t.match(await run('0', '--console', join(folder, 'log')), { status: 2, stderr: /--console is for machines/ });
  t.match(await run('0', '--deterministic'), { status: 2, stderr: /--deterministic is for machines/ });
});

t.test('where its threads are while no event comes', async (t) => {
  const recorder = rsptrace('run', '--json', '-p', 'fn:work', '--stalled', '500ms', program, '--', 'nap');
  await recorder.shows('no event for 0.5 s');
  recorder.signal('SIGTERM');
  const { stdout, stderr } = await recorder.ended;
  const line = source.split('\n').findIndex((text) => text.includes('pause()')) + 1;
  const own = { function: 'nap', file: /<stdin>$/, line };
  const sleeper = { state: 'waits', inside: /pause$/, own };
  t.match(JSON.parse(stdout), {
    quiet: [{ ms: 500, harts: [{ state: 'runs', own: null }, sleeper], more: 0 }],
  });
  t.match(stderr, /: thread \d+ \(ends\) runs; thread \d+ \(ends\) waits in .*pause, from nap \(.*<stdin>:\d+\)/);
});
