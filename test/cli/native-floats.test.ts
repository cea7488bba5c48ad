// Floating-point arguments in registers: as the program itself prints them, with both engines.
import t from 'tap';
import { start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileC } from '../support/native.js';
import { trace, withoutStops } from '../support/native-trace.js';

/** Prints its calls as a call tree does. All numbers have one decimal that is exact. */
const source = `
#include <stdio.h>
struct pair { double x, y; };
static volatile double sum;
__attribute__((noinline)) void scale(double x, unsigned n, float y) { sum += x * n + y; }
__attribute__((noinline)) void apart(struct pair p, long k) { sum += p.x * p.y + k; }
__attribute__((noinline)) void eight(double a, float b, double c, float d, double e, float f, double g, double h) {
  sum += a + b + c + d + e + f + g + h;
}
int main(int argc, char **argv) {
  for (int i = -20; i < 200; i++) {
    double x = i * 0.5 + argc - 1;
    printf("scale(x: %.1f, n: %u, y: %.1f)\\n", x, (unsigned)argc + i + 20, -x);
    scale(x, (unsigned)argc + i + 20, (float)-x);
    printf("apart(p: pair { x: %.1f, y: %.1f }, k: %d)\\n", x * 4, -1.5 * argc, i);
    apart((struct pair){x * 4, -1.5 * argc}, i);
    printf("eight(a: %.1f, b: %.1f, c: %.1f, d: %.1f, e: %.1f, f: %.1f, g: %.1f, h: %.1f)\\n",
           x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7);
    eight(x, (float)x + 1, x + 2, (float)x + 3, x + 4, (float)x + 5, x + 6, x + 7);
  }
}`;

const callsIn = (text: string): string[] =>
  [...text.matchAll(/^.*?\[ *\d+\] +((?:scale|apart|eight)\(.*)$/gm)].map(([, call = '']) => call);

for (const engine of usually(['target', 'stop'] as const, (one) => one === 'target')) {
  t.test(`engine ${engine}: calls as the program prints them`, async (t) => {
    const program = compileC(t, source, ['-fno-ipa-cp', '-fno-ipa-sra']);
    const untraced = (await start(program, []).ended).stdout;
    const probes = ['scale', 'apart', 'eight'].flatMap((name) => ['-p', `fn:${name}`]);
    const { output, stdout, text } = await trace(t, [program], '--engine', engine, ...probes);
    t.equal(stdout, untraced, 'which it does untraced, too');
    if (engine === 'target') withoutStops(t, output);
    const printed = untraced.trimEnd().split('\n');
    t.equal(printed.length, 660);
    t.strictSame(callsIn(text), printed);
  });
}

/** In unoptimised code nothing but the calling convention says where these are. */
const unoptimised = `
#include <complex.h>
#include <stdio.h>
struct P { double x, y; };
struct F { float x, y, z; };
struct M { double x; long n; };
struct N { int n; float f; };
struct T { double x, y, z; };
#define apart __attribute__((noinline))
apart double add(double a, float b, int c) { return a + b + c; }
apart struct P pair(struct P p, float k) { return (struct P){p.x * k, p.y + k}; }
apart struct F three(struct F f, int n) { return (struct F){f.x + n, f.y, f.z}; }
apart struct M mixed(struct M m, double d) { return (struct M){m.x + d, m.n + 1}; }
apart struct N small(struct N n) { return (struct N){n.n + 1, n.f * 2}; }
apart int many(double a, double b, double c, double d, double e, double f, double g, double h, int i, double j) {
  return a + b + c + d + e + f + g + h + i + j;
}
apart double block(struct T t) { return t.x + 10 * t.y + 100 * t.z; }
apart double wide(long double x) { return x * 2; }
apart double real(double _Complex z) { return creal(z) + 1; }
int main(void) {
  for (int i = 1; i < 40; i++) {
    double x = i * 0.5;
    printf("add(a: %.1f, b: %.1f, c: %d) = %.1f\\n", x, -x, i, add(x, -x, i));
    struct P p = pair((struct P){x, 2.5}, 2);
    printf("pair(p: P { x: %.1f, y: 2.5 }, k: 2.0) = P { x: %.1f, y: %.1f }\\n", x, p.x, p.y);
    struct F f = three((struct F){x, 2.5, -3.5}, i);
    printf("three(f: F { x: %.1f, y: 2.5, z: -3.5 }, n: %d) = F { x: %.1f, y: %.1f, z: %.1f }\\n", x, i, f.x, f.y, f.z);
    struct M m = mixed((struct M){x, i}, 2.5);
    printf("mixed(m: M { x: %.1f, n: %d }, d: 2.5) = M { x: %.1f, n: %ld }\\n", x, i, m.x, m.n);
    struct N n = small((struct N){i, x});
    printf("small(n: N { n: %d, f: %.1f }) = N { n: %d, f: %.1f }\\n", i, x, n.n, n.f);
    printf("many(a: 1.0, b: 2.0, c: 3.0, d: 4.0, e: 5.0, f: 6.0, g: 7.0, h: %.1f, i: %d) = %d\\n", x, i,
           many(1, 2, 3, 4, 5, 6, 7, x, i, 9));
    printf("block() = %.1f\\n", block((struct T){x, i, 3}));
    printf("wide() = %.1f\\n", wide(x));
    printf("real() = %.1f\\n", real(x + 2.0 * I));
  }
}`;

t.test('unoptimised: numbers, those in structs, and results; what is on the stack stays there', async (t) => {
  const program = compileC(t, unoptimised, ['-O0']);
  const untraced = (await start(program, []).ended).stdout;
  const names = ['add', 'pair', 'three', 'mixed', 'small', 'many', 'block', 'wide', 'real'];
  const probes = names.flatMap((name) => ['-p', `fn:${name}`]);
  const { output, stdout, text } = await trace(t, [program], '--engine', 'target', ...probes);
  t.equal(stdout, untraced, 'it computes what it does untraced');
  withoutStops(t, output);
  const calls = [...text.matchAll(/^.*?\[ *\d+\] +(\w+\(.*)$/gm)].map(([, call]) => call);
  t.strictSame(calls, untraced.trimEnd().split('\n'));
});
