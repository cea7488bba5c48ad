// What Debian's Linux has counted itself, at two moments since it booted: interrupts (/proc/interrupts, Documentation/filesystems/proc.rst)
// and context switches (`ctxt` of /proc/stat).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { rsptraceWithin } from '../command.js';
import { linuxGuest } from './boot.js';

interface Call {
  readonly time_ns?: number;
  readonly name?: string;
  readonly instance?: string;
  readonly thread?: number;
  readonly detail?: string;
}

/** arch/x86/include/asm/irq_vectors.h: LOCAL_TIMER_VECTOR, and ISA_IRQ_VECTOR of the PIT. */
const vectors = { LOC: 'irq::vector_236', timer: 'irq::vector_48' };

/** Interrupts and context switches are as many as Linux counts. The boot takes thousands of stops. */
export async function asLinuxCounts(t: Test): Promise<void> {
  const guest = linuxGuest(t, 'x86_64', 1, 'counts');
  const [trace, kept] = [join(guest.elf, '../out.jsonl'), join(guest.elf, '../console')];
  const probes = ['irq:**', 'switch:', 'syscall:mkdir'].flatMap((probe) => ['-p', probe]);
  const command = [...guest.command('nokaslr', 'quiet'), '-icount', 'shift=0'];
  const args = ['run', '--json', '--console', kept, '-o', trace, ...probes, guest.elf, '--', ...command];
  const { status, stderr } = await rsptraceWithin(900_000, ...args).ended;
  t.equal(status, 0, stderr.slice(-300));

  const lines = readFileSync(trace, 'utf8').trim().split('\n');
  const calls = lines.map((line) => JSON.parse(line) as Call).filter(({ time_ns: time }) => time !== undefined);
  const times = (isWanted: (call: Call) => boolean): number[] =>
    calls
      .filter(isWanted)
      .map(({ time_ns: time = 0 }) => time)
      .sort((a, b) => a - b);
  const of = (name: string): number[] => times((call) => call.name === name);
  const interrupts = times(({ name }) => name?.startsWith('irq::') === true);
  // Each is on the track of its hart and on that of its thread.
  const switches = times(({ instance, thread }) => instance?.startsWith('thread ') === true && thread === undefined);
  const mark = (name: string): number => times(({ detail }) => detail?.includes(`"/tmp/${name}"`) === true)[0] ?? 0;

  const console = readFileSync(kept, 'latin1').replaceAll('\r', '');
  for (const round of [1, 2]) {
    const text = console.slice(console.indexOf(`BEGIN ${round}`), console.indexOf(round === 1 ? 'BEGIN 2' : 'END'));
    const rows = [...text.matchAll(/^ *(\w+): +(\d+) {2,}\S.*$/gm)].map(([row, , count]) => ({
      row,
      count: Number(count),
    }));
    const counted = (end: string): number => rows.find(({ row }) => row.endsWith(end))?.count ?? -1;
    t.equal(of(vectors.timer).length, counted('timer'), 'the first timer, which Linux uses no longer');
    // There is one moment when both numbers are so.
    const begun = { all: rows.reduce((sum, { count }) => sum + count, 0), LOC: counted('Local timer interrupts') };
    const [all, LOC] = [interrupts, of(vectors.LOC)];
    const from = Math.max(mark(`begin${round}`), all[begun.all - 1] ?? 0, LOC[begun.LOC - 1] ?? 0);
    const to = Math.min(mark(`middle${round}`), all[begun.all] ?? Infinity, LOC[begun.LOC] ?? Infinity);
    t.ok(from < to && begun.LOC > 100, `${begun.all} interrupts, ${begun.LOC} of them of the timer`);

    const switched = Number(/^ctxt (\d+)$/m.exec(text)?.[1]);
    const before = (time: number): number => switches.filter((each) => each < time).length;
    const bounds = [before(mark(`middle${round}`)), before(mark(`end${round}`))] as const;
    t.ok(bounds[0] <= switched && switched <= bounds[1], `${switched} switches, of ${bounds[0]} to ${bounds[1]}`);
  }
}
