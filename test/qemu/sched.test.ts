// A kernel whose threads migrate between harts and change stacks in the middle of calls: every call once, each with its return, and a trace in which
// what is on one stack nests. The witnesses: the guest's own counts, and QEMU's.
// Either engine with three harts, and trampolines with one; all eight under `scripts/test --long`.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { scratchFolder } from '../support/command.js';
import { instructionCounts } from '../support/instruction-counts.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { consistent } from '../support/table-rows.js';
import type { ChromeRecord } from '../trace/decode-chrome.js';
import { elfPath, guest } from './guests/guests.js';

const threads = 8;
/** Of these, each thread's last call never returns. */
const neverReturn = new Set(['exit', 'sched', 'start', 'swtch']);
const all = ['fn:labsched::sched::*', 'fn:labsched::work::*', 'fn:swtch'];
/** Without those that give way themselves: nothing that is traced says that a stack is left. */
const some = ['fn:labsched::work::*'];

/** Whether a thread comes to another hart is up to the host, so a run in which none does is done again. */
async function migrated(t: Test, name: string, harts: number, engine: string): Promise<void> {
  const probes = engine === 'target' ? all : some;
  for (let tries = 0; tries < 4; tries++) if (await traced(t, name, harts, engine, probes)) return;
  t.fail('threads migrate');
}

/** Gives whether threads migrated, if there is more than one hart. */
async function traced(
  t: Test,
  name: string,
  harts: number,
  engine: string,
  probes: readonly string[],
): Promise<boolean> {
  const folder = scratchFolder(t);
  const witness = instructionCounts(folder);
  const places = engine === 'target' ? new Map(behindEntries(name)) : new Map<string, bigint>();
  const machine = ['-smp', `${harts}`, ...witness.counting([...places.values()])];
  const words = ['--json', '--engine', engine, ...probes.flatMap((probe) => ['-p', probe])];
  const { stdout, console, lab, trace } = await runLab(t, name, words, { file: 'out.json', machine });
  const output = JSON.parse(stdout) as Recording;
  t.same([output.end, output.missing], ['guest-ended', 0]);
  t.strictSame(new Set(output.probes.map((probe) => probe.engine)), new Set([engine]));

  const own = (path: string): string => path.split('::').at(-1) ?? path;
  t.strictSame(
    output.functions.map((row) => [own(row.function), row.calls, row.lost]),
    output.functions.map((row) => {
      const called = own(row.function);
      return [called, lab.stats.get(called)?.calls, neverReturn.has(called) ? threads : 0];
    }),
    "the guest's own counts, and nothing is lost but what never returns",
  );
  t.ok(output.functions.length >= (probes === all ? 17 : 8));
  for (const row of output.functions) consistent(t, row);
  const counted = witness.counts();
  for (const [called, place] of places) {
    const row = output.functions.find((one) => own(one.function) === called);
    if (row) t.equal(row.calls, sum(counted.get(place) ?? []), `${called}: as often as QEMU has carried it out`);
  }

  const told = slices(readFileSync(trace, 'latin1'));
  t.strictSame(told.wrong, [], 'slices nest');
  t.equal(told.slices, sum(output.functions.map((row) => row.calls)), 'a slice a call');
  t.equal(told.lost, sum(output.functions.map((row) => row.lost)));
  // Calls that were open when it was first seen that stacks are switched are on the harts' tracks.
  t.ok(told.onStacks > told.slices * 0.8, `${told.onStacks} of ${told.slices} on tracks of stacks`);
  t.ok(told.stacks >= threads - 2 && told.stacks <= threads + 2 * harts, `${told.stacks} stacks`);
  return harts === 1 || /LAB migrated [1-9]/.test(console);
}

/** Where an instruction begins behind all that a jump at a function's entry replaces, and in front of any branch. */
function behindEntries(name: string): [string, bigint][] {
  const riscv = guest(name).arch === 'riscv64';
  const objdump = riscv ? 'riscv64-linux-gnu-objdump' : 'objdump';
  const code = execFileSync(objdump, ['-d', '--no-show-raw-insn', elfPath(name)], { encoding: 'utf8' });
  return ['outer', 'middle', 'inner', 'put', 'take', 'worker', 'descend'].flatMap((called) => {
    const [, entry = '', body = ''] =
      new RegExp(`^(\\w+) <\\w+4work\\d+${called}>:\\n((?:.+\\n)+)`, 'm').exec(code) ?? [];
    const lines = [...body.matchAll(/^ *(\w+):\s+(\S+)/gm)].map(
      ([, at, word = '']) => [BigInt(`0x${at}`), word] as const,
    );
    const place = lines.find(([at]) => at >= BigInt(`0x${entry}`) + (riscv ? 8n : 5n))?.[0];
    const branch = lines.find(([, word]) => /^(j|b|call|ret)/.test(word))?.[0];
    return place !== undefined && branch !== undefined && place <= branch ? [[called, place]] : [];
  });
}

function slices(trace: string): { wrong: string[]; slices: number; lost: number; onStacks: number; stacks: number } {
  const open = new Map<number, string[]>();
  const told = { wrong: [] as string[], slices: 0, lost: 0, onStacks: 0, stacks: 0 };
  for (const line of trace.split('\n')) {
    if (!line.startsWith('{')) continue;
    const { ph, tid, name, args } = JSON.parse(line.replace(/,$/, '')) as ChromeRecord;
    const track = open.get(tid) ?? [];
    open.set(tid, track);
    if (name === 'thread_name' && /^stack 0x/.test(String(args.name))) told.stacks++;
    if (args.result === 'lost') told.lost++;
    if (ph === 'B') {
      track.push(name);
      told.slices++;
    }
    // The instant that says what else is known of a call, on its track.
    if (ph === 'i' && args.hart !== undefined) told.onStacks++;
    if (ph === 'E' && track.pop() !== name) told.wrong.push(line);
  }
  return told;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

for (const name of ['rv-sched', 'x86-sched'])
  for (const harts of [1, 3]) {
    const title = `${name}, ${harts} ${harts === 1 ? 'hart' : 'harts'}`;
    for (const engine of usually(['target', 'stop'], (one) => `${name} ${harts} ${one}` === 'rv-sched 3 target'))
      t.test(`${title}, by engine ${engine}`, (t) => migrated(t, name, harts, engine));
  }
