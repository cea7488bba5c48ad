// `sample:` beside other probes in one trace: shares that the sources of the guests say, polls and calls that the guests count themselves.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { guest, parseLab } from '../qemu/guests/guests.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { compareCounts } from '../support/lab.js';
import { long, usually } from '../support/long.js';
import { compileC, gdbserver } from '../support/native.js';
import { lowerBounds, tracePolls } from '../support/polls.js';
import type { Recording } from '../support/recording.js';

const folder = scratchFolder(t);
const source = (name: string): string => join(import.meta.dirname, '../profile', name);
const built = (name: string): string => join(folder, name);
/** As the sources say. */
const shares: Readonly<Record<string, number>> = { burn_half: 0.5, burn_third: 0.3, burn_fifth: 0.2 };

// Debug info says that the functions take no arguments, so that they run without stops; calls are long beside a record.
const riscv = built('shares-riscv64.elf');
execFileSync('riscv64-linux-gnu-as', [
  '-g',
  '--defsym',
  'SCALE=20',
  '-march=rv64gc',
  source('shares-riscv64.S'),
  '-o',
  `${riscv}.o`,
]);
execFileSync('riscv64-linux-gnu-ld', ['-Ttext=0x80000000', `${riscv}.o`, '-o', riscv]);
const x86 = built('shares-x86_64.elf');
execFileSync('gcc', ['-c', '-g', '-Wa,--defsym,SCALE=20', source('shares-x86_64.S'), '-o', `${x86}.o`]);
execFileSync('ld', ['-Ttext=0x100000', `${x86}.o`, '-o', x86]);

interface Samples {
  readonly wanted: number;
  readonly looks: number;
  readonly taken: number;
  readonly idle: number;
  readonly own: number;
  readonly at_probes: number;
  readonly stood_ns: number;
  readonly functions: readonly { readonly name: string; readonly self: number; readonly total: number }[];
}

interface Output extends Recording {
  readonly samples: Samples;
}

/**
 * Within three points, and four standard deviations of so few samples. On a machine too busy for all samples that were
 * wanted, neighbours often find the guest at one place, because it has not run between them: so many fewer count.
 */
function sharesAreRight(
  t: Pick<Test, 'ok'>,
  { functions, looks, wanted }: Samples,
  expected: Readonly<Record<string, number>>,
): void {
  const rows = functions.filter(({ name }) => name in expected);
  const count = rows.reduce((sum, { total }) => sum + total, 0);
  t.ok(count >= 50, `${count} samples`);
  const apart = count * Math.min(1, looks / wanted);
  for (const [name, share] of Object.entries(expected)) {
    const measured = (rows.find((row) => row.name === name)?.total ?? 0) / count;
    const tolerance = 0.03 + 4 * Math.sqrt((share * (1 - share)) / apart);
    t.ok(Math.abs(measured - share) <= tolerance, `${name}: ${measured} for ${share}`);
  }
}

const machines = [
  ['riscv64', riscv, 'qemu-system-riscv64', '-M', 'virt', '-bios', 'none', '-nographic', '-kernel', riscv],
  ['x86_64', x86, 'qemu-system-x86_64', '-nographic', '-display', 'none', '-kernel', x86],
] as const;

// Of x86_64 what a profile has is sampled as this is.
for (const [arch, elf, ...qemu] of usually(machines, ([arch]) => arch === 'riscv64')) {
  t.test(`${arch}: known shares, while calls are traced without stops`, async (t) => {
    const trace = built(`${arch}.pftrace`);
    const probes = ['-p', 'sample:200hz', '-p', 'fn:burn_*', '-p', 'count:burn_third'];
    const record = async (duration: string): Promise<Output> => {
      const limit = ['--duration', duration, '--force', '-o', trace];
      return rsptrace('run', '--json', ...probes, ...limit, elf, '--', ...qemu).json<Output>();
    };
    let output = await record(long ? '6s' : '2s');
    // A busy host looks seldom: then for longer.
    for (const longer of ['8s', '60s']) if (output.samples.taken < 60) output = await record(longer);
    const { samples, events, functions, probes: used } = output;
    t.strictSame([...new Set(used.map(({ engine }) => engine))], ['target'], 'no probe stops');
    sharesAreRight(t, samples, shares);
    t.ok(samples.looks <= samples.wanted * 1.1 + 2, `${samples.looks} of ${samples.wanted}`);
    t.equal(samples.taken + samples.idle + samples.own, samples.looks, 'one hart a look');
    t.ok(samples.stood_ns > 0);
    const calls = functions.map((row) => row.calls);
    t.ok(calls.length === 3 && Math.max(...calls) - Math.min(...calls) <= 1, `called in turn: ${calls}`);
    const lines = built(`${arch}.jsonl`);
    t.equal((await rsptrace('convert', trace, '-o', lines).ended).status, 0);
    const kinds = readFileSync(lines, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    t.equal(kinds.filter(({ type }) => type === 'sample').length, samples.taken, 'all are in the trace');
    const told = JSON.parse((await rsptrace('info', '--json', trace).ended).stdout) as { samples: Samples };
    t.match(samples, told.samples, 'info tells what the recording told');
    t.ok(events > samples.taken);
    const folded = built(`${arch}.folded`);
    t.equal((await rsptrace('convert', trace, '-o', folded).ended).status, 0);
    t.match(readFileSync(folded, 'utf8'), /\[samples\];.*work;burn_half \d+/);
  });
}

const ways = [
  ['rv-o2', 'target'],
  ['rv-o2', 'stop'],
  ['x86-o2', 'target'],
] as const;
// Usually the calls of the next test are counted while samples are taken.
for (const [name, engine] of usually(ways, () => false))
  t.test(`${name}, --engine ${engine}: polls are those that the guest counted`, async (t) => {
    // Polls in inner loops are left out where each would stop.
    const polls = engine === 'stop' ? ['poll:labkern::work::chain_task'] : ['poll:labkern::**'];
    const probes = [...polls, 'sample:1ms'].flatMap((probe) => ['-p', probe]);
    const { output, console } = await tracePolls(t, name, [], ['--engine', engine, ...probes]);
    const lab = parseLab(console);
    t.equal(lab.checksum, guest(name).checksum, 'it computed what it computes untraced');
    const sure = compareCounts(lab, output.futures).filter(({ name: future }) =>
      engine === 'stop' ? future === 'chain_task' : !lowerBounds.has(future),
    );
    t.ok(sure.length >= (engine === 'stop' ? 1 : 16), `${sure.length} counts compared`);
    for (const { name: future, counted, polls } of sure) t.equal(polls, counted, future);
    t.equal(output.missing, 0);
    const { samples } = output as unknown as Output;
    t.ok(samples.taken > 0, `${samples.taken} samples`);
    t.ok(samples.functions.some((row) => row.name.startsWith('labkern::')));
  });

/** It counts its calls itself, and times them by its own CPU clock. */
const program = `
#include <stdio.h>
#include <time.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void __attribute__((noinline)) burn(long count) { for (volatile long i = count; i > 0; i--) { } }
void __attribute__((noinline)) burn_half(void) { burn(500000); __asm__(""); }
void __attribute__((noinline)) burn_third(void) { burn(300000); __asm__(""); }
void __attribute__((noinline)) burn_fifth(void) { burn(200000); __asm__(""); }
int main(void) {
  long spent[3] = {0, 0, 0}, rounds = 0, began = now();
  for (; now() - began < 1000000000L; rounds++) {
    long a = now(); burn_half();
    long b = now(); burn_third();
    long c = now(); burn_fifth();
    spent[0] += b - a; spent[1] += c - b; spent[2] += now() - c;
  }
  printf("%ld %ld %ld %ld\\n", rounds, spent[0], spent[1], spent[2]);
  return 0;
}
`;

t.test('a native program: shares by its own clock, calls by its own count', async (t) => {
  const elf = compileC(t, program);
  const { address, process: server, ...running } = await gdbserver(t, elf);
  let printed = '';
  server.stdout?.on('data', (piece: string) => {
    printed += piece;
  });
  const probes = ['-p', 'sample:100hz', '-p', 'fn:burn_*', '-p', '!fn:burn'];
  const ran = await rsptrace('-r', address, '--json', ...probes, '-o', built('native.pftrace'), elf).ended;
  t.equal(ran.status, 0, ran.stderr.slice(-300));
  await running.ended;
  const [rounds = 0, ...spent] = printed.trim().split(' ').map(Number);
  const { samples, functions } = JSON.parse(ran.stdout) as Output;
  t.strictSame(new Set(functions.map(({ calls }) => calls)), new Set([rounds]), 'each call, once');
  const total = spent.reduce((sum, one) => sum + one, 0);
  const own = Object.fromEntries(Object.keys(shares).map((name, i) => [name, (spent[i] ?? 0) / total]));
  sharesAreRight(t, samples, own);
});

t.test('nothing but samples, --dry-run, and a format without a place for them', async (t) => {
  const trace = built('only.folded');
  const [, elf, ...qemu] = machines[0];
  const ran = await rsptrace('run', '-p', 'sample:5ms', '-n', '30', '-o', trace, elf, '--', ...qemu).ended;
  t.match(ran.stdout, /^ *self +total +samples +function/);
  t.match(ran.stdout, /samples: \d+ stacks in \d+ of \d+ interrupts wanted, one each 5\.0 ms; the target stood/);
  t.match(readFileSync(trace, 'utf8'), /^_start;work;burn_half \d+$/m);
  const dry = await rsptrace('-p', 'sample:100hz', '--dry-run', '-r', ':1', elf).ended;
  t.match(
    dry.stdout,
    /^every hart's or thread's stack: an interrupt stops the target for it each 10 ms that it runs$/m,
  );
  const chrome = await rsptrace('run', '-p', 'sample:5ms', '-o', built('x.json'), elf, '--', ...qemu).ended;
  t.match([chrome.status, chrome.stderr], [2, /has no place for samples \[USAGE\]/]);
});

t.test('wrong probes', async (t) => {
  for (const rate of ['0hz', 'abc', '1000000hz', '99', '', '-5ms']) {
    const ran = await rsptrace('-r', ':1', '-p', `sample:${rate}`, riscv).ended;
    t.equal(ran.status, 2, rate);
    t.match(
      ran.stderr,
      /is no rate of samples: it goes from 0\.01hz to 10000hz.*\[PROBE_SYNTAX\]\n {2}write 'sample:99hz'/,
    );
  }
  const twice = await rsptrace('-r', ':1', '-p', 'sample:99hz', '-p', 'sample:1ms', riscv).ended;
  t.match([twice.status, twice.stderr], [2, /second rate of samples \[PROBE_SYNTAX\]/]);
  const wire = built('wire.txt');
  const [, elf, ...qemu] = machines[0];
  const record = ['--duration', '100ms', '-p', 'count:burn_half', '--record-wire', wire, '-o', built('w.pftrace')];
  t.equal((await rsptrace('run', ...record, elf, '--', ...qemu).ended).status, 0);
  const again = await rsptrace('-r', `replay:${wire}`, '-p', 'sample:99hz', elf).ended;
  t.match(again.stderr, /played back: nothing can be interrupted \[SAMPLES_UNAVAILABLE\]/);
});
