// Sums and averages of arguments, results and times, beside counts and histograms of the same functions: a program
// that adds the same numbers up itself, and prints them.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC, gdbserver } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

const source = `
#include <stdio.h>
#include <time.h>
struct item { long id; int price; };
__attribute__((noinline)) int owe(int amount, const struct item *item) {
  volatile int kept = amount;
  return kept * 3 + item->price;
}
__attribute__((noinline)) unsigned long large(unsigned long n) { volatile unsigned long kept = n; return kept; }
__attribute__((noinline)) void nap(void) { struct timespec t = {0, 1000000}; nanosleep(&t, 0); }
__attribute__((noinline)) void never(int n) { volatile int kept = n; (void)kept; }
int main(int argc, char **argv) {
  long amounts = 0, results = 0, some = 0;
  for (int i = 0; i < 40; i++) {
    struct item item = {i, 100 - 7 * i};
    int amount = i % 2 ? -5 * i : i;
    int result = owe(amount, &item);
    amounts += amount; results += result;
    if (amount > 9) some += amount;
    large(1UL << 63);
    if (i % 10 == 0) nap();
  }
  if (argc > 9) never(argc);
  printf("%ld %ld %ld\\n", amounts, results, some);
  (void)argv;
  return 0;
}
`;

interface Added {
  readonly function: string;
  readonly argument: string;
  readonly calls: number;
  readonly sum: number | string;
  readonly avg?: number | null;
}

interface Recorded {
  readonly sums: readonly Added[];
  readonly averages: readonly Added[];
  readonly counts: readonly { readonly calls: number }[];
  readonly histograms: readonly { readonly calls: number }[];
  readonly events: number;
  readonly records: number;
}

for (const engine of usually(['target', 'stop'], (one) => one === 'target'))
  t.test(`engine ${engine}`, async (t) => {
    const program = compileC(t, source);
    const [amounts, results, some] = execFileSync(program, { encoding: 'utf8' }).split(' ').map(Number);
    const record = async (...probes: string[]) => {
      const words = probes.flatMap((one) => ['-p', one]);
      return (await recorded<Recorded>(t, [program], ['--engine', engine, ...words])).output;
    };
    const sums = (rows: readonly Added[]) => rows.map((row) => [row.function, row.argument, row.calls, row.sum]);
    const all = await record(
      'sum(amount):owe',
      'sum(ret):fn:owe',
      'sum(n):large',
      'avg(ret):owe',
      'avg(duration):nap',
      'avg(n):never',
      'count:owe',
      'hist(amount):owe',
    );
    t.equal(all.events, 0);
    t.same(sums(all.sums), [
      ['large', 'n', 40, String(40n << 63n)],
      ['owe', 'amount', 40, amounts],
      ['owe', 'ret', 40, results],
    ]);
    const [nap, never, owe] = all.averages;
    t.same(sums(all.averages.slice(1)), [
      ['never', 'n', 0, 0],
      ['owe', 'ret', 40, results],
    ]);
    t.equal(owe?.avg, (results ?? 0) / 40);
    t.equal(never?.avg, null);
    t.same([nap?.argument, nap?.calls], ['duration in ns', 4]);
    t.ok((nap?.avg ?? 0) >= 1_000_000);
    t.same([all.counts.map(({ calls }) => calls), all.histograms.map(({ calls }) => calls)], [[40], [40]]);
    const conditional = await record('sum(amount):owe if amount > 9');
    t.equal(conditional.sums[0]?.sum, some);
    // What is known when a function is entered is added up in the target, each by its own condition.
    const probes = ['sum(amount):owe', 'sum(amount):owe if amount > 9', 'avg(amount):owe', 'count:owe if amount < 0'];
    const alone = await record(...probes.slice(1), 'sum(n):large', 'hist(n):large');
    t.same(sums(alone.sums), [
      ['large', 'n', 40, String(40n << 63n)],
      ['owe', 'amount', 15, some],
    ]);
    t.same(
      [alone.averages[0]?.sum, alone.counts.map(({ calls }) => calls), alone.histograms.map(({ calls }) => calls)],
      [amounts, [20], [40]],
    );
    t.equal(alone.records, 0);
  });

t.test('tables, and what cannot be added up', async (t) => {
  const program = compileC(t, source);
  const server = await gdbserver(t, program);
  const probes = ['sum(n):large', 'avg(amount):owe', 'avg(n):never'].flatMap((one) => ['-p', one]);
  const words = ['-r', server.address, '-o', join(scratchFolder(t), 'out.pftrace'), ...probes, program];
  const { stdout, stderr, status } = await rsptrace(...words).ended;
  t.equal(status, 0, stderr.slice(-300));
  t.match(stdout, /^calls +sum +function, number/m);
  t.match(stdout, /^ +40 +368934881474191032320 +large, n/m);
  t.match(stdout, /^ +40 +-?\d+\.?\d* +owe, amount/m);
  t.match(stdout, /^ +0 +- +never, n/m);
  for (const [probe, why] of [
    ['sum:owe', /'sum:owe' names no argument[\s\S]*'sum\(len\):owe' adds up the argument len of calls.*'!sum:owe'/],
    ['avg(amount,item):owe', /not one argument[\s\S]*'avg\(len\):owe' is the average/],
    ['sum(amount', /parenthesis is never closed[\s\S]*'sum\(EXPRESSION\):GLOB'/],
    ['sum(item.price):owe', /PROBE_CONDITION\][\s\S]*owe: its item.price/],
    ['sum(nothing):owe', /PROBE_CONDITION\][\s\S]*owe: /],
    ['sum(ret):nap', /PROBE_CONDITION\][\s\S]*nap: it returns nothing/],
    ['!sum:owe', /leaves functions out, but none are asked for[\s\S]*sum\(ARG\):\*\*/],
  ] as const) {
    const refused = await rsptrace('-r', ':1', '-p', probe, program).ended;
    t.not(refused.status, 0);
    t.match(refused.stderr, why, probe);
  }
});

t.test('four threads at once', async (t) => {
  const program = compileC(
    t,
    `
#include <pthread.h>
#include <stdio.h>
static long sums[4];
__attribute__((noinline)) long owe(long n) { volatile long kept = n; return kept; }
static void *work(void *own) {
  long *sum = own;
  for (long i = 0; i < 100000; i++) *sum += owe(i % 3 ? i << 40 : -(i << 41));
  return 0;
}
int main(void) {
  pthread_t threads[4];
  __int128 all = 0;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, &sums[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0), all += sums[i];
  printf("%ld\\n", (long)all);
  return 0;
}
`,
  );
  const probes = ['-p', 'sum(n):owe', '-p', 'hist(n):owe'];
  const { output } = await recorded<Recorded>(t, [program], ['--engine', 'target', ...probes]);
  const { sums, histograms, records } = output;
  const own = execFileSync(program, { encoding: 'utf8' }).trim();
  t.same([sums[0]?.calls, String(sums[0]?.sum), histograms[0]?.calls, records], [400_000, own, 400_000, 0]);
});
