// Floating-point arguments in registers: as the program itself prints them, with both engines.
import t from 'tap';
import { start } from '../support/command.js';
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

for (const engine of ['target', 'stop'] as const) {
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
