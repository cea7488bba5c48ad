// Functions that are not called as they are declared: their arguments lie on the stack, where a hooked return would move them.
import t, { type Test } from 'tap';
import { start } from '../support/command.js';
import { compileReleased, pollsProgram } from '../support/native.js';
import { trace } from '../support/native-trace.js';

const programs: readonly (readonly [string, (t: Test) => string])[] = [
  ['gcc passes parts of structures', (t) => compileReleased(t, 'promoted.c')],
  ['line tables alone name no arguments', (t) => compileReleased(t, 'promoted.c', ['-g1'])],
  ['a parameter pack of C++', (t) => compileReleased(t, 'packs.cpp')],
  ['rustc passes parts of structures', (t) => pollsProgram(t, 'promoted')],
];

for (const [what, build] of programs) {
  t.test(`${what}: the program computes what it does untraced, and each call is recorded`, async (t) => {
    const program = build(t);
    const untraced = (await start(program, []).ended).stdout;
    const { output, stdout } = await trace(t, [program], '--engine', 'target', '-p', 'fn:**');
    t.equal(stdout, untraced);
    const calls = new Map<string, number>();
    for (const row of output.functions) {
      const name = row.function.replace(/^.*::|[.(<].*$/g, '');
      calls.set(name, (calls.get(name) ?? 0) + row.calls);
    }
    t.ok(calls.has('plain'));
    for (const [, name = '', count] of untraced.matchAll(/(\w+)=(\d+)/g)) {
      // One whose ends cannot be patched either is left out.
      if (calls.has(name)) t.equal(calls.get(name), Number(count), name);
    }
  });
}
