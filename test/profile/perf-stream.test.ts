// What perf writes, against what perf itself prints of it: `perf script --ns -F pid,tid,time,ip,sym,uregs`. The recording is of
// perf-program.S by perf 6.1, `-c 200000 -m 1 --call-graph dwarf,64`, of which twelve samples were kept.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureNamed } from '../../src/arch/index.js';
import { KernelCalls } from '../../src/profile/by-perf.js';
import { type PerfSample, PerfStream } from '../../src/profile/perf-stream.js';

const file = (name: string): string => join(import.meta.dirname, name);
const recording = readFileSync(file('perf-recording.bin'));
/** Names of perf, where they are not those of here in capitals without the `r`. */
const names: Readonly<Record<string, string>> = { FLAGS: 'eflags', CS: 'cs', SS: 'ss' };
/** PERF_CONTEXT_KERNEL */
const mark = 0xffffffffffffff80n;

function read(pieces: readonly Uint8Array[]): { readonly samples: PerfSample[]; readonly stream: PerfStream } {
  const stream = new PerfStream();
  const samples = pieces.flatMap((piece) => [...stream.push(piece)]);
  return { samples: [...samples, ...stream.rest()], stream };
}

t.test('samples, as perf script prints them', async (t) => {
  const { samples, stream } = read([recording]);
  const printed = readFileSync(file('perf-recording.txt'), 'utf8').split(/\n(?=\d+\/)/);
  t.equal(samples.length, printed.length);
  const registers = architectureNamed('i386:x86-64')?.linux?.perfRegisters ?? [];
  for (const [index, text] of printed.entries()) {
    const sample = samples[index] as PerfSample;
    const [, pid, tid, seconds, nanos] = /^(\d+)\/(\d+) +(\d+)\.(\d{9}):/.exec(text) ?? [];
    t.same([sample.pid, sample.tid, sample.time], [pid, tid, `${seconds}${nanos}`].map(Number));
    const chain = [...text.matchAll(/^\t *(f{8}[0-9a-f]{8}) /gm)].map(([, at]) => BigInt(`0x${at}`));
    t.same(sample.chain, sample.inKernel ? [mark, ...chain] : []);
    t.equal(sample.inKernel, chain.length > 0);
    const values = [...text.matchAll(/(\w+):0x([0-9a-f]+)/g)].map(([, name = '', hex]): [string, bigint] => [
      names[name] ?? (/^R\d/.test(name) ? name : `r${name}`).toLowerCase(),
      BigInt(`0x${hex}`),
    ]);
    t.same(new Map([...sample.registers].map(([number, value]) => [registers[number], value])), new Map(values));
    t.equal(values.length, 20);
    t.equal(sample.stack.length, 64);
  }
  // perf report --stats
  t.equal(stream.lost, 22);
  t.equal(stream.kernelLeftOut, false);
  t.ok(stream.isSampling);
});

t.test('of a machine that has run for longer than 104 days', async (t) => {
  const { samples } = read([recording]);
  const longer = Buffer.from(recording);
  for (const { time } of samples) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(time));
    longer.writeBigUInt64LE(BigInt(time) + 2n ** 54n, recording.indexOf(bytes));
  }
  t.same(
    read([longer]).samples.map(({ time }) => time),
    samples.map(({ time }) => time + 2 ** 54),
  );
});

t.test('in pieces of any size', async (t) => {
  const whole = read([recording]).samples;
  for (const size of [1, 7, 100, 1000]) {
    const pieces = Array.from({ length: Math.ceil(recording.length / size) }, (_, index) =>
      recording.subarray(index * size, (index + 1) * size),
    );
    t.same(read(pieces).samples, whole, `${size}`);
  }
});

t.test('damaged', async (t) => {
  const changed = (at: number, ...bytes: readonly number[]): Buffer => {
    const copy = Buffer.from(recording);
    copy.set(bytes, at);
    return copy;
  };
  const damaged = { code: 'INPUT_DAMAGED' };
  t.throws(() => read([changed(0, 0x50, 0x4b)]), damaged, 'another file');
  t.throws(() => read([changed(8, 0x68)]), damaged, "a file of perf's, which has a table of parts");
  // The record of the attributes: its size, their size, and what samples have.
  t.throws(() => read([changed(22, 7, 0)]), damaged, 'a record within its header');
  t.throws(() => read([changed(28, 8)]), damaged, 'attributes without samples');
  t.throws(() => read([changed(24 + 24 + 1, 0x04)]), damaged, 'samples without registers');
  t.throws(() => read([Buffer.concat([recording.subarray(0, 16), recording.subarray(16 + 216)])]), damaged);
  // Any byte: an error or samples, and no more than there are bytes for.
  for (let at = 16; at < recording.length; at += 3) {
    try {
      const { samples } = read([changed(at, 0xff)]);
      t.ok(samples.length <= 12);
    } catch (error) {
      t.match(error, damaged);
    }
  }
});

t.test('which system call the kernel is in', async (t) => {
  const calls = new KernelCalls(
    () => `ffffffff81000100 T entry_SYSCALL_64_after_hwframe
ffffffff81000200 T __pfx___x64_sys_read
ffffffff81000210 T __x64_sys_read
ffffffff81000230 T __x64_sys_write
ffffffff81000260 t vfs_write
ffffffff81000300 T __sys_sendto
ffffffff81000400 T ksys_lseek
ffffffff81000500 D end
`,
  );
  const of = (...chain: readonly number[]): string | undefined =>
    calls.of(chain.map((at) => 0xffffffff00000000n + BigInt(at)));
  t.equal(of(0x81000270, 0x81000235, 0x81000130), 'write');
  t.equal(of(0x81000210), 'read');
  t.equal(of(0x8100022f), 'read');
  t.equal(of(0x81000230), 'write');
  t.equal(of(0x81000310), 'sendto');
  t.equal(of(0x81000410), 'lseek');
  t.equal(of(0x81000270, 0x81000130), undefined, 'a page fault');
  t.equal(new KernelCalls(() => '0000000000000000 T __x64_sys_read\n0000000000000000 T x\n').of([mark, 0n]), undefined);
});
