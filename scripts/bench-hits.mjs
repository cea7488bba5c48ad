// Wall time per event at one poll function of the long guest, in microseconds: GDB + Python against rsptrace's stop engine.
//   entry: one event a hit, the pc and two registers read.
//   entry + exit: two events a call. GDB sets a FinishBreakpoint and reads no memory; rsptrace records the poll in full, with
//   the Future's bytes before and after, the guest's clock, and the trace file written.
// The runs are interleaved, so that load on the machine falls on both; medians over rounds.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findClock, parseProbe, StopEngine } from '../dist/probes/index.js';
import { prepare, record } from '../dist/recorder/index.js';
import { connect } from '../dist/rsp/index.js';
import { openTrace, Summary, tee } from '../dist/trace/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';
import { folder, gdb, median, startQemu } from './bench-lib.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    hits: { type: 'string', default: '1000' },
    guest: { type: 'string', multiple: true, default: ['rv-o2-long', 'x86-o2-long'] },
    probe: { type: 'string', default: 'poll:labkern::work::leaf_io' },
  },
});
const rounds = Number(values.rounds);
const hits = Number(values.hits);
const warm = 5;
/** Entry alone: the engine with a tracer that reads two registers and counts. */
async function entry(guest, elf, program) {
  const qemu = startQemu(guest, elf);
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 5000 });
  const [first, second] = program.arch.arguments;
  let events = 0;
  let began = 0;
  let took = 0;
  const engine = new StopEngine({
    session,
    arch: program.arch,
    code: (address, length) => program.elf.bytesAt(address, length),
    hartNumber: () => 0,
    isSameProgram: async () => true,
    findClock: () => findClock(session, program.arch.name, () => engine.runningTime(), 'intervals'),
    tracer: {
      wants({ registers }) {
        registers.register(first);
        registers.register(second);
        return [];
      },
      react: () => ({ watch: [], unwatch: [] }),
      abandon() {},
      digest() {
        events++;
        if (events === warm) began = performance.now();
        if (events === hits + warm) {
          took = performance.now() - began;
          engine.stop();
        }
      },
    },
  });
  await engine.arm(program.polls.probes.probes.map((probe) => probe.address));
  await engine.run();
  session.close();
  qemu.stop();
  return (took / hits) * 1000;
}

/** Entry and exit: the recorder as the command runs it. */
async function exit(guest, elf, program) {
  const qemu = startQemu(guest, elf);
  const session = await connect(`unix:${qemu.socket}`, { waitMs: 5000 });
  let events = 0;
  let began = 0;
  let took = 0;
  const inner = tee([openTrace(join(folder, 'bench.pftrace')), new Summary()]);
  const polls = { 'poll-begin': 1, 'poll-end': 1 };
  const stopper = new AbortController();
  const sink = {
    begin: (info) => inner.begin(info),
    hart: (hart) => inner.hart(hart),
    flush: () => inner.flush(),
    end: () => inner.end(),
    event(event) {
      inner.event(event);
      if (!polls[event.type]) return;
      events++;
      if (events === warm) began = performance.now();
      if (events === hits + warm) {
        took = performance.now() - began;
        stopper.abort();
      }
    },
  };
  await record({ session, program, sink, signal: stopper.signal, engine: 'stop' });
  session.close();
  qemu.stop();
  return (took / hits) * 1000;
}

for (const name of values.guest) {
  const guest = findGuest(name);
  const elf = unpack(guest);
  const program = await prepare(elf, [parseProbe(values.probe)]);
  const address = `0x${program.polls.probes.probes[0].address.toString(16)}`;
  const kinds = {
    'gdb entry': () => gdb(guest, elf, address, 'entry', hits),
    'rsptrace entry': () => entry(guest, elf, program),
    'gdb entry+exit': () => gdb(guest, elf, address, 'exit', hits),
    'rsptrace entry+exit': () => exit(guest, elf, program),
  };
  const results = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  for (let round = 0; round < rounds; round++)
    for (const [kind, run] of Object.entries(kinds)) results[kind].push(await run());
  console.log(`${name}: ${values.probe} at ${address}, ${hits} events a run, ${rounds} interleaved rounds`);
  for (const [kind, list] of Object.entries(results)) {
    const [low, high] = [Math.min(...list), Math.max(...list)];
    console.log(
      `  ${kind.padEnd(20)} ${median(list).toFixed(0).padStart(6)} us an event   (${low.toFixed(0)} .. ${high.toFixed(0)})`,
    );
  }
  for (const what of ['entry', 'entry+exit']) {
    const ratio = median(results[`gdb ${what}`]) / median(results[`rsptrace ${what}`]);
    console.log(`  ${what}: rsptrace is ${ratio.toFixed(1)}x as fast as GDB + Python`);
  }
}
