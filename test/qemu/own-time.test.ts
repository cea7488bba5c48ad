// QEMU's -icount counts instructions, so what trampolines add is known: durations are those of the program's own instructions.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { disassemble } from '../arch/objdump.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { long, usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { elfPath, qemuArgv } from './guests/guests.js';

/** 128 ns an instruction: more than a tick of riscv's clock (100 ns). */
const nanos = 128;
const icount = ['-icount', 'shift=7,sleep=off'];

interface Output extends Recording {
  readonly own_time?: { readonly least_ns: number; readonly most_ns: number; readonly total_ns: number };
}

async function run(t: Test, name: string, probes: readonly string[], machine = icount) {
  const words = ['--json', '--engine', 'target', ...probes.flatMap((probe) => ['-p', probe])];
  const { stdout, trace } = await runLab(t, name, words, { file: 'out.json', machine });
  const records = JSON.parse(readFileSync(trace, 'utf8')) as { ph: string; name: string; cat: string; ts: number }[];
  return { output: JSON.parse(stdout) as Output, durations: durationsOf(records), records };
}

/** How long each call and poll took, in instructions, by name, in the order in which they ended. */
function durationsOf(records: readonly { ph: string; name: string; cat: string; ts: number }[]) {
  const open: (typeof records)[number][] = [];
  const found = new Map<string, number[]>();
  for (const record of records) {
    if (record.ph === 'B') open.push(record);
    const begun = record.ph === 'E' ? open.pop() : undefined;
    if (begun === undefined || begun.cat === 'state') continue;
    const all = found.get(begun.name) ?? [];
    found.set(begun.name, all);
    all.push(((record.ts - begun.ts) * 1000) / nanos);
  }
  return found;
}

const guests = [
  ['rv-o2', 'riscv64'],
  ['x86-o2', 'x86_64'],
] as const;
for (const [name, machine] of usually(guests, ([one]) => one === 'rv-o2')) {
  t.test(`${name}: a call takes as long as its instructions, whatever is traced inside it`, async (t) => {
    const code = disassemble(machine, elfPath(name));
    const all = await run(t, name, ['fn:labkern::work::deep*']);
    const outer = await run(t, name, ['fn:labkern::work::deep0']);
    t.equal(all.output.missing, 0);
    const own = all.output.own_time;
    t.equal(own && own.least_ns % nanos, 0);
    t.ok(own && own.total_ns >= own.least_ns * (all.output.events - 10), `${own?.total_ns} ns in all`);
    t.match(JSON.stringify(all.records.at(-1)), /"guest time":"an event took \d+ to \d+ ns of it, which durations/);
    let expected = 0;
    for (const { function: called, address } of all.output.probes.toReversed()) {
      const start = code.findIndex((line) => line.address === BigInt(address));
      const end = code.findIndex(
        ({ mnemonic, operands }, at) =>
          at >= start && (mnemonic === 'ret' || (mnemonic === 'c.jr' && operands === 'ra')),
      );
      // Each calls the next: no branch, no loop.
      expected += end - start + 1;
      for (const { durations } of called.endsWith('deep0') ? [all, outer] : [all]) {
        const took = [...(durations.get(called) ?? [])].sort((a, b) => a - b);
        t.ok(took.length > 100, `${called}: ${took.length} calls`);
        const [least = 0, median = 0] = [took[0], took[took.length >> 1]];
        t.ok(
          Math.abs(least - expected) < 1.2,
          `${called}: ${expected} instructions, at least ${least.toFixed(2)} told`,
        );
        t.ok(Math.abs(median - expected) < 1.2, `mostly ${median.toFixed(2)}: the others were interrupted`);
      }
    }
  });

  if (name === 'x86-o2' && !long) continue;
  t.test(`${name}: a poll takes as long with all others traced as without`, async (t) => {
    const alone = await run(t, name, ['poll:chain_task', 'poll:level3']);
    const all = await run(t, name, ['poll:chain_task', 'poll:level*', 'poll:leaf_io', 'fn:labkern::exec::poll_task']);
    for (const poll of ['chain_task', 'level3']) {
      const of = (from: typeof all) => from.durations.get(`labkern::work::${poll}`) ?? [];
      const [one, other] = [of(alone), of(all)];
      t.equal(one.length, other.length, `${one.length} polls of ${poll}`);
      t.ok(one.length > 100);
      const apart = one.map((took, at) => Math.abs(took - (other[at] ?? 0)));
      const same = apart.filter((instructions) => instructions < 2.5).length;
      // Less than an interrupt takes.
      const wrong = apart.filter((instructions) => instructions >= 2.5 && instructions < 40).length;
      t.ok(wrong <= one.length / 20, `${poll}: ${wrong} polls are told somewhat longer or shorter`);
      // Where the timer interrupts is not the same in both.
      t.ok(same > one.length / 3, `${poll}: ${same} of ${one.length} polls are the same`);
    }
  });
}

t.test('where the clock is the host’s, nothing is taken out', async (t) => {
  const { output, records } = await run(t, 'rv-o2', ['fn:labkern::work::deep7'], []);
  t.equal(output.own_time, undefined);
  t.notMatch(JSON.stringify(records.at(-1)), /guest time/);
});

t.test('where no event is told, nothing is said of what one takes', async (t) => {
  const probes = ['-p', 'count:labkern::work::deep0', '-p', 'hist(x):labkern::work::deep0'];
  const args = ['run', '--engine', 'target', ...probes, '-o', join(scratchFolder(t), 'out.json')];
  const { status, stdout } = await rsptrace(...args, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2', icount)).ended;
  t.equal(status, 0);
  t.match(stdout, /^0 events, \d+ stops, in \d/m);
});

t.test('a stop before the first timer, which moves the clock too far: says what to leave out', async (t) => {
  const args = ['run', '--json', '--engine', 'target', '-p', 'fn:labkern::**', '-o', join(scratchFolder(t), 'out.txt')];
  const early = rsptrace(...args, elfPath('rv-o2'), '--', ...qemuArgv('rv-o2', ['-icount', 'shift=0,sleep=off']));
  const { status, stdout } = await early.ended;
  t.not(status, 0);
  t.match(JSON.parse(stdout), { error: { code: 'COUNTER_UNKNOWN', hint: /sleep=off/ } });
});
