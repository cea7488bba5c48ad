// Machines that are reset while `rsptrace run` traces them: every boot is in the trace, and the guest does what it does untraced.

import { readFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { rsptrace, scratchFolder } from '../support/command.js';
import { plainRun } from '../support/hidden.js';
import { usually } from '../support/long.js';
import type { Recording } from '../support/recording.js';
import { armResetsKernel, endsKernel, hartCounts, hartsKernel, type PagingKernel } from '../support/tiny-kernels.js';

interface Case {
  readonly what: string;
  readonly kernel: (t: Test, calls: number, resets: number) => PagingKernel;
  readonly engine: 'target' | 'stop';
  readonly calls: number;
  readonly resets: number;
  readonly probes: readonly string[];
  /** What each boot says on the console that it has called. */
  readonly counts: (console: string) => readonly Readonly<Record<string, number>>[];
}

const endsProbes = ['many', 'deep', 'tail', 'plain'];

function endsCounts(console: string): Record<string, number>[] {
  return [...console.matchAll(/many= *(\d+) deep= *(\d+) tail= *(\d+) plain= *(\d+) total=\d+/g)].map((match) =>
    Object.fromEntries(endsProbes.map((name, i) => [name, Number(match[i + 1])])),
  );
}

const riscv = { kernel: endsKernel, probes: endsProbes, counts: endsCounts };
const x86 = {
  kernel: (t: Test, calls: number, resets: number) => hartsKernel(t, 'x86_64', { harts: 1, calls, period: 0, resets }),
  probes: ['outer', 'inner'],
  counts: (console: string) => hartCounts(console).map(({ outer, inner }) => ({ outer, inner })),
};

const arm = { kernel: armResetsKernel, probes: x86.probes, counts: x86.counts };

const cases: readonly Case[] = [
  { what: 'riscv64, without stops', engine: 'target', calls: 200, resets: 3, ...riscv },
  { what: 'riscv64, with stops', engine: 'stop', calls: 8, resets: 2, ...riscv },
  { what: 'x86_64, without stops, a triple fault', engine: 'target', calls: 1000, resets: 2, ...x86 },
  { what: 'x86_64, with stops, a triple fault', engine: 'stop', calls: 10, resets: 1, ...x86 },
  { what: 'aarch64, without stops', engine: 'target', calls: 1000, resets: 2, ...arm },
  { what: 'aarch64, with stops', engine: 'stop', calls: 10, resets: 1, ...arm },
];

for (const { what, kernel: made, engine, calls, resets, probes, counts } of usually(
  cases,
  // Each architecture once.
  ({ what }) => ['riscv64, without stops', 'x86_64, with stops, a triple fault', 'aarch64, with stops'].includes(what),
)) {
  t.test(what, { timeout: 280_000 }, async (t) => {
    const kernel = made(t, calls, resets);
    const folder = scratchFolder(t);
    const [file, consoleFile] = [join(folder, 'out.txt'), join(folder, 'console')];
    const args = ['--json', '--keep-records', '--engine', engine, ...probes.flatMap((name) => ['-p', `fn:${name}`])];
    const files = ['-o', file, '--console', consoleFile];
    const output = await rsptrace('run', ...args, ...files, kernel.elf, '--', ...kernel.command).json<Recording>();
    t.match(output, { end: 'guest-ended', resets, missing: 0 });
    t.ok(output.probes.every((probe) => probe.engine === engine));
    const text = readFileSync(consoleFile, 'latin1');
    // Without what firmware says: it looks at the clock.
    const lines = (console: string): string[] => console.match(/(hart|many=).* (sum |total=)\d+/g) ?? [];
    t.strictSame(lines(text), lines(await plainRun(t, kernel.command)), 'the console is that of an untraced run');
    const boots = counts(text);
    t.equal(boots.length, resets + 1);
    for (const name of probes) {
      const row = output.functions.find((each) => each.function === name);
      t.equal(
        row?.calls,
        boots.reduce((sum, boot) => sum + (boot[name] ?? 0), 0),
        name,
      );
      t.equal(row?.lost, 0, name);
    }
    const again = join(folder, 'again.txt');
    const converted = await rsptrace('convert', `${file}.records`, '-o', again).ended;
    t.equal(converted.status, 0, converted.stderr);
    t.ok(readFileSync(again).equals(readFileSync(file)), 'the same events come out of the records');
    const parts = readFileSync(file, 'utf8').split(/^# the machine was reset at .*\n/m);
    const traced = parts.map((part) => part.split('\n').filter((line) => /^ *\d/.test(line)));
    // A call in which the guest printed a line, and did nothing else, is opened before that and closed behind it.
    const calledBy = traced.map((part) =>
      part
        .map((line) => line.replace(/^.*?\[ *\d+\]/, ''))
        .join('\n')
        .replace(/^( *)(.*\)) \{\n\1\}( = \S+)? .*$/gm, '$1$2$3')
        .split('\n'),
    );
    t.equal(calledBy.length, resets + 1);
    for (const boot of calledBy) t.strictSame(boot, calledBy[0], 'each boot calls the same');
    const times = traced.map((part) => part.map(Number.parseFloat));
    for (const [i, boot] of times.slice(1).entries()) {
      t.ok(Math.min(...boot) >= Math.max(...(times[i] ?? [])), 'time does not go back');
      t.ok((boot[boot.length >> 1] ?? 0) > (boot[0] ?? 0), 'nor stand still');
    }
  });
}

/** QEMU's own monitor, on a socket. */
async function monitor(path: string, command: string): Promise<string> {
  const socket = dial(path);
  let text = '';
  let asked = false;
  for await (const piece of socket) {
    text += String(piece);
    const prompts = text.split('(qemu) ').length - 1;
    if (prompts === 1 && !asked) socket.write(`${command}\n`);
    asked ||= prompts === 1;
    if (prompts > 1) break;
  }
  return text;
}

t.test('interrupted after resets half way: nothing is left', { timeout: 280_000 }, async (t) => {
  const kernel = endsKernel(t, 1_000_000_000);
  const folder = scratchFolder(t);
  const [trace, socket, dump] = [join(folder, 'out.pftrace'), join(folder, 'monitor'), join(folder, 'text')];
  const args = ['run', '--json', '--engine', 'target', '--log', 'info', '-o', trace];
  const probes = endsProbes.flatMap((name) => ['-p', `fn:${name}`]);
  const command = [...kernel.command, '-monitor', `unix:${socket},server=on,wait=off`];
  const tracer = rsptrace(...args, ...probes, kernel.elf, '--', ...command);
  t.teardown(async () => {
    await monitor(socket, 'quit').catch(() => {});
  });
  let said = '';
  tracer.read((all) => {
    said = all;
  });
  for (let boot = 1; boot <= 3; boot++) {
    while (said.split('trampolines are installed').length <= boot && !tracer.over()) await sleep(20);
    if (boot < 3) await monitor(socket, 'system_reset');
  }
  tracer.signal('SIGINT');
  await tracer.shows('the guest runs on');
  const elf = await ElfFile.open(kernel.elf);
  const section = elf.sections.find(({ name }) => name === '.text');
  const [address, size] = [addr(section?.address ?? 0n), section?.size ?? 0];
  t.ok(size > 200);
  await monitor(socket, `pmemsave ${address} ${size} "${dump}"`);
  t.strictSame(readFileSync(dump), Buffer.from(elf.bytesAt(address, size) ?? []), 'the code is what the ELF has');
  await monitor(socket, 'system_reset');
  // A breakpoint at the reset vector would hold it there.
  while (!/pc +0000000080/.test(await monitor(socket, 'info registers')) && !tracer.over()) await sleep(20);
  await monitor(socket, 'quit').catch(() => {});
  const { status, stdout, stderr } = await tracer.ended;
  t.equal(status, 0, stderr.slice(-300));
  const output = JSON.parse(stdout) as Recording;
  t.match(output, { end: 'interrupted', resets: 2 });
  t.ok(output.missing <= 2, 'a reset may come while a record is written');
  t.ok(output.functions.every(({ calls }) => calls > 0));
});
