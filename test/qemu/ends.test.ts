// riscv64: functions whose return address must stay where it is are told of without stops, by jumps at their ends.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addr } from '../../src/base/addr.js';
import { ElfFile } from '../../src/elf/index.js';
import { connect, type Session } from '../../src/rsp/index.js';
import { frozenQemu, rsptrace, rsptraceProcess, scratchFolder } from '../support/command.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { killAlone } from '../support/kill.js';
import { read } from '../support/loaded-bytes.js';
import type { Recording } from '../support/recording.js';
import { endsKernel, type PagingKernel } from '../support/tiny-kernels.js';

const functions = ['many', 'deep', 'tail', 'plain'];
const probes = functions.flatMap((name) => ['-p', `fn:${name}`]);

/** What the kernel computes: each function as its source has it. */
function computed(calls: number): string {
  const counts = { many: calls, deep: 0, tail: calls, plain: 0 };
  let total = 0n;
  for (let i = 0; i < calls; i++) {
    total += i % 2 === 0 ? BigInt(2 * i) + total : BigInt(i + 5);
    counts.deep += (i & 7) + 1;
    total += BigInt(3 * (i & 7));
    if ((i + 1) % 4 !== 0) counts.plain++;
    total = BigInt.asUintN(64, total + BigInt((i + 1) % 4 === 0 ? 2 * (i + 8) : 5 * (i + 1)));
  }
  return [...Object.entries(counts), ['total', total] as const].map(([name, value]) => `${name}=${value}`).join(' ');
}

/** A tree without its times; a comment may stand anywhere, and a call that it falls into is one line all the same. */
function tree(file: string): string[] {
  return readFileSync(file, 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/^.*?\[ *\d+\]/gm, '')
    .replace(/ \{\n *\} \/\* \S+ \*\/$/gm, '')
    .split('\n');
}

function checkCounts(t: Test, { functions: rows, probes: used, missing }: Recording, calls: number): void {
  t.strictSame([...new Set(used.map(({ engine }) => engine))], ['target']);
  t.equal(missing, 0);
  const counts = functions.map((name) => `${name}=${rows.find((row) => row.function === name)?.calls}`).join(' ');
  t.equal(counts, computed(calls).replace(/ total=.*/, ''));
}

/** The code as it stands in the target is the ELF's. */
async function checkCode(t: Test, session: Session, { elf: path }: PagingKernel): Promise<void> {
  const elf = await ElfFile.open(path);
  const text = elf.sections.find(({ name }) => name === '.text');
  const [address, size] = [addr(text?.address ?? 0n), text?.size ?? 0];
  t.ok(size > 200);
  t.strictSame(Buffer.from(elf.bytesAt(address, size) ?? []), await read(session, address, size));
}

/** Near enough for a jump of its own, and RAM that the kernel does not use. */
const scratch = ['--scratch', '0x80040000,0x40000'];

t.test('through hops: the same calls, and the same arguments, as with stops', async (t) => {
  const calls = 40;
  const kernel = endsKernel(t, calls);
  const traced = async (engine: string): Promise<{ output: Recording; calls: string[] }> => {
    const folder = scratchFolder(t);
    const [file, console] = [join(folder, 'out.txt'), join(folder, 'console')];
    const args = ['--json', '--engine', engine, ...probes, '-o', file, '--console', console, kernel.elf];
    const { status, stdout, stderr } = await rsptrace('run', ...args, '--', ...kernel.command).ended;
    t.equal(status, 0, stderr.slice(-300));
    t.equal(readFileSync(console, 'latin1').trim().replace(/= +/g, '='), computed(calls));
    return { output: JSON.parse(stdout) as Recording, calls: tree(file) };
  };
  const [without, stopped] = [await traced('target'), await traced('stop')];
  checkCounts(t, without.output, calls);
  t.ok(without.output.stops < 10, `${without.output.stops} stops`);
  t.strictSame(without.calls, stopped.calls);
  t.ok(stopped.calls.length > 350);
});

t.test(
  'jumps of their own, a ring that is full again and again: counts, and afterwards the code as it was',
  async (t) => {
    const calls = 2000;
    const kernel = endsKernel(t, calls);
    const qemu = frozenQemu(t, kernel.command);
    // The guest is not let go, so that it can be looked at as it was left.
    const detached = /\$D(;[0-9a-f.]+)?#[0-9a-f]{2}/;
    const keep = (text: string, to: { say: (text: string) => void }): string => {
      if (!detached.test(text)) return text;
      to.say('+$OK#9a');
      return text.replace(detached, '');
    };
    await using proxy = await FaultProxy.start(qemu.socket, { 'to-stub': { edit: keep } });
    const options = [
      '--engine',
      'target',
      ...scratch,
      '--until',
      'drained',
      '-o',
      join(scratchFolder(t), 'out.pftrace'),
    ];
    const words = ['--remote', proxy.path, '--json', ...options, ...probes, kernel.elf];
    const output = await rsptrace(...words).json<Recording>();
    checkCounts(t, output, calls);
    t.match(output.scratch, /80040000/);
    const after = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
    await checkCode(t, after, kernel);
    await after.detach();
    t.equal((await qemu.ended).stdout.trim().replace(/= +/g, '='), computed(calls));
  },
);

t.test('after a SIGKILL: detach finds the ends too', async (t) => {
  const kernel = endsKernel(t, 1_000_000_000);
  const qemu = frozenQemu(t, kernel.command);
  const trace = join(scratchFolder(t), 'out.pftrace');
  const options = ['--engine', 'target', '--log', 'info', ...scratch, '-o', trace];
  const tracer = rsptraceProcess('--remote', qemu.socket, ...options, ...probes, kernel.elf);
  await tracer.shows('trampolines are installed');
  killAlone(tracer);
  await tracer.ended;
  const { restored } = await rsptrace('detach', '--json', '--remote', qemu.socket, kernel.elf).json<{
    restored: readonly { function: string }[];
  }>();
  t.strictSame(restored.map((each) => each.function).sort(), functions.toSorted());
  const after = await connect(`unix:${qemu.socket}`, { waitMs: 10_000 });
  await checkCode(t, after, kernel);
  after.close();
});
