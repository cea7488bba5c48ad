// The committed aarch64 guests through the real command: the trace's polls against the guest's own counts.
import t from 'tap';
import { compareCounts } from '../support/lab.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import { lowerBounds, type PollsOutput, testCounts } from '../support/polls.js';

testCounts(t, 'aarch64');

t.test('arm-o2: each change of a variable is seen, and the last one is what the guest prints', async (t) => {
  const how = { machine: ['-icount', 'shift=0'] };
  const { stdout, lab } = await runLab(t, 'arm-o2', ['--json', '-p', 'watch:labkern::stats::CHECKSUM'], how);
  const { watches } = JSON.parse(stdout) as { watches: readonly { writes: number; last: string }[] };
  t.equal(watches.length, 1);
  t.equal(BigInt(watches[0]?.last ?? 0), BigInt(lab.checksum ?? -1));
  t.ok((watches[0]?.writes ?? 0) > 10);
});

/** The same kernel begun at other levels. `level`: where it then runs, as it prints that. */
const levels = [
  { title: 'EL2', machine: 'virtualization=on', cpu: 'cortex-a72', level: '2 host=false' },
  { title: 'EL2 with E2H', machine: 'virtualization=on', cpu: 'max', level: '2 host=true' },
  { title: 'EL3, down to EL1', machine: 'secure=on', cpu: 'cortex-a72', level: '1 host=false' },
  { title: 'EL3, down to EL2', machine: 'secure=on,virtualization=on', cpu: 'cortex-a72', level: '2 host=false' },
] as const;

for (const { title, machine, cpu, level } of usually(levels, ({ title }) => title === 'EL2')) {
  t.test(`arm-o2 begun at ${title}: no probe stops, and polls are those that the guest counted`, async (t) => {
    const how = { machine: ['-M', machine, '-cpu', cpu, '-semihosting', '-icount', 'shift=0'] };
    // More probes than there is room for jumps behind the text: short ones reach the trampolines.
    const options = ['--json', '--engine', 'target', '-p', 'poll:**', '-p', 'fn:labkern::**'];
    const { stdout, console, lab } = await runLab(t, 'arm-o2', options, how);
    t.match(console, `LAB level ${level}`);
    const output = JSON.parse(stdout) as PollsOutput;
    t.ok(output.probes.length >= 100);
    const others = output.probes.filter(({ engine }) => engine !== 'target');
    t.same(
      others.map(({ why }) => why),
      ['the recording ends there'],
    );
    t.match(output.scratch, /^hidden RAM .*shared through a file$/);
    t.ok(output.stops < 5, `${output.stops} stops`);
    const sure = compareCounts(lab, output.futures).filter(({ name }) => !lowerBounds.has(name));
    t.ok(sure.length >= 8, `${sure.length} counts compared`);
    for (const { name, polls, counted } of sure) t.equal(polls, counted, name);
  });
}

t.test('arm-o2 at EL2: each interrupt is seen', async (t) => {
  const how = { machine: ['-M', 'virtualization=on', '-icount', 'shift=0'] };
  const { stdout, lab } = await runLab(t, 'arm-o2', ['--json', '-p', 'irq:**'], how);
  const { traps } = JSON.parse(stdout) as { traps: readonly { calls: number }[] };
  t.same(
    traps.map(({ calls }) => calls),
    [lab.exec?.ticks],
  );
});
