// `fn:GLOB if ARG OP INTEGER`: what is traced is what a whole trace has of such calls, by both engines.
// x86_64 with stops under `scripts/test --long`.

import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { rsptrace } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, protoc, readPerfetto, type Slice } from '../trace/decode-perfetto.js';
import { elfPath } from './guests/guests.js';

async function calls(
  t: Test,
  name: string,
  ...options: string[]
): Promise<{ readonly output: Recording; readonly slices: Slice[] }> {
  const { stdout, trace } = await runLab(t, name, ['--json', ...options]);
  const { slices } = readPerfetto(children(protoc(readFileSync(trace)), 'packet'));
  return { output: JSON.parse(stdout) as Recording, slices: slices.filter(({ category }) => category === 'call') };
}

const told = ({ name, args }: Slice): string => `${name}(${args.arg_x}, ${args.arg_y}) = ${args.returned}`;

/** deepN(x, y): their x is unsigned, 64 bits wide. */
const deep = 'labkern::work::deep*';

for (const name of usually(['rv-o2', 'x86-o2', 'arm-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: calls for which a condition holds`, async (t) => {
    const all = await calls(t, name, '-p', `fn:${deep}`, '--engine', 'target');
    const xsOf = (glob: RegExp): bigint[] =>
      all.slices
        .filter((slice) => glob.test(slice.name))
        .map(({ args }) => BigInt(args.arg_x ?? -1))
        .sort((a, b) => (a < b ? -1 : 1));
    const xs = xsOf(/./);
    const middle = xs[xs.length >> 1] as bigint;
    // Breakpoints stop at every call, those that are left out as well: one function is enough of them.
    const last = xsOf(/deep7$/);
    const ways = [
      ['target', deep, middle],
      ['stop', 'labkern::work::deep7', last[last.length >> 1] as bigint],
    ] as const;
    for (const [engine, fn, limit] of usually(ways, ([engine]) => engine === 'target' || name === 'rv-o2')) {
      const matching = all.slices.filter((slice) => engine === 'target' || slice.name === fn);
      const above = matching.filter(({ args }) => BigInt(args.arg_x ?? -1) > limit);
      t.ok(above.length > 0 && above.length < matching.length, `${above.length} of ${matching.length} calls`);
      const some = await calls(t, name, '-p', `fn:${fn} if x > ${limit}`, '--engine', engine);
      t.strictSame(some.slices.map(told), above.map(told), `by engine ${engine}`);
      t.ok(some.output.probes.every((probe) => probe.engine === engine));
      // An entry and a return each: what is left out leaves nothing in the ring.
      t.equal(some.output.records, engine === 'target' ? 2 * above.length : 0);
    }
    const odd = [`fn:${deep} if x == ${middle} && x != 0`, `fn:${deep} if x < ${xs[1]}`, '!fn:deep7'];
    const either = await calls(t, name, ...odd.flatMap((probe) => ['-p', probe]), '--engine', 'target');
    const wanted = all.slices.filter(({ name: fn, args }) => {
      const x = BigInt(args.arg_x ?? -1);
      return !fn.endsWith('deep7') && ((x === middle && x !== 0n) || x < (xs[1] as bigint));
    });
    t.strictSame(either.slices.map(told), wanted.map(told), 'by one condition or another');
    // Nothing 64 bits wide is above this.
    const none = await calls(t, name, '-p', `fn:${deep}7 if x > 0x1_0000_0000_0000_0000`, '--engine', 'target');
    t.equal(none.slices.length, 0);
  });
}

t.test('a condition that says nothing of what matches', async (t) => {
  t.match(await rsptrace('run', '--json', '-p', 'fn:deep7 if z > 1', elfPath('rv-o2'), '--', 'false').json(1), {
    error: { code: 'PROBE_CONDITION', hint: /x/ },
  });
});
