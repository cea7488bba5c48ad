// `count:GLOB` and `hist(ARG):GLOB`: what is counted is what a whole trace of the same guest has, by both engines.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ElfFile } from '../../src/elf/index.js';
import { parseProbe } from '../../src/probes/index.js';
import { addressesOf } from '../../src/record/program.js';
import { prepare } from '../../src/record/programs.js';
import { scratchFolder } from '../support/command.js';
import { runLab } from '../support/lab-run.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { children, protoc, readPerfetto, type Slice } from '../trace/decode-perfetto.js';
import { elfPath } from './guests/guests.js';

interface Output extends Recording {
  readonly histograms: readonly { readonly function: string; readonly argument: string; readonly buckets: Bucket[] }[];
}

interface Bucket {
  readonly from: number | null;
  readonly below: number;
  readonly calls: number;
}

const run = (t: Test, name: string, probes: readonly string[], ...options: string[]) =>
  runLab(t, name, [...probes.flatMap((probe) => ['-p', probe]), ...options]);

async function count(t: Test, name: string, engine: string, ...probes: string[]) {
  const { stdout, lab, trace } = await run(t, name, probes, '--json', '--engine', engine);
  const output = JSON.parse(stdout) as Output;
  t.equal(output.end, 'guest-ended');
  t.equal(output.missing, 0);
  return { output, lab, trace };
}

/** The bucket of each value, by its limits. */
function buckets(values: readonly bigint[]): Bucket[] {
  const found: Bucket[] = [];
  for (let from = 0n, below = 1n; from < 1n << 64n; from = below, below *= 2n) {
    const calls = values.filter((value) => value >= from && value < below).length;
    if (calls > 0) found.push({ from: Number(from), below: Number(below), calls });
  }
  return found;
}

const deep = 'labkern::work::deep';

for (const name of usually(['rv-o2', 'x86-o2', 'arm-o2'], (one) => one === 'rv-o2')) {
  t.test(`${name}: calls are counted as often as the guest counts, by both engines`, async (t) => {
    const whole = await count(t, name, 'target', `fn:${deep}6`, `fn:${deep}7`);
    const { slices } = readPerfetto(children(protoc(readFileSync(whole.trace)), 'packet'));
    const xs = (fn: string): bigint[] =>
      slices.filter((slice: Slice) => slice.name === fn).map(({ args }) => BigInt(args.arg_x ?? -1));
    const sixth = xs(`${deep}6`).sort((a, b) => (a < b ? -1 : 1));
    const middle = sixth[sixth.length >> 1] as bigint;
    const above = sixth.filter((x) => x > middle).length;
    t.ok(above > 0 && above < sixth.length);
    // With stops either architecture counts alike.
    for (const engine of usually(['target', 'stop'], (one) => one === 'target' || name === 'rv-o2')) {
      const probes = [`count:${deep}0`, `count:${deep}6 if x > ${middle}`, `hist(x):${deep}7`];
      // A stop costs a millisecond.
      if (engine === 'target')
        probes.push('count:labkern::exec::poll_task', `count:${deep}1`, `count:${deep}2 if y != 0`);
      const { output, lab } = await count(t, name, engine, ...probes);
      t.same([output.events, output.records], [0, 0], `engine ${engine}: no event and no record`);
      t.equal(output.probes.length, probes.length);
      t.ok(output.probes.every((probe) => probe.engine === engine));
      const counted = (fn: string): number | undefined => output.counts.find((row) => row.function === fn)?.calls;
      const called = lab.stats.get('deep_calls')?.calls;
      t.equal(counted(`${deep}0`), called, `engine ${engine}: all calls`);
      t.equal(counted(`${deep}6`), above, `engine ${engine}: those for which the condition holds`);
      t.strictSame(output.histograms[0]?.buckets, buckets(xs(`${deep}7`)), `engine ${engine}: by the size of x`);
      if (engine === 'stop') continue;
      t.equal(counted(`${deep}1`), called);
      t.equal(counted('labkern::exec::poll_task'), lab.stats.get('poll_task')?.calls);
    }
  });
}

t.test(
  'what is traced and counted at one place is counted from the records, what is only counted is not',
  async (t) => {
    const name = 'rv-o2';
    const probes = [`fn:${deep}7`, `count:${deep}7`, `hist(x):${deep}7 if x > 5`, `hist(y):${deep}6`, `count:${deep}6`];
    const { output, trace, lab } = await count(
      t,
      name,
      'target',
      ...probes,
      `count:${deep}5 if x < 9`,
      `count:${deep}5 if x == 12`,
    );
    const called = lab.stats.get('deep_calls')?.calls ?? 0;
    t.same(
      output.counts.filter((row) => !row.function.endsWith('5')).map((row) => row.calls),
      [called, called],
    );
    t.equal(output.functions[0]?.calls, called);
    // An entry and a return, and an entry alone: what is only counted leaves none, but for conditions with an `or`.
    t.equal(output.records, 3 * called);
    const { slices } = readPerfetto(children(protoc(readFileSync(trace)), 'packet'));
    const xs = slices.filter((slice) => slice.name === `${deep}7`).map(({ args }) => BigInt(args.arg_x ?? -1));
    t.strictSame(output.histograms.find((row) => row.argument === 'x')?.buckets, buckets(xs.filter((x) => x > 5n)));
    // deep7's x is deep5's x and 2.
    const either = xs.filter((x) => x - 2n < 9n || x - 2n === 12n).length;
    t.equal(output.counts.find((row) => row.function.endsWith('5'))?.calls, either, 'by one condition or another');
  },
);

t.test('the table', async (t) => {
  const { stdout } = await run(
    t,
    'rv-o2',
    [`count:${deep}*`, 'count:labkern::stats::report', `hist(x):${deep}7`],
    '--engine',
    'target',
  );
  t.match(stdout, /^ *calls +function/m);
  t.match(stdout, /^ +\d+ +labkern::work::deep0 +.*work\.rs:\d+$/m);
  t.match(stdout, /^trace: .* \(it holds no events: only counts were asked for\)$/m);
  t.match(stdout, /^labkern::work::deep7, x: \d+ calls\n\[.*[\])] +\d+ \|@* *\|\n/m);
});

for (const arch of ['riscv64', 'x86_64'] as const) {
  t.test(`${arch}: what a function does at its first instruction again is not taken for calls`, async (t) => {
    const [down, loop] = arch === 'riscv64' ? ['addi a0,a0,-1', 'bnez a0,'] : ['lea -1(%rdi),%rdi', 'jrcxz 0f; jmp '];
    const text = (name: string, body: string): string =>
      `.globl ${name}\n.type ${name},@function\n${name}: ${body}\n0: ret\n.size ${name},.-${name}\n`;
    const folder = scratchFolder(t);
    const [source, object, elf] = ['loop.s', 'loop.o', 'loop.elf'].map((file) => join(folder, file)) as [
      string,
      string,
      string,
    ];
    const tools = arch === 'riscv64' ? 'riscv64-linux-gnu-' : '';
    // The second one loops as well, but not to its beginning.
    writeFileSync(
      source,
      text('looping', `${down}\n${loop}looping`) + text('other', `nop\n1: ${down}\n${loop}1b`) + text('_start', 'nop'),
    );
    execFileSync(`${tools}as`, ['-o', object, source]);
    execFileSync(`${tools}ld`, ['-o', elf, object]);
    const probed = async (probe: string): Promise<string[]> =>
      addressesOf(await prepare(elf, [parseProbe(probe)])).map((at) => names.get(at) ?? '?');
    const names = new Map([...(await ElfFile.open(elf)).symbols].map(({ address, name }) => [address, name]));
    await t.rejects(probed('count:looping'), { code: 'PROBE_UNSAFE', hint: /fn: probes/ });
    t.same(await probed('count:**'), ['other']);
    t.same(await probed('fn:looping'), ['looping']);
  });
}

t.test('an argument that no function has', async (t) => {
  const probe = parseProbe(`hist(z):${deep}7`);
  await t.rejects(prepare(elfPath('rv-o2'), [probe]), { code: 'PROBE_CONDITION', hint: /x/ });
});
