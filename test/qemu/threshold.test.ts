// --threshold without stops: the calls that are left out are those that are short, as with stops.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { frozenQemu, rsptrace, scratchFolder } from '../support/command.js';
import { long, variant } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { briefKernel } from '../support/tiny-kernels.js';

interface Ran {
  readonly output: Recording;
  readonly calls: (name: string) => number;
  /** What the guest has counted. */
  readonly brief: number;
  readonly long: number;
  /** The tree, without times. */
  readonly tree: readonly string[];
}

const calls = 5;
/** Ticks that are twice as long as a threshold, and more: of 100 ns, or of a TSC of 1 to 4 GHz. Where the clock counts instructions little is enough. */
const waits = { riscv64: { long: 20_000, short: 400 }, x86_64: { long: 8_000_000, short: 40_000 } };
type Arch = keyof typeof waits;
const threshold = ['--threshold', '1ms'];
const all = ['brief', 'long', 'outer', 'quick', 'work', 'around', 'tail'];
const probes = (names: readonly string[]): string[] => names.flatMap((name) => ['-p', `fn:${name}`]);

function ran(stdout: string, printed: string, tree: string): Ran {
  const output = JSON.parse(stdout) as Recording;
  const counted = /brief (\d+) long (\d+)/.exec(printed) ?? [];
  const lines = readFileSync(tree, 'utf8').split('\n');
  return {
    output,
    calls: (name) => output.functions.find((row) => row.function === name)?.calls ?? 0,
    brief: Number(counted[1]),
    long: Number(counted[2]),
    tree: lines.flatMap((line) => (/^ +[\d.]+ us/.test(line) ? [line.replace(/^.*\[ 0\]/, '')] : [])),
  };
}

/** QEMU is ours, and its RAM is shared. */
async function shared(t: Test, arch: Arch, options: readonly string[], machine: readonly string[] = []): Promise<Ran> {
  const { elf, command } = briefKernel(t, arch, { calls, wait: waits[arch].long });
  const folder = scratchFolder(t);
  const [tree, printed] = [join(folder, 'calls.txt'), join(folder, 'console.txt')];
  const record = ['run', '--json', '-o', tree, '--console', printed, ...options, elf, '--', ...command, ...machine];
  const { status, stdout, stderr } = await rsptrace(...record).ended;
  t.equal(status, 0, stderr);
  return ran(stdout, readFileSync(printed, 'latin1'), tree);
}

/** QEMU is not ours: the ring is read at stops, and nobody says that a tick is so many instructions. */
async function attached(t: Test, arch: Arch, options: readonly string[]): Promise<Ran> {
  const { elf, command } = briefKernel(t, arch, { calls, wait: waits[arch].short, own: 1 << 17 });
  const folder = scratchFolder(t);
  const tree = join(folder, 'calls.txt');
  const qemu = frozenQemu(t, [...command, '-icount', 'shift=3']);
  const record = ['--remote', qemu.socket, '--json', '-o', tree, '--until', 'finish', ...options, elf];
  const { status, stdout, stderr } = await rsptrace(...record).ended;
  t.equal(status, 0, stderr);
  return ran(stdout, (await qemu.ended).stdout, tree);
}

for (const arch of ['riscv64', 'x86_64'] as const) {
  t.test(`${arch}: calls that are brief are left out, their records are not`, async (t) => {
    const {
      output,
      calls: told,
      brief,
      long: longs,
    } = await shared(t, arch, [...threshold, ...probes([...all, 'last'])]);
    t.ok(brief > 4 * calls, `${brief} calls`);
    t.equal(longs, calls);
    t.strictSame(new Set(output.probes.map(({ engine }) => engine)), new Set(['target']));
    t.strictSame(['long', 'outer', 'around', 'work', 'tail'].map(told), [calls, calls, 1, 1, 1]);
    // A busy host makes calls long: they are told of.
    t.ok(told('brief') < brief / 2, `${told('brief')} of brief`);
    t.equal(output.records, 2 * (brief + 3 * calls + 1) + 3, 'of `work`, `tail` and `last` no return');
    t.equal(output.missing, 0);
  });

  if (arch !== 'riscv64' && !long) continue;
  t.test(`${arch}: the same calls as with a stop at each, and with all of them in the ring`, async (t) => {
    const some = ['--threshold', '20us', ...probes([...all, 'unsized'])];
    const target = await attached(t, arch, some);
    const engines = new Map(target.output.probes.map((probe) => [probe.function, probe.engine]));
    t.strictSame(
      [...engines].filter(([, engine]) => engine === 'stop'),
      [['unsized', 'stop']],
    );
    t.equal(target.output.records, 2 * (target.brief + 3 * calls + 1) + 2);
    t.equal(target.calls('brief'), 0);
    const stop = await attached(t, arch, [...some, '--engine', 'stop']);
    t.equal(stop.output.records, 0);
    t.strictSame(target.tree, stop.tree);
    const order = [
      'work',
      ...Array.from({ length: calls }, () => ['outer', 'long', 'outer']).flat(),
      'around',
      'unsized',
    ];
    const names = target.tree.map((line) => /[a-z]+/.exec(line)?.[0]);
    t.strictSame(names.slice(0, order.length), order, 'a stop inside a call comes behind its begin');
    t.equal(target.calls('tail'), 1, 'and has lasted as long as what was left out in it');
    t.strictSame(target.output.functions.map(({ function: name, lost }) => [name, lost]).sort(), [
      ['around', 0],
      ['long', 0],
      ['outer', 0],
      ['tail', 1],
      ['unsized', 0],
      ['work', 1],
    ]);
  });

  t.test(`${arch}: a call that is open at the end, with nothing in it`, async (t) => {
    const { output, calls: told } = await attached(t, arch, ['--threshold', '100ns', ...probes(['around', 'last'])]);
    t.strictSame([told('around'), output.records], [1, 3]);
  });

  variant(t, `${arch}: what is brief is known when the time of trampolines is taken out`, async (t) => {
    const {
      output,
      calls: told,
      brief,
    } = await shared(t, arch, [...threshold, ...probes(all)], ['-icount', 'shift=3']);
    t.equal(told('brief'), 0);
    t.equal(output.records, 2 * (brief + 3 * calls + 1) + 2);
    t.strictSame(['long', 'outer', 'around', 'work'].map(told), [calls, calls, 1, 1]);
  });
}
