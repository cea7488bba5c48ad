// One hart of each QEMU under `rsptrace run`, the ring read out of shared memory while the guest runs, the trace file written.
//   guest:   how much longer the guest ran than untraced, from its first instruction to its end
//   decode:  records a second that became events and trace, in the time that went into that
//   command: the wall time of the whole command, rsptrace's own start and its reading of the ELF included, less that of QEMU alone
//   polls: every poll of the program's own crates.   functions: fn:**.   both: fn:** and poll:**.   values: fn:** with arguments and results.
import { inTime, median, roundsText } from '../bench-lib.mjs';
import {
  bytesAnEvent,
  decodeRate,
  gdbEach,
  labGuest,
  row,
  rsptrace,
  stopEach,
  timed,
  times,
  untraced,
} from './common.mjs';

export const kinds = {
  polls: [],
  functions: ['-p', 'fn:**', '--no-args'],
  both: ['-p', 'fn:**', '-p', 'poll:**', '--no-args'],
  values: ['-p', 'fn:**'],
};

/** Each kind of each guest is measured in turn, until `seconds` have passed or `rounds` are done. */
export async function live({ guests, probe, rounds, hits, seconds, kinds: wanted }) {
  const labs = [];
  for (const kind of wanted)
    for (const name of guests) {
      const lab = await labGuest(name, probe);
      labs.push({ name: `${name}, ${kind}`, kind, lab, base: [], alone: [], gdb: [], stop: [], runs: [] });
    }
  const units = Object.fromEntries(labs.map((one) => [one.name, () => oneRound(one, hits)]));
  const done = await inTime(units, { rounds, seconds });
  for (const one of labs) {
    if (done[one.name] > 0) print(`live, ${one.name}, ${roundsText(done[one.name])}`, one);
    else console.log(`live, ${one.name}: not measured, no time left of ${seconds} s (--seconds)`);
  }
}

async function oneRound({ kind, lab, base, alone, gdb, stop, runs }, hits) {
  const { command, elf } = lab;
  base.push(timed(command[0], command.slice(1)).ms);
  alone.push(await untraced(lab.start));
  runs.push(rsptrace(['run'], '--engine', 'target', ...kinds[kind], elf, '--', ...command));
  stop.push(stopEach(lab, hits));
  gdb.push(gdbEach(lab, hits));
}

function print(what, { base, alone, gdb, stop, runs }) {
  console.log(`${what}: untraced ${median(base).toFixed(0)} ms`);
  row('GDB + Python, entry and exit', gdb, 'us an event');
  row('--engine stop', stop, 'us an event');
  const each = runs.map(({ ms, records }) => ((ms - median(base)) / records) * 1000);
  const missing = runs.reduce((sum, run) => sum + run.missing, 0);
  const note = `${runs[0].records} events, ${missing} missing; ${times(gdb, each)} x GDB, ${times(stop, each)} x stop`;
  row('--engine target: command', each, 'us an event net', note);
  const guest = runs.map(({ ran_ms: ran, records }) => ((ran - median(alone)) / records) * 1000);
  row('--engine target: guest', guest, 'us an event net');
  row('--engine target: decode', runs.map(decodeRate), 'M records a second', bytesAnEvent(runs[0]));
}
