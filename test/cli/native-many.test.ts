// A process with a thousand probes: gdbserver goes over all breakpoints at each insertion and each stop, so it gets few.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { rsptrace, scratchFolder } from '../support/command.js';
import type { Recording } from '../support/recording.js';

/** More than may have a breakpoint each (src/engines/engines.ts). */
const functions = 1050;

t.test('trampolines are placed where the program is entered, instead of a breakpoint a function', async (t) => {
  const folder = scratchFolder(t);
  const file = (name: string): string => join(folder, name);
  const numbers = Array.from({ length: functions }, (_, i) => i);
  const bodies = numbers.map((i) => `__attribute__((noinline)) int f${i}(int x) { n += x; return n + ${i}; }`);
  const calls = numbers.map((i) => `f${i}(${i});`).join('');
  writeFileSync(file('many.c'), `volatile int n;\n${bodies.join('\n')}\nint main() { ${calls} return 0; }\n`);
  execFileSync('gcc', ['-O1', '-o', file('many'), file('many.c')]);
  const options = ['--json', '--record-wire', file('wire'), '-p', 'fn:f*', '-o', file('t.jsonl')];
  const { functions: rows } = await rsptrace('run', ...options, file('many')).json<Recording>();
  const own = rows.filter((row) => /^f\d+$/.test(row.function));
  t.equal(own.length, functions);
  t.ok(own.every((row) => row.calls === 1));
  const inserted = readFileSync(file('wire'), 'latin1').match(/Z0,/g) ?? [];
  t.ok(inserted.length < 100, `${inserted.length} breakpoints`);
});
