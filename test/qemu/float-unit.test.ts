// Numbers in xmm0 while a kernel has its floating-point unit off: they are another task's, and reading them in the
// guest raises an exception. The guest has no handler for it, so it would end before all calls.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { floatsKernel } from '../support/tiny-kernels.js';

const calls = 30;

for (const engine of ['target', 'stop'] as const) {
  t.test(`engine ${engine}: a number is left out while the unit is off, and nothing else`, async (t) => {
    const { elf, command } = floatsKernel(t, calls);
    const tree = join(scratchFolder(t), 'calls.txt');
    const { probes } = await rsptrace(
      ...['run', '--json', '--engine', engine, '-o', tree, '-p', 'fn:take', elf, '--', ...command],
    ).json<{ readonly probes: readonly { readonly engine: string }[] }>();
    t.match(probes, [{ engine }]);
    const seen = [...readFileSync(tree, 'utf8').matchAll(/\[ 0\] +(take\(.*\))/g)].map(([, call]) => call);
    const wanted = Array.from({ length: calls }, (_, i) =>
      i % 3 === 0 ? `take(x: 1.5, n: ${i + 1})` : `take(n: ${i + 1})`,
    );
    t.strictSame(seen, wanted);
  });
}
