// Samples a second that `rsptrace profile` takes, beside two clients that only interrupt, read the registers of every hart and go on: one in C
// (bench-floor.c), one a loop over the library's session; interleaved, all with the same time between samples. Stacks are walked, named and
// added up, as the command does.
//   node scripts/bench-profile.mjs [--rounds N] [--samples N] [--warm N] [--period US] [--guest rv-o2-long|x86-o2-long|four-harts|gdbserver]...
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DebugInfo } from '../dist/dwarf/index.js';
import { ElfFile } from '../dist/elf/index.js';
import { profile } from '../dist/profile/index.js';
import { sampling } from '../dist/profile/sampling.js';
import { architectureFor, connect, loadedElf } from '../dist/target/index.js';
import { CallTree } from '../dist/trace/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';
import { folder, inTime, median, roundsText, startGdbserver, startQemu } from './bench-lib.mjs';

const everything = ['rv-o2-long', 'x86-o2-long', 'four-harts', 'gdbserver'];
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '180' },
    samples: { type: 'string', default: '1000' },
    warm: { type: 'string', default: '500' },
    period: { type: 'string', default: '1000' },
    guest: { type: 'string', multiple: true, default: everything },
  },
});
const [most, mostWarm, period] = [values.samples, values.warm, values.period].map(Number);
/**
 * These guests end after some 700 samples, on a busy machine earlier. Before the warm ones, most samples are of code that
 * was not walked and named before.
 */
const long = { samples: 250, warm: 200 };
const short = { 'rv-o2-long': long, 'four-harts': long, 'x86-o2-long': long };
let [samples, warm] = [most, mostWarm];

const floor = join(folder, 'floor');
execFileSync('gcc', ['-O2', '-o', floor, resolve(import.meta.dirname, 'bench-floor.c')]);

/** What is sampled, ready to start. */
function subject(name) {
  if (name !== 'gdbserver') {
    const guest = findGuest(name === 'four-harts' ? 'rv-o2-long' : name);
    const elf = unpack(guest);
    const qemu = [...guest.qemu, ...(name === 'four-harts' ? ['-smp', '4'] : [])];
    return { elf, start: () => startQemu({ ...guest, qemu }, elf) };
  }
  const elf = join(folder, 'busy');
  writeFileSync(
    `${elf}.c`,
    `static volatile long sum;
__attribute__((noinline)) static void leaf(int n) { for (int i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) static void deep(int n) { if (n > 0) deep(n - 1); else leaf(1000); sum++; }
int main(void) { for (;;) deep(8); }`,
  );
  execFileSync('gcc', ['-g', '-O1', '-o', elf, `${elf}.c`]);
  return { elf, start: () => startGdbserver(elf) };
}

/** Microseconds a sample of the client in C, wall and CPU. */
function bare({ start }) {
  const stub = start();
  const args = [stub.address.replace(/^.*:/, ''), 'sample', period, samples, warm].map(String);
  const { stdout, stderr } = spawnSync(floor, args, { encoding: 'utf8', timeout: 300_000 });
  stub.stop();
  const [, wall, cpu] = /RESULT ([\d.]+) ([\d.]+)/.exec(stdout) ?? [];
  if (wall === undefined) throw new Error(`the C client gave no result: ${stderr}`);
  return { wall: Number(wall), cpu: Number(cpu) };
}

/** Counts looks, and takes the time from the last warm one on. A target that ends has had fewer, but half of them. */
class Stopwatch {
  #looks = 0;
  #from;
  #last;

  /** False: that was enough. */
  look() {
    this.#looks++;
    const mark = { wall: performance.now(), cpu: process.cpuUsage() };
    if (this.#looks === warm) this.#from = mark;
    if (this.#looks <= warm + samples) this.#last = mark;
    return this.#looks < warm + samples;
  }

  result() {
    const [from, to, taken] = [this.#from, this.#last, Math.min(this.#looks - warm, samples)];
    if (taken < samples / 2) throw new Error(`the target ended after ${this.#looks} samples`);
    const cpu = to.cpu.user + to.cpu.system - from.cpu.user - from.cpu.system;
    return { wall: (1000 * (to.wall - from.wall)) / taken, cpu: cpu / taken };
  }
}

const opened = (stub) =>
  connect(stub.address.startsWith('/') ? `unix:${stub.address}` : stub.address, { waitMs: 5000 });

/** The same of a loop over a session of the library, which reads registers and nothing else. */
async function loop({ start }) {
  const stub = start();
  const session = await opened(stub);
  const harts = await session.hartIds();
  const watch = new Stopwatch();
  await sampling({
    ...{ session, periodMs: period / 1000, durationMs: 2 ** 31 - 1, signal: new AbortController().signal },
    look: async () => {
      const read = harts.map((id) => {
        const batch = session.batch(id);
        batch.readRegisters();
        return batch.send();
      });
      await Promise.all(read);
      return watch.look();
    },
  });
  session.close();
  stub.stop();
  return watch.result();
}

/** The same of rsptrace. */
async function ours({ elf: path, start }) {
  const stub = start();
  const linked = await ElfFile.open(path);
  const arch = architectureFor(linked);
  await arch.prepare();
  const session = await opened(stub);
  const elf = await loadedElf(session, linked);
  const tree = new CallTree();
  const stopper = new AbortController();
  const watch = new Stopwatch();
  const sink = {
    begin: (header) => tree.begin(header),
    hart: (hart) => tree.hart?.(hart),
    event: (event) => tree.event(event),
    end() {},
    flush() {
      if (!watch.look()) stopper.abort();
    },
  };
  await profile({
    ...{ session, elf, arch, debug: new DebugInfo(elf), sink, signal: stopper.signal },
    logger: { debug() {}, info() {}, warn() {}, error() {}, trace() {}, isLevelEnabled: () => false },
    ...{ periodMs: period / 1000, durationMs: 2 ** 31 - 1, mostSamples: Number.POSITIVE_INFINITY },
    want: { depth: 127, mode: 'all', idle: false, awaited: false, by: undefined },
  });
  session.close();
  stub.stop();
  return watch.result();
}

const results = Object.fromEntries(values.guest.map((name) => [name, { bare: [], loop: [], ours: [] }]));
const units = Object.fromEntries(
  values.guest.map((name) => {
    const from = subject(name);
    return [
      name,
      async () => {
        samples = Math.min(most, short[name]?.samples ?? most);
        warm = Math.min(mostWarm, short[name]?.warm ?? mostWarm);
        try {
          const [least, plain, full] = [bare(from), await loop(from), await ours(from)];
          results[name].bare.push(least);
          results[name].loop.push(plain);
          results[name].ours.push(full);
        } catch (error) {
          console.log(`${name.padEnd(12)} a round is left out: ${error.message.trim()}`);
        }
      },
    ];
  }),
);
await inTime(units, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
console.log(`${period} us between samples, up to ${most} samples after ${mostWarm}; load ${loadavg()[0].toFixed(1)}`);
for (const [name, found] of Object.entries(results)) {
  if (found.bare.length === 0) continue;
  const of = (list, what) => median(list.map((one) => one[what]));
  const text = (list) => {
    const us = of(list, 'wall');
    return `${(1e6 / us).toFixed(0)}/s (${us.toFixed(0)} us, CPU ${of(list, 'cpu').toFixed(0)})`;
  };
  const share = (list) => {
    const ratios = list.map(({ wall }, index) => (100 * wall) / found.ours[index].wall);
    return `${median(ratios).toFixed(0)} % (${ratios.map((one) => one.toFixed(0)).join(', ')})`;
  };
  console.log(
    `${name.padEnd(12)} C client ${text(found.bare)}, loop of the library ${text(found.loop)}, rsptrace ${text(found.ours)}: ${share(found.bare)} of the rate of C, ${share(found.loop)} of the loop's; ${roundsText(found.bare.length)}`,
  );
}
process.exit();
