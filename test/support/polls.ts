// Runs of a lab guest under `rsptrace run`, and what every guest is held to: the trace's polls against the guest's own counts.

import type { Test } from 'tap';
import type { TaskRow } from '../../src/trace/index.js';
import { guest, guests, parseLab } from '../qemu/guests/guests.js';
import { compareCounts } from './lab.js';
import { runLab } from './lab-run.js';
import { usually } from './long.js';
import type { Recording } from './recording.js';

export interface PollsOutput extends Recording {
  readonly version: number;
  readonly tasks: readonly TaskRow[];
}

/**
 * Names whose polls at opt 2 leave marks for only some of their polls (docs/derived-polls.md): yield_n(0) begins and ends between two
 * looks (seek, the block of block_fn, YieldN itself), a branch of an inlined select has no poll and no await slot (loser), and a
 * Future without a state number that is replaced by its like is counted once (Sleep, Join2, Select2, Recv).
 */
export const lowerBounds = new Set(['method', 'block_fn', 'loser', 'yield_n', 'sleep', 'join2', 'select2', 'recv']);

export const engines = ['target', 'stop'] as const;

export async function tracePolls(
  t: Test,
  name: string,
  more: readonly string[] = [],
  options: readonly string[] = [],
): Promise<{ output: PollsOutput; console: string; folder: string }> {
  const { stdout, console, folder } = await runLab(t, name, ['--json', ...options], { machine: more });
  return { output: JSON.parse(stdout) as PollsOutput, console, folder };
}

/** With stops only where there is nothing else: a full count takes ten thousand of them. Wakes of x86-o2 are counted elsewhere. */
const chosen = new Set(['loong-o2 stop', ...['rv-o0', 'x86-o2', 'arm-lto'].map((name) => `${name} target`)]);

/** What the guest's time is read from; the last is the host's, while the guest ran. */
const clocks = {
  ...{ riscv64: 'riscv-time', x86_64: 'x86-acpi-pm' },
  ...{ aarch64: 'running-intervals', loongarch64: 'running-intervals' },
} as const;

/** More of QEMU's arguments: without a clock of the guest its timer counts the time of stops, too. */
const icount = ['-icount', 'shift=0'];
const machines = { riscv64: [], x86_64: [], aarch64: icount, loongarch64: icount } as const;

/** Guests of an architecture, debug and release, by the engine that `chosen` has; all by each that serves it under `--long`. */
export function testCounts(t: Test, architecture: keyof typeof clocks, served: readonly string[] = engines): void {
  const ordinary = guests().filter(
    (one) => one.arch === architecture && one.source === undefined && !/-(?:long|faulty|waits)$/.test(one.name),
  );
  t.ok(ordinary.length >= 2, `${ordinary.length} guests`);
  const all = ordinary.flatMap((one) => served.map((engine) => [one, engine] as const));
  for (const [{ name, opt, checksum, arch }, engine] of usually(all, ([one, engine]) =>
    chosen.has(`${one.name} ${engine}`),
  )) {
    t.test(`${name}, --engine ${engine}: polls are those that the guest counted`, async (t) => {
      const { output, console } = await tracePolls(t, name, machines[arch], ['--engine', engine]);
      t.ok(output.probes.length >= 14);
      // With stops drops of inner Futures are left out.
      const polled = output.probes.filter((probe) => !probe.function.startsWith('drop of '));
      t.strictSame(new Set(polled.map((probe) => probe.engine)), new Set([engine]), 'each probe by this engine');
      if (engine === 'target') {
        t.ok(output.stops < 5, `${output.stops} stops`);
        t.equal(output.missing, 0);
        t.match(output.scratch, /^hidden RAM .*shared through a file$/);
      } else t.equal(output.scratch, undefined);
      const lab = parseLab(console);
      t.equal(lab.done, true, 'the guest ran to its end');
      t.equal(lab.checksum, checksum, 'and computed what it computes untraced');
      t.equal(output.end, 'guest-ended');
      t.equal(output.guest_exit, `status ${guest(name).exit}`);
      t.equal(output.clock.guest, clocks[arch] !== 'running-intervals');
      t.equal(output.clock.name, clocks[arch]);
      t.equal(output.clock.of_records, arch === 'aarch64' && engine === 'target' ? 'aarch64-cntvct' : null);
      let compared = 0;
      for (const { name: future, counted, polls, derived, timing } of compareCounts(lab, output.futures)) {
        if (opt !== '0' && lowerBounds.has(future)) {
          // Where every copy of a poll is seen at its place, nothing is derived, and none is missing.
          const isWhole = derived === 0 && polls === counted;
          t.ok(
            polls <= counted && (engine === 'stop' || derived === polls || isWhole),
            `${future}: ${polls}, ${derived} of them derived, of ${counted}`,
          );
          continue;
        }
        // What depends on the timer is the same within one run all the same.
        t.equal(polls, counted, `${future}${timing ? ' (timing)' : ''}`);
        if (opt === '0') t.equal(derived, 0, `${future}: nothing to derive at opt 0`);
        compared++;
      }
      t.ok(compared >= 16, `${compared} counts compared`);
      for (const row of output.futures) {
        // Of a poll that was inlined memory may not tell the result.
        const known = row.ready + row.pending;
        const isSure = opt === '0' || row.derived === row.polls;
        t.ok(isSure ? known === row.polls : known <= row.polls, `${row.instance}: each poll was Ready or Pending`);
        t.equal(row.lost, 0);
        t.ok(row.max_ns <= row.total_ns);
      }
      // The executor's queue is first in, first out: tasks are first polled in the order in which they were spawned.
      t.strictSame(
        output.tasks.map(({ number, polls, state }) => [number - 1, polls, state]),
        lab.tasks.map(({ id, polls }) => [id, polls, 'ready']),
        'a row a task',
      );
      t.equal(
        output.futures.some((row) => !row.future.startsWith('labkern::') && !row.future.startsWith('<labkern::')),
        false,
        "only the program's own crate",
      );
    });
  }
}
