// The engine without stops at a real gdbserver: programs that count their own calls and compute sums, which go wrong where a register does.
import t from 'tap';
import { start } from '../support/command.js';
import { compileReleased } from '../support/native.js';
import { functionProbes, sameCalls, trace, withoutStops } from '../support/native-trace.js';

/** A tree without its times and the numbers of threads: who called whom with what, and what came of it. */
function calls(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.replace(/^.*?\[ *\d+\]/, ''));
}

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
  for (const flags of [['-no-pie'], ['-static']]) {
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
