// Four harts that call the same functions at once, with a timer interrupt each, under `rsptrace run`'s engine: every event is compared with what the
// program must have done, as it comes, and the harts' events with their own counters (test/support/kernels/harts-*.s).
//   lost: calls by a hart's own counters that were not reported, and records that rsptrace says are missing
//   torn: events whose arguments or result are not those of this call
//   out of order: events of a hart that come before one that it did earlier, or do not nest as its calls do
import { join, resolve } from 'node:path';
import { parseProbe } from '../../dist/probes/index.js';
import { prepare, record } from '../../dist/record/index.js';
import { folder } from '../bench-lib.mjs';
import { build } from './common.mjs';
import { sinkOf, withQemu } from './hidden.mjs';

const harts = 4;
/** Ticks of the 10 MHz timer between two interrupts of a hart: 1 kHz. */
const period = 10_000;
/** Whatever takes longer hangs. */
const longestMs = 600_000;
const sources = resolve(import.meta.dirname, '../../test/support/kernels');

function kernel(arch, calls) {
  const riscv = arch === 'riscv64';
  const [object, elf] = [join(folder, `${arch}.o`), join(folder, `${arch}.elf`)];
  const symbols = Object.entries({ HARTS: harts, CALLS: calls, PERIOD: period, TICKS: 0, RESETS: 0 });
  const defined = symbols.flatMap(([name, value]) => ['--defsym', `${name}=${value}`]);
  const prefix = riscv ? 'riscv64-linux-gnu-' : '';
  const isa = riscv ? ['-march=rv64imac_zicsr_zifencei'] : [];
  const place = riscv ? ['--no-warn-rwx-segments', '-Ttext=0x80000000'] : ['-Ttext-segment=0x100000'];
  build(`${prefix}as`, [...isa, ...defined, '-I', sources, '-o', object, join(sources, `harts-${arch}.s`)]);
  build(`${prefix}ld`, [...place, '-static', object, '-o', elf]);
  const exit = ['-no-reboot', '-device', 'isa-debug-exit,iobase=0xf4,iosize=4'];
  const machine = riscv
    ? ['-M', 'virt', '-bios', 'none', '-smp', '4']
    : [...exit, '-smp', '4,maxcpus=6,sockets=2,cores=3'];
  return { elf, command: [`qemu-system-${arch}`, ...machine, '-nographic', '-nic', 'none', '-kernel', elf] };
}

/** Follows each hart's events, one by one. */
class Check {
  torn = 0;
  disorder = 0;
  first;
  harts = Array.from({ length: harts }, () => ({
    outer: 0,
    inner: 0,
    tick: 0,
    seen: { outer: 0, inner: 0, tick: 0 },
    last: 0,
    open: [],
  }));

  event(event) {
    if (event.type !== 'call-begin' && event.type !== 'call-end') return this.#torn(event);
    const told = this.harts[event.hart];
    if (told === undefined) return this.#torn(event);
    if (event.time < told.last) this.#disorder(event);
    told.last = event.time;
    if (event.type === 'call-begin') this.#begin(event, told);
    else this.#end(event, told);
  }

  #begin(event, told) {
    const { name } = event.function;
    const [call, hart] = event.arguments;
    const number = Number(call?.value);
    if (!Number.isInteger(number) || hart?.value !== String(event.hart)) this.#torn(event);
    else if (number !== told[name]) this.#disorder(event);
    told[name] = number + 1;
    told.seen[name]++;
    // An interrupt may come anywhere; ordinary calls nest in one way only.
    const around = told.open.at(-1);
    const nests = name === 'inner' ? around?.name === 'outer' && around.number === number : around?.name !== name;
    if (!nests) this.#disorder(event);
    told.open.push({ name, number });
  }

  #end(event, told) {
    const { name, number } = told.open.pop() ?? {};
    if (name !== event.function.name) return this.#disorder(event);
    const result = name === 'tick' ? number : 3 * number + event.hart + (name === 'outer' ? 1 : 0);
    if (event.result !== String(result)) this.#torn(event);
  }

  #torn(event) {
    this.torn++;
    this.first ??= event;
  }

  #disorder(event) {
    this.disorder++;
    this.first ??= event;
  }
}

/** What the harts print of themselves before they end. */
function countersOf(text) {
  return [...text.matchAll(/hart \d+ outer (\d+) inner (\d+) ticks (\d+) sum \d+/g)].map((match) => {
    const [outer, inner, tick] = match.slice(1).map(Number);
    return { outer, inner, tick };
  });
}

export async function smp({ events }) {
  for (const arch of ['riscv64', 'x86_64']) {
    // Each call of `outer` is four events: its begin and end, and those of the `inner` that it calls.
    const { elf, command } = kernel(arch, Math.ceil(events / 4 / harts));
    const program = await prepare(
      elf,
      ['fn:outer', 'fn:inner', 'fn:tick'].map((text) => parseProbe(text)),
    );
    const check = new Check();
    await withQemu(command, async ({ session, scratch, ended, console: printed }) => {
      const sink = sinkOf((event) => check.event(event));
      const signal = AbortSignal.timeout(longestMs);
      const recording = await record({ session, program, sink, engine: 'target', scratch, signal });
      if (recording.error) throw recording.error;
      if (recording.end !== 'guest-ended') throw new Error(`the guest has not ended after ${longestMs / 1000} s`);
      await ended;
      const counters = countersOf(printed());
      if (counters.length !== harts) throw new Error(`the guest has not come to its end: ${printed().slice(-300)}`);
      const names = ['outer', 'inner', 'tick'];
      const lost = counters.reduce(
        (sum, own, hart) =>
          sum + names.reduce((of, name) => of + Math.abs(own[name] - check.harts[hart].seen[name]), 0),
        recording.missing,
      );
      const open = check.harts.reduce((sum, { open: calls }) => sum + calls.length, 0);
      const us = ((recording.hostMs / recording.records) * 1000).toFixed(3);
      const ticks = counters.reduce((sum, { tick }) => sum + tick, 0);
      console.log(
        `smp, four harts of ${arch}, a timer of 1 kHz each: ${recording.records} events, ${ticks} interrupts`,
      );
      const found = `${lost} lost, ${check.torn} torn, ${check.disorder} out of order, ${open} calls left open`;
      console.log(`  ${found}; ${us} us an event, the guest's own time included`);
      if (check.first)
        console.log(
          `  the first that is wrong: ${JSON.stringify(check.first, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`,
        );
      if (lost + check.torn + check.disorder + open > 0) process.exitCode = 1;
    });
  }
}
