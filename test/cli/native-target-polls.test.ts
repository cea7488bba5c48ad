// The engine without stops at a real gdbserver: every poll that a Rust program counts, and exceptions that pass traced calls.

import t from 'tap';
import { start } from '../support/command.js';
import { usually } from '../support/long.js';
import { compileReleased, pollsPrinted, pollsProgram } from '../support/native.js';
import { functionProbes, sameCalls, trace, withoutStops } from '../support/native-trace.js';

for (const flags of usually([[], ['-static']], (one) => one.length === 0)) {
  t.test(`g++ -O2 ${flags}: exceptions pass traced calls`, async (t) => {
    const program = compileReleased(t, 'exceptions.cpp', flags);
    const untraced = (await start(program, []).ended).stdout;
    const { output, stdout } = await trace(t, [program], '--engine', 'target', ...functionProbes.slice(0, 6));
    t.equal(stdout, untraced, 'each is caught where it is caught untraced, with its cleanups');
    t.equal(output.guest_exit, 'status 0');
    withoutStops(t, output);
    sameCalls(t, output, untraced);
    // It catches every exception, and throws each that outer catches once more: so many of its calls do not return.
    const [, rethrown] = / caught (\d+)/.exec(untraced) ?? [];
    const middle = output.functions.find((row) => row.function === 'middle');
    t.equal(middle?.lost, Number(rethrown));
    t.ok((middle?.total_ns ?? 0) > 0);
  });
}

// With exec it ends as the program with threads.
for (const mode of usually(
  ['alone', 'threads', 'fork', 'signals', 'exec'],
  (one) => one !== 'alone' && one !== 'threads',
)) {
  t.test(`${mode}: every poll that a Rust program counted, without stops`, async (t) => {
    const program = pollsProgram(t);
    const untraced = (await start(program, [mode]).ended).stdout;
    const { output, stdout } = await trace(t, [program, mode], '--engine', 'target');
    t.equal(stdout, untraced);
    t.equal(output.guest_exit, 'status 0');
    withoutStops(t, output);
    for (const [name, polls] of pollsPrinted(untraced))
      t.match(
        output.futures.find(({ future }) => future === `polls::${name}`),
        { polls, lost: 0 },
        name,
      );
  });
}
