// What a hit costs, in microseconds an event: GDB + Python, a C client that does nothing else (bench-floor.c) and rsptrace's stop engine, at one
// function of a long guest on QEMU and of a C program under gdbserver.
//   entry: one event a hit, the pc and two registers read.
//   entry + exit: two events a call. GDB sets a FinishBreakpoint and reads no memory; rsptrace records the call in full: of a poll the
//   Future's bytes before and after, the guest's clock, and the trace file written. The C client reads the same in the same packets.
// The runs are interleaved, so that load on the machine falls on all; medians over rounds. The first events of a run (--warm) do not count:
// until V8 has compiled what runs at a hit, that costs several times as much. GDB has nothing to warm up, and is given a few.
// 'packets' is rsptrace that reads all memory by packets, as it does where the RAM of a QEMU cannot be read past the wire.
// No round begins that would end after --seconds (120): which ones were run is printed.
// CPU is the client's own, user and system, with all threads of the process (JIT, garbage collector).
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findFutures } from '../dist/async/futures/index.js';
import { findClock } from '../dist/clock/index.js';
import { parseProbe } from '../dist/probes/index.js';
import { addressesOf, prepare, record } from '../dist/record/index.js';
import { connect } from '../dist/rsp/index.js';
import { StopEngine } from '../dist/stop/index.js';
import { GuestRam } from '../dist/target/index.js';
import { openTrace, Summary, tee } from '../dist/trace/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';
import { floor, folder, gdb, inTime, median, roundsText, startGdbserver, startQemu } from './bench-lib.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '120' },
    hits: { type: 'string', default: '400' },
    warm: { type: 'string', default: '800' },
    guest: { type: 'string', multiple: true, default: ['rv-o2-long', 'x86-o2-long', 'gdbserver'] },
    probe: { type: 'string', default: 'poll:labkern::work::leaf_io' },
    client: { type: 'string', multiple: true, default: ['gdb', 'C', 'rsptrace', 'packets'] },
  },
});
const rounds = Number(values.rounds);
const hits = Number(values.hits);
const warm = Number(values.warm);

/** Marks the events that count; `done` is called at the last. */
function meter(done) {
  let events = 0;
  let began = 0;
  let cpu;
  const result = {};
  return {
    result,
    event() {
      events++;
      if (events === warm) {
        cpu = process.cpuUsage();
        began = performance.now();
      } else if (events === hits + warm) {
        result.wall = ((performance.now() - began) / hits) * 1000;
        const { user, system } = process.cpuUsage(cpu);
        result.cpu = (user + system) / hits;
        done();
      }
    },
  };
}

/** Entry alone: the engine with a tracer that reads two registers and counts. */
async function entry({ start, program, address }) {
  const stub = start();
  const session = await connect(stub.address, { waitMs: 5000 });
  const ram = await GuestRam.find(session);
  if (ram?.refused) throw new Error(ram.refused);
  const [first, second] = program.arch.arguments;
  const { event, result } = meter(() => engine.stop());
  const engine = new StopEngine({
    session,
    ram,
    arch: program.arch,
    code: (at, length) => program.elf.bytesAt(at, length),
    hartNumber: () => 0,
    isSameProgram: async () => true,
    findClock: () => findClock(session, program.arch, () => engine.runningTime(), 'intervals'),
    tracer: {
      *visit({ registers }) {
        registers.register(first);
        registers.register(second);
        yield [];
        return { watch: [], unwatch: [] };
      },
      abandon() {},
      digest: event,
    },
  });
  await engine.points.arm([address]);
  await engine.run();
  session.close();
  stub.stop();
  return result;
}

const calls = new Set(['poll-begin', 'poll-end', 'call-begin', 'call-end']);

/** Entry and exit: the recorder as the command runs it. */
async function exit({ start, program, clock }) {
  const stub = start();
  const session = await connect(stub.address, { waitMs: 5000 });
  const inner = tee([openTrace(join(folder, 'bench.pftrace'), { force: true }), new Summary()]);
  const stopper = new AbortController();
  const { event: count, result } = meter(() => stopper.abort());
  const sink = {
    begin: (info) => inner.begin(info),
    hart: (hart) => inner.hart(hart),
    flush: () => inner.flush(),
    end: () => inner.end(),
    event(event) {
      inner.event(event);
      if (calls.has(event.type)) count();
    },
  };
  const recording = await record({ session, program, sink, signal: stopper.signal, engine: 'stop' });
  session.close();
  stub.stop();
  if (recording.clock.name !== clock.name) throw new Error(`the clock is ${recording.clock.name}, not ${clock.name}`);
  return result;
}

/** The same without RAM past the wire. */
async function byPackets(run) {
  const { find } = GuestRam;
  GuestRam.find = async () => undefined;
  try {
    return await run();
  } finally {
    GuestRam.find = find;
  }
}

/** What the C client asks for the time, as src/clock/clock.ts does. */
const clocks = {
  riscv64: { name: 'riscv-time', packet: 'pc43' },
  x86_64: { name: 'x86-acpi-pm', packet: `qRcmd,${Buffer.from('i /w 0x608').toString('hex')}` },
  gdbserver: { name: 'running-intervals' },
};

async function guestBench(name) {
  const guest = findGuest(name);
  const elf = unpack(guest);
  const program = await prepare(elf, [parseProbe(values.probe)]);
  // Drops of the Future are probed too.
  const futures = findFutures(program.debug);
  const address = addressesOf(program).find((each) => futures.byPollAddress(each));
  const { size } = futures.byPollAddress(address);
  const start = () => startQemu(guest, elf);
  const pointer = guest.arch === 'riscv64' ? { place: 10, registers: 'a0 a1' } : { place: 5, registers: 'rdi rsi' };
  const reads = { place: pointer.place, length: size };
  return {
    elf,
    program,
    address,
    start,
    reads,
    registers: pointer.registers,
    clock: clocks[guest.arch],
    what: values.probe,
  };
}

/** It ends with gdbserver, which leaves it running when it is killed. */
const nativeProgram = `#include <signal.h>
#include <sys/prctl.h>
volatile long sink;
__attribute__((noinline)) long work(long a, long b) { for (long i = 0; i < 20; i++) sink += a ^ b; return sink; }
int main(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (long i = 0;; i++) work(i, 3); }
`;

async function gdbserverBench() {
  const elf = join(folder, 'native');
  writeFileSync(`${elf}.c`, nativeProgram);
  execFileSync('gcc', ['-g', '-O0', '-fcf-protection=none', '-no-pie', '-o', elf, `${elf}.c`]);
  const program = await prepare(elf, [parseProbe('fn:work')]);
  const [address] = addressesOf(program);
  const start = () => startGdbserver(elf);
  return { elf, program, address, start, registers: 'rdi rsi', clock: clocks.gdbserver, what: 'fn:work' };
}

const figure = (value) => value.toFixed(0).padStart(6);
/** What is measured of one guest, and what it gave. */
async function measured(name) {
  const bench = await (name === 'gdbserver' ? gdbserverBench() : guestBench(name));
  const address = `0x${bench.address.toString(16)}`;
  const counts = { hits, warm };
  const few = { hits, warm: Math.min(warm, 20) };
  const kinds = {
    'gdb entry': () => gdb({ ...bench, address, mode: 'entry', ...few }),
    'C entry': () => floor({ start: bench.start, address, mode: 'entry', ...counts }),
    'rsptrace entry': () => entry(bench),
    'gdb entry+exit': () => gdb({ ...bench, address, mode: 'exit', ...few }),
    'C entry+exit': () => floor({ ...bench, address, mode: 'exit', ...counts }),
    'rsptrace entry+exit': () => exit(bench),
    'packets entry': () => byPackets(() => entry(bench)),
    'packets entry+exit': () => byPackets(() => exit(bench)),
  };
  for (const kind of Object.keys(kinds)) if (!values.client.includes(kind.split(' ')[0])) delete kinds[kind];
  const results = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  const round = async () => {
    for (const [kind, run] of Object.entries(kinds)) results[kind].push(await run());
  };
  return { what: `${name}: ${bench.what} at ${address}`, results, round };
}

const guests = {};
for (const name of values.guest) guests[name] = await measured(name);
const units = Object.fromEntries(Object.entries(guests).map(([name, { round }]) => [name, round]));
const done = await inTime(units, { rounds, seconds: Number(values.seconds) });
for (const [name, { what, results }] of Object.entries(guests)) {
  if (done[name] === 0) {
    console.log(`${what}: not measured, ${values.seconds} s had passed (--seconds)`);
    continue;
  }
  console.log(`${what}, ${hits} events a run after ${warm}, ${roundsText(done[name])}`);
  const wall = (kind) => median(results[kind].map((each) => each.wall));
  for (const [kind, list] of Object.entries(results)) {
    const walls = list.map((each) => each.wall);
    const range = `(${Math.min(...walls).toFixed(0)} .. ${Math.max(...walls).toFixed(0)})`.padEnd(15);
    const cpu =
      list[0].cpu === undefined ? '' : `${figure(median(list.map((each) => each.cpu)))} us of the client's CPU`;
    console.log(`  ${kind.padEnd(20)} ${figure(wall(kind))} us an event   ${range} ${cpu}`);
  }
  if (values.client.includes('packets') && values.client.includes('rsptrace') && name !== 'gdbserver') {
    for (const what of ['entry', 'entry+exit'])
      console.log(
        `  ${what}: past the wire takes ${(wall(`rsptrace ${what}`) / wall(`packets ${what}`)).toFixed(3)}x of by packets`,
      );
  }
  const compared = ['gdb', 'C', 'rsptrace'].every((who) => values.client.includes(who));
  for (const what of compared ? ['entry', 'entry+exit'] : []) {
    const [baseline, least, ours] = ['gdb', 'C', 'rsptrace'].map((who) => wall(`${who} ${what}`));
    console.log(
      `  ${what}: rsptrace takes ${(ours / least).toFixed(2)}x the C client's time, and is ${(baseline / ours).toFixed(1)}x as fast as GDB + Python`,
    );
  }
}
