// Polls that panic, at a real gdbserver: caught around the outermost poll, in the middle of one that goes on, and by tokio.

import t from 'tap';
import { long, usually } from '../support/long.js';
import { pollsProgram } from '../support/native.js';
import { trace } from '../support/native-trace.js';

for (const engine of ['target', 'stop']) {
  for (const name of usually(['panics-o0', 'panics-o2'] as const, (one) => one === 'panics-o2')) {
    t.test(`${name}, --engine ${engine}: a poll that panics is no poll that is lost`, async (t) => {
      const { output, stdout, text } = await trace(t, [pollsProgram(t, name)], '--engine', engine);
      t.match(stdout, /^leaves 18 caught 6$/m);
      const rowOf = (future: string): unknown => output.futures.find((row) => row.future === `panics::${future}`);
      // Three of six tasks panic, each in its leaf; `shields` catches that of its leaf and goes on.
      t.match(rowOf('passes_on'), { polls: 18, ready: 3, pending: 12, panicked: 3, lost: 0 });
      t.match(rowOf('shields'), { polls: 18, ready: 6, pending: 12, panicked: 0, lost: 0 });
      t.match(rowOf('leaf'), { polls: 42, ready: 12, pending: 24, panicked: 6, lost: 0 });
      t.equal(text.match(/= panicked .*panics::passes_on/g)?.length, 3, 'so the trace says');
    });
  }

  if (engine === 'stop' && !long) continue;
  t.test(`tokio, --engine ${engine}: a task that panics`, async (t) => {
    const { output, stdout } = await trace(t, [pollsProgram(t, 'tokio'), '2', 'panics'], '--engine', engine);
    t.match(stdout, /^caught 5$/m);
    const row = output.futures.find(({ future }) => future === 'tokio_program::may_panic');
    t.match(row, { polls: 20, ready: 5, pending: 10, panicked: 5, lost: 0 });
  });
}
