// A stub that runs already, and memory in the guest that packets read at each stop of a full ring.
//   attached: a ring of 1 MiB; the time of the recording, less what the guest takes untraced from its first instruction to its end.
//   small: 4 KiB of memory for it, against the stop engine at the same probe and stub.
import { median } from '../bench-lib.mjs';
import { attached as atStub, gdbEach, labGuest, row, stopEach, times, untraced } from './common.mjs';

/** Code, guard pages and 1 MiB of ring. */
const large = '0x140000';
const page = '4K';
/** A function with an argument, whose events take 64 bytes, as those of the polls here. */
const smallProbe = 'fn:labkern::work::deep7';
/** Events of the run in little memory: a stop for every few tens of them. */
const smallEvents = 100_000;

export async function attached({ guests, probe, rounds, hits }) {
  for (const name of guests) {
    const lab = await labGuest(name, probe);
    const { start, elf, free } = lab;
    const [base, gdb, runs] = [[], [], []];
    const args = ['--engine', 'target', '--scratch', `${free},${large}`, '-p', probe, elf];
    for (let round = 0; round < rounds; round++) {
      base.push(await untraced(start));
      runs.push(atStub(start, ...args));
      gdb.push(gdbEach(lab, hits));
    }
    const each = runs.map(({ host_ms: ms, records }) => ((ms - median(base)) / records) * 1000);
    console.log(`attached, ring of 1 MiB read by packets, ${name}: ${probe}, untraced ${median(base).toFixed(0)} ms`);
    row('GDB + Python, entry and exit', gdb, 'us an event');
    const [{ records, stops, missing }] = runs;
    const note = `${records} events, ${missing} missing, ${stops} stops; ${times(gdb, each)} x GDB`;
    row('--engine target', each, 'us an event net', note);
  }
}

export async function small({ guests, rounds, hits }) {
  const probe = smallProbe;
  for (const name of guests) {
    const lab = await labGuest(name, probe);
    const { start, elf, free } = lab;
    const [stop, runs] = [[], []];
    const args = ['--engine', 'target', '--scratch', `${free},${page}`, '-n', String(smallEvents), '-p', probe, elf];
    console.log(`small, 4 KiB of memory, ${name}: ${probe}`);
    for (let round = 0; round < rounds; round++) {
      runs.push(atStub(start, ...args));
      stop.push(stopEach(lab, hits));
    }
    const each = runs.map(({ host_ms: ms, records }) => (ms / records) * 1000);
    row('--engine stop', stop, 'us an event');
    const [{ records, stops }] = runs;
    row('--engine target', each, 'us an event', `${records} events, ${stops} stops; ${times(stop, each)} x stop`);
  }
}
