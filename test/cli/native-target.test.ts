// The engine without stops at a real gdbserver: programs that count their own calls and compute sums, which go wrong where a register does.

import t from 'tap';
import { start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC, compileReleased } from '../support/native.js';
import { calls, functionProbes, sameCalls, trace, withoutStops } from '../support/native-trace.js';

t.test(
  'gcc -O2, which keeps values in registers across calls: calls, nesting, arguments as the stop engine tells them',
  async (t) => {
    const program = compileReleased(t, 'calls.c');
    const untraced = (await start(program, ['run', '15']).ended).stdout;
    const target = await trace(t, [program, 'run', '15'], '--engine', 'target', ...functionProbes);
    t.equal(target.stdout, untraced);
    withoutStops(t, target.output);
    sameCalls(t, target.output, untraced);
    const stop = await trace(t, [program, 'run', '15'], '--engine', 'stop', ...functionProbes);
    t.equal(stop.output.scratch, undefined);
    t.same(calls(target.text), calls(stop.text));
    t.ok(calls(stop.text).length > 200);
  },
);

t.test('four threads and more events than the ring holds', async (t) => {
  const program = compileReleased(t, 'calls.c');
  const untraced = (await start(program, ['threads', '4000']).ended).stdout;
  const { output, stdout, text } = await trace(t, [program, 'threads', '4000'], ...functionProbes);
  t.equal(stdout, untraced);
  withoutStops(t, output);
  sameCalls(t, output, untraced);
  // Each thread made its own number of calls: as many are told of it.
  const ofThread = new Map<string, number>();
  for (const [, thread = ''] of text.matchAll(/\[ *(\d+)\] {2}outer\(/g))
    ofThread.set(thread, (ofThread.get(thread) ?? 0) + 1);
  t.same(
    [...ofThread.values()].sort((a, b) => a - b),
    [4000, 4001, 4002, 4003],
  );
});

t.test('a program that is not position-independent, and one that is static', async (t) => {
  for (const flags of usually([['-no-pie'], ['-static']], ([one]) => one === '-static')) {
    const program = compileReleased(t, 'calls.c', flags);
    const { output, stdout } = await trace(t, [program, 'run', '300'], '--engine', 'target', ...functionProbes);
    withoutStops(t, output);
    sameCalls(t, output, stdout);
  }
});

t.test('durations lie between what the program itself measures inside and outside', async (t) => {
  const program = compileReleased(t, 'calls.c');
  const { output, stdout } = await trace(t, [program, 'nap'], '--engine', 'target', '-p', 'fn:nap*');
  withoutStops(t, output);
  const [, inside, outside] = /^slept (\d+) (\d+)$/m.exec(stdout) ?? [];
  const total = output.functions[0]?.total_ns ?? 0;
  t.ok(total > Number(inside) * 0.999 && total < Number(outside) * 1.001, `${inside} < ${total} < ${outside}`);
});

t.test(
  'forks in the middle of traced calls: the child has its own code again, returns, and tells nothing',
  async (t) => {
    const program = compileReleased(t, 'calls.c');
    const untraced = (await start(program, ['fork']).ended).stdout;
    t.match(untraced, /(child 700\n){4}/);
    const { output, stdout } = await trace(t, [program, 'fork'], '--engine', 'target', ...functionProbes);
    t.equal(stdout, untraced);
    withoutStops(t, output);
    sameCalls(t, output, untraced);
  },
);

/** Four threads, then a child, then the first thread alone. */
const counted = `
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#define CALLS 1000000
static pthread_barrier_t together;
unsigned long sum;
__attribute__((noipa)) unsigned long f(unsigned long n, int sign) { return 3 * n + sign; }
__attribute__((noipa)) long stacked(long a, long b, long c, long d, long e, long g, long h) { return a + b + c + d + e + g + h; }
static void *job(void *p) {
  pthread_barrier_wait(&together);
  for (unsigned long n = 0; n < CALLS; n++) __atomic_add_fetch(&sum, f(n, n % 2 ? -7 : 5), 5);
  return p;
}
int main(void) {
  pthread_t threads[4];
  pthread_barrier_init(&together, 0, 4);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, job, 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  if (fork() == 0) {
    for (int i = 0; i < 50; i++) f(i, 0);
    _exit(0);
  }
  wait(0);
  for (int i = 0; i < 1000; i++) sum += stacked(i, 1, 2, 3, 4, 5, 6);
  printf("%lu\\n", sum);
}
`;

t.test('threads that count at once in the same counters, and arguments on the stack', async (t) => {
  const program = compileC(t, counted, ['-O2']);
  const untraced = (await start(program, []).ended).stdout;
  for (const probe of ['count:f if n >= 50', 'hist(sign):f']) {
    const traced = await trace(t, [program], '--engine', 'target', '-p', probe, '-p', 'count:stacked');
    t.equal(traced.stdout, untraced);
    withoutStops(t, traced.output);
    t.equal(traced.output.records, 0);
    const { counts, histograms } = traced.output;
    const calls = (name: string): number | undefined => counts.find((row) => row.function === name)?.calls;
    t.equal(calls('stacked'), 1000);
    if (probe.startsWith('count')) t.equal(calls('f'), 4 * (1_000_000 - 50));
    else {
      t.strictSame(histograms[0]?.buckets, [
        { from: null, below: 0, calls: 2_000_000 },
        { from: 4, below: 8, calls: 2_000_000 },
      ]);
    }
  }
});
