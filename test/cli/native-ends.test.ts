// Functions with arguments on the stack, whose return address is not touched: jumps at their ends report their return.
import t from 'tap';
import { start } from '../support/command.js';
import { compileReleased } from '../support/native.js';
import { calls, sameCalls, trace, withoutStops } from '../support/native-trace.js';

/** Those of gcc 12 at -O2 whose ends have room for a jump, and what they call. */
const patched = ['many', 'deep', 'tail', 'plain', 'struck', 'leaves'];
/** One jumps to `many` at its end, the other has a single byte there. */
const stopping = ['onward', 'vary'];

const probes = (names: readonly string[]): string[] => names.flatMap((name) => ['-p', `fn:${name}*`]);

t.test(
  'returns, recursion, tail jumps, longjmp, some by stops: arguments, results and nesting as with stops',
  async (t) => {
    const program = compileReleased(t, 'stacked.c');
    const untraced = (await start(program, ['run', '15']).ended).stdout;
    const auto = await trace(t, [program, 'run', '15'], '--engine', 'mixed', ...probes([...patched, ...stopping]));
    t.equal(auto.stdout, untraced);
    t.equal(auto.output.missing, 0);
    const named = auto.output.probes as readonly { function: string; engine: string; why?: string }[];
    t.strictSame(
      named
        .filter(({ engine }) => engine === 'target')
        .map((probe) => probe.function)
        .sort(),
      patched.toSorted(),
    );
    t.match(
      named.find((probe) => probe.function === 'onward')?.why,
      /jmp .* leads to code that may take arguments on the stack/,
    );
    t.match(named.find((probe) => probe.function === 'vary')?.why, /there is no room for a jump at the end at/);
    sameCalls(t, auto.output, untraced);
    const stop = await trace(t, [program, 'run', '15'], '--engine', 'stop', ...probes([...patched, ...stopping]));
    t.strictSame(calls(auto.text), calls(stop.text));
    t.ok(calls(stop.text).length > 300);
  },
);

t.test('by default the others take no stop: their calls are counted, and have no durations', async (t) => {
  const program = compileReleased(t, 'stacked.c');
  const untraced = (await start(program, ['threads', '300']).ended).stdout;
  const { output, stdout, text } = await trace(t, [program, 'threads', '300'], ...probes([...patched, ...stopping]));
  t.equal(stdout, untraced);
  withoutStops(t, output);
  sameCalls(t, output, untraced);
  for (const { function: name, calls, lost, total_ns } of output.functions) {
    if (name.startsWith('leaves')) continue; // It ends by longjmp.
    const isCounted = stopping.includes(name.split('.')[0] ?? '');
    t.equal(lost, isCounted ? calls : 0, name);
    t.equal(total_ns > 0, !isCounted, name);
  }
  const named = output.probes as readonly { function: string; engine: string; partly?: string }[];
  t.strictSame(
    named.flatMap(({ function: name, partly }) => (partly?.startsWith('its calls are counted') ? [name] : [])).sort(),
    stopping.toSorted(),
  );
  t.notMatch(text, /(onward|vary).*\{/, 'nothing is inside a call without an end');
});

t.test('four threads, and a child that returns through the same ends', async (t) => {
  const program = compileReleased(t, 'stacked.c');
  for (const mode of ['threads', 'fork']) {
    const untraced = (await start(program, [mode, '300']).ended).stdout;
    if (mode === 'fork') t.match(untraced, /^child 7$/m);
    const { output, stdout } = await trace(t, [program, mode, '300'], '--engine', 'target', ...probes(patched));
    t.equal(stdout, untraced);
    withoutStops(t, output);
    sameCalls(t, output, untraced.replace(/ (onward|vary)=\d+/g, ''));
  }
});

t.test(
  'a function left by longjmp and called again in the same place is no loop, with stops and without',
  async (t) => {
    const program = compileReleased(t, 'again.c');
    for (const engine of ['stop', 'mixed']) {
      const { output, stdout } = await trace(t, [program], '--engine', engine, ...probes(['again', 'spin']));
      t.match(stdout, /^calls again=60 spin=60$/m);
      sameCalls(t, output, stdout);
      const row = output.functions.find(({ function: name }) => name.startsWith('again'));
      t.match(row, { lost: 40 }, 'those that longjmp ended');
    }
  },
);
