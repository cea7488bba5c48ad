// The committed loongarch64 guests through the real command: the trace's polls against the guest's own counts.
import t from 'tap';
import { runLab } from '../support/lab-run.js';
import { testCounts } from '../support/polls.js';

const machine = ['-icount', 'shift=0'];

testCounts(t, 'loongarch64', ['stop']);

t.test('loong-o2: each change of a variable is seen, and the last one is what the guest prints', async (t) => {
  const { stdout, lab } = await runLab(t, 'loong-o2', ['--json', '-p', 'watch:labkern::stats::CHECKSUM'], { machine });
  const { watches } = JSON.parse(stdout) as { watches: readonly { writes: number; last: string }[] };
  t.equal(watches.length, 1);
  t.equal(BigInt(watches[0]?.last ?? 0), BigInt(lab.checksum ?? -1));
  t.ok((watches[0]?.writes ?? 0) > 10);
});
