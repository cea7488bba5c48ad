// Functions of Debian's Linux without stops, against the counts of a QEMU plugin in the same run, CPU by CPU.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ElfFile } from '../../../src/elf/index.js';
import type { ChromeRecord } from '../../trace/decode-chrome.js';
import { rsptraceWithin } from '../command.js';
import { plainRun } from '../hidden.js';
import { long } from '../long.js';
import type { Recording } from '../recording.js';
import { type LinuxArch, linuxGuest } from './boot.js';

/** Functions that both kernels have, of which each call comes by the instruction behind what a jump at its entry replaces. */
export const commonFunctions = [
  'begin_new_exec',
  'bus_add_driver',
  'device_add',
  'device_initialize',
  'do_exit',
  'do_one_initcall',
  'driver_register',
  'handle_mm_fault',
  'kernel_clone',
  'kernel_wait4',
  'ksys_write',
  'platform_device_add',
  'proc_mkdir',
  'register_filesystem',
  'request_threaded_irq',
  'schedule',
  'sysfs_create_group',
  'sysfs_create_link',
  'vfs_write',
  'wake_up_new_task',
];

/** What `init` does (see init-riscv64.s). */
const children = 20;
const questions = children * 50 + 1000;

/** The lines of a kernel's log without what no two boots have in common: times, and what is measured or random. */
function logLines(console: string): string[] {
  return [...console.matchAll(/^\[ *\d+\.\d+\] (.*?)\r?$/gm)].map(([, line = '']) => line);
}

interface Kernel {
  /** From a function's entry to the instruction behind what a jump replaces. */
  readonly behind: bigint;
  readonly getppid: string;
  readonly words: readonly string[];
  readonly harts: number;
  /** More of QEMU's command line. */
  readonly machine?: readonly string[];
}

/** What a trace says, function by function. */
interface LogEntry {
  /** How often it begins on each CPU. */
  readonly begun: number[];
  /** Calls whose return was not seen. */
  lost: number;
}

/** Reads a trace, in which every thread has a track of its own, and slices nest. */
function readCalls(trace: string): { readonly told: Map<string, LogEntry>; readonly wrong: string[] } {
  const cpus = new Map<number, number>();
  const told = new Map<string, LogEntry>();
  const tracks = new Map<number, string[]>();
  const wrong: string[] = [];
  for (const line of trace.split('\n')) {
    if (!line.startsWith('{')) continue;
    const { ph, cat, tid, name, args } = JSON.parse(line.replace(/,$/, '')) as ChromeRecord;
    const cpu = /^CPU#(\d+)$/.exec(String(args.name))?.[1];
    if (name === 'thread_name' && cpu !== undefined) cpus.set(tid - 1, Number(cpu));
    const track = tracks.get(tid) ?? [];
    tracks.set(tid, track);
    if (ph === 'B') track.push(name);
    if (ph === 'E' && track.pop() !== name) wrong.push(line);
    const call = cat === 'detail' ? track.at(-1) : undefined;
    if (call === undefined) continue;
    const { begun, lost } = told.get(call) ?? { begun: Array.from({ length: 8 }, () => 0), lost: 0 };
    told.set(call, { begun, lost: lost + (args.result === 'lost' ? 1 : 0) });
    if (args.hart === undefined) continue;
    const on = cpus.get(Number(args.hart)) ?? -1;
    begun[on] = (begun[on] ?? 0) + 1;
  }
  return { told, wrong };
}

export async function traceLinux(
  t: Test,
  arch: LinuxArch,
  { behind, getppid, words, harts, machine = [] }: Kernel,
): Promise<void> {
  const guest = linuxGuest(t, arch, harts);
  const { symbols } = await ElfFile.open(guest.elf);
  const places = new Map(
    [...commonFunctions, getppid].map((name) => [name, (symbols.named(name)[0]?.address ?? 0n) + behind]),
  );
  const [kept, trace] = [join(guest.elf, '../console'), join(guest.elf, '../out.json')];
  const probes = [...places.keys()].flatMap((name) => ['-p', `fn:${name}`]);
  // `target` would take no stop before the last page table is in use.
  const options = ['--engine', 'mixed', '--json', '-o', trace, '--console', kept];
  const command = [...guest.command(...words), ...machine, ...guest.counting([...places.values()])];
  const output = await rsptraceWithin(
    200_000,
    'run',
    ...options,
    ...probes,
    guest.elf,
    '--',
    ...command,
  ).json<Recording>();
  t.equal(output.end, 'guest-ended');
  t.match(
    output.scratch,
    /^hidden RAM .*, mapped at 0xffff(ffff[89a-f]|8000[0-9a-f])[0-9a-f]{7}, shared through a file$/,
  );
  t.equal(output.missing, 0);
  t.strictSame(
    output.probes.filter(({ engine }) => engine !== 'target'),
    [],
    'no probe stops the target',
  );

  const calls = new Map<string, number>();
  for (const { function: name, calls: count } of output.functions) calls.set(name, (calls.get(name) ?? 0) + count);
  const counted = guest.counts();
  const { told, wrong } = readCalls(readFileSync(trace, 'latin1'));
  t.strictSame(wrong, []);
  for (const [name, place] of places) {
    const counts = counted.get(place) ?? [];
    t.equal(calls.get(name), total(counts), `${name}: as often as QEMU has carried it out`);
    t.strictSame(told.get(name)?.begun, counts, 'on each CPU');
    // Tasks that have ended, and those that sleep in the end; whoever else waits in a call comes back.
    if (name !== 'do_exit' && name !== 'schedule') t.equal(told.get(name)?.lost, 0, 'every call returns');
  }
  for (let cpu = 0; cpu < harts; cpu++) t.ok(told.get('schedule')?.begun[cpu], `CPU ${cpu} has done something`);
  t.equal(calls.get(getppid), questions, 'as often as init has asked');
  t.equal(calls.get('kernel_wait4'), children, 'as often as init has waited');
  t.ok((calls.get('do_one_initcall') ?? 0) > 300, 'the boot itself is in it');

  const console = readFileSync(kept, 'latin1');
  t.match(console, /init has ended/);
  // Not its `..MP-BIOS bug: 8254 timer not connected`, which a busy host makes it print.
  t.notMatch(console, /\bOops|\bBUG:|WARNING:|Call Trace|Kernel panic/);
  // Each boot by itself takes as long as the traced one.
  if (!long) return;
  const boot = async (): Promise<string[]> => shape(logLines(await plainRun(t, guest.command(...words))));
  await compareLogs(t, shape(logLines(console)), boot);
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What the kernel measures, does at random times, or says of a machine that is busy or of where its memory lies. */
const changing =
  /\d ?([num]s|[um]secs|jiffies|[MG]Hz|MB\/s)\b|BogoMIPS|clocksource|sched_clock|tsc:|rtc|random|crng|audit|Freeing|input|rcu|hrtimer|watchdog|stall|hung|took|Ratio|0x[0-9a-f]{7}|Memory:|pages|APIC|timer|^\.\./i;

/** The rest of a log. Drivers come up in no fixed order. */
function shape(lines: readonly string[]): string[] {
  return lines.filter((line) => !changing.test(line)).toSorted();
}

/** Where the log differs from that of one boot by itself, two more tell what no two boots have in common. */
async function compareLogs(t: Test, traced: readonly string[], boot: () => Promise<string[]>): Promise<void> {
  t.ok(traced.length > 100, `${traced.length} lines`);
  const first = await boot();
  if (traced.join('\n') === first.join('\n')) return;
  const boots = [first, await boot(), await boot()];
  const always = first.filter((line) => boots.every((lines) => lines.includes(line)));
  t.strictSame(
    always.filter((line) => !traced.includes(line)),
    [],
    'no line is missing that the kernel always says',
  );
  const complaints = traced.filter((line) => /error|fail|warn|bug|unable|invalid|bad/i.test(line));
  t.strictSame(
    complaints.filter((line) => !boots.some((lines) => lines.includes(line))),
    [],
    'no complaint that it does not make by itself',
  );
}
