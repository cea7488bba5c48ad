// How long polls take that were recorded by stops, against the same polls recorded without: what stops add to QEMU's clock is taken out.
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import { elfPath, qemuArgv } from './guests/guests.js';

interface Row {
  readonly future: string;
  readonly polls: number;
  readonly total_ns: number;
  readonly total_error_ns?: number;
}

interface Output {
  readonly leak?: { readonly total_ns: number; readonly measured: number; readonly exact: boolean };
  readonly stops: number;
  readonly futures: readonly Row[];
}

/** Events after which a recording ends that asks only whether something is measured. */
const few = ['--max-events', '300'];

async function run(
  t: Test,
  name: string,
  engine: 'stop' | 'target',
  extra: readonly string[],
  options: readonly string[] = [],
) {
  const trace = join(scratchFolder(t), 'out.json');
  const probes = ['level3', 'leaf_io'].flatMap((future) => ['-p', `poll:${future}`]);
  const args = ['run', '--json', '--engine', engine, ...options, ...probes, '-o', trace, elfPath(name)];
  const { status, stdout, stderr } = await rsptrace(...args, '--', ...qemuArgv(name, extra)).ended;
  t.equal(status, 0, stderr.slice(-300));
  const output = JSON.parse(stdout) as Output;
  const level3 = output.futures.find(({ future }) => future.endsWith('::level3'));
  if (!level3) throw new Error('no row of level3');
  return { output, level3 };
}

for (const name of ['rv-o2', 'x86-o2']) {
  t.test(`${name}: under -icount polls take at most twice as long with stops`, async (t) => {
    const without = await run(t, name, 'target', ['-icount', 'shift=0']);
    const stopped = await run(t, name, 'stop', ['-icount', 'shift=0']);
    t.equal(without.output.leak, undefined);
    const { leak, stops } = stopped.output;
    t.ok(leak?.exact && leak.measured > stops / 2, `${leak?.measured} of ${stops} stops measured`);
    t.equal(stopped.level3.polls, without.level3.polls);
    const [truth, told] = [without.level3.total_ns, stopped.level3.total_ns];
    // The error is half a tick a stop: 50 ns on riscv64, 140 ns on x86_64.
    const error = stopped.level3.total_error_ns ?? 0;
    t.ok(told + error > truth / 2 && told - error < truth * 2, `${told} +- ${error} ns with stops, ${truth} without`);
    t.ok((leak?.total_ns ?? 0) > 10 * told, `${leak?.total_ns} ns were taken out`);
  });
}

t.test('without -icount a stop with nothing to do is measured, and the rest is an error', async (t) => {
  const { output, level3 } = await run(t, 'rv-o2', 'stop', [], few);
  t.ok(output.leak && !output.leak.exact && output.leak.measured >= 24, JSON.stringify(output.leak));
  t.ok((level3.total_error_ns ?? 0) > 0, `+- ${level3.total_error_ns} ns`);
});

t.test('with sleep=off the clock is left alone', async (t) => {
  const { output, level3 } = await run(t, 'rv-o2', 'stop', ['-icount', 'shift=0,sleep=off'], few);
  t.equal(output.leak, undefined);
  t.equal(level3.total_error_ns, undefined);
});
