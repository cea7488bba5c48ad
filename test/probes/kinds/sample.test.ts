// The table of `sample:` at the end of a recording.
import t from 'tap';
import type { Outcome } from '../../../src/probes/kinds/kind.js';
import { sample } from '../../../src/probes/kinds/sample.js';
import type { GuestNanos, TraceEvent } from '../../../src/trace/index.js';

const probe = { kind: 'sample', text: 'sample:10ms', periodMs: 10 };
const outcome = { samples: undefined, isProcess: false } as unknown as Outcome;

/** The report of so many functions with a sample each. */
function reported(functions: number): { readonly table: string; readonly rows: number } {
  const report = sample.report({ addresses: [], samples: probe });
  for (let i = 0; i < functions; i++) {
    const name = `f${i}`;
    const frame = { name, instance: name, address: undefined, file: undefined, line: undefined };
    const event: TraceEvent = { type: 'sample', time: i as GuestNanos, hart: 0, stack: [frame], periodNs: 1e7 };
    report.sink?.event(event);
  }
  report.sink?.end();
  const { samples } = report.json(outcome) as { samples: { functions: readonly object[] } };
  return { table: report.tables(outcome, { width: 100, color: false }).join(''), rows: samples.functions.length };
}

t.test('the table says how many functions it leaves out, which --json has', async (t) => {
  const all = reported(30);
  t.equal(all.rows, 30);
  t.notMatch(all.table, '... and');
  const cut = reported(32);
  t.equal(cut.rows, 32);
  t.equal(cut.table.match(/ f\d+$/gm)?.length, 30);
  t.match(cut.table, '... and 2 functions: --json has them\n');
});
