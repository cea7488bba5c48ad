// The committed aarch64 guests through the real command: the trace's polls against the guest's own counts.
import t from 'tap';
import { runLab } from '../support/lab-run.js';
import { testCounts } from '../support/polls.js';

testCounts(t, 'aarch64');

t.test('arm-o2: each change of a variable is seen, and the last one is what the guest prints', async (t) => {
  const how = { machine: ['-icount', 'shift=0'] };
  const { stdout, lab } = await runLab(t, 'arm-o2', ['--json', '-p', 'watch:labkern::stats::CHECKSUM'], how);
  const { watches } = JSON.parse(stdout) as { watches: readonly { writes: number; last: string }[] };
  t.equal(watches.length, 1);
  t.equal(BigInt(watches[0]?.last ?? 0), BigInt(lab.checksum ?? -1));
  t.ok((watches[0]?.writes ?? 0) > 10);
});
