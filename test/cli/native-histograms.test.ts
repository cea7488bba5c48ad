// Histograms by what a return says: a program that knows what its functions return, and how long they sleep at least.
import t from 'tap';
import { rsptrace } from '../support/command.js';
import { compileC } from '../support/native.js';
import { recorded } from '../support/native-trace.js';

const source = `
#include <time.h>
__attribute__((noinline)) int rest(int n) { volatile int kept = n; return kept % 5; }
__attribute__((noinline)) void nap(void) { struct timespec t = {0, 1000000}; nanosleep(&t, 0); }
int main(void) { int sum = 0; for (int i = 0; i < 40; i++) { sum += rest(i); nap(); } return sum != 80; }
`;

interface Histogram {
  readonly function: string;
  readonly argument: string;
  readonly calls: number;
  readonly buckets: readonly { readonly from: number | null; readonly below: number; readonly calls: number }[];
}

interface Recorded {
  readonly histograms: readonly Histogram[];
  readonly events: number;
}

for (const engine of ['target', 'stop'])
  t.test(`engine ${engine}`, async (t) => {
    const program = compileC(t, source);
    const probes = ['hist(ret):rest', 'hist(ret):rest if n > 19', 'hist(duration):fn:nap'].flatMap((p) => ['-p', p]);
    const { output } = await recorded<Recorded>(t, [program], ['--engine', engine, ...probes]);
    const { histograms, events } = output;
    t.equal(events, 0);
    const [nap, rest] = histograms;
    t.same([rest?.function, rest?.argument, rest?.calls], ['rest', 'ret', 40]);
    t.same(
      rest?.buckets.map(({ from, below, calls }) => [from, below, calls]),
      [
        [0, 1, 8],
        [1, 2, 8],
        [2, 4, 16],
        [4, 8, 8],
      ],
    );
    t.same([nap?.function, nap?.argument, nap?.calls], ['nap', 'duration in ns', 40]);
    t.ok(nap?.buckets.every(({ below }) => below > 1_000_000));
  });

t.test('a function that returns nothing, or nothing of that name', async (t) => {
  const program = compileC(t, source);
  for (const [probe, why] of [
    ['hist(ret):nap', /PROBE_CONDITION\][\s\S]*nap: it returns nothing/],
    ['hist(ret.count):rest', /PROBE_CONDITION\][\s\S]*rest: /],
  ] as const) {
    const { status, stderr } = await rsptrace('-r', ':1', '-p', probe, program).ended;
    t.not(status, 0);
    t.match(stderr, why);
  }
});

t.test('copies that are inlined into other functions are not counted, and that is said once', async (t) => {
  const inlined = compileC(
    t,
    `
int leaf(int n) { volatile int kept = n; return kept % 5; }
__attribute__((flatten, noinline)) int inside(int n) { return leaf(n); }
int (*volatile pointer)(int) = leaf;
int main(void) { int sum = 0; for (int i = 0; i < 5; i++) { sum += inside(i) + pointer(i); } return sum != 20; }
`,
  );
  const where = 'where it is inlined, in inside';
  for (const probe of ['hist(n):leaf', 'fn:leaf']) {
    const { stdout, stderr } = await rsptrace('run', '--json', '-p', probe, '-o', 'none.txt', '--dry-run', inlined)
      .ended;
    t.same(
      JSON.parse(stdout).not_probed.map(({ reason }: { reason: string }) => reason),
      [where],
      stderr,
    );
  }
  const { output } = await recorded<Recorded & { not_probed: readonly object[] }>(t, [inlined], ['-p', 'hist(n):leaf']);
  t.equal(output.histograms[0]?.calls, 5);
  t.match(output.not_probed, [{ function: 'leaf', reason: where }]);
  const { stderr } = await rsptrace('-r', ':1', '-p', 'hist(n):leaf', inlined).ended;
  t.equal(stderr.split(`leaf is not probed ${where}: #[inline(never)]`).length, 2, stderr);
});
