// One hart of each QEMU under `rsptrace run`, the ring read out of shared memory while the guest runs, the trace file written.
//   guest:   how much longer the guest ran than untraced, from its first instruction to its end
//   decode:  records a second that became events and trace, in the time that went into that
//   command: the wall time of the whole command, rsptrace's own start and its reading of the ELF included, less that of QEMU alone
//   polls: every poll of the program's own crates.   functions: fn:** as well.
import { median } from '../bench-lib.mjs';
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

const kinds = {
  polls: [],
  functions: ['-p', 'fn:**', '--no-args'],
  both: ['-p', 'fn:**', '-p', 'poll:**', '--no-args'],
};

export async function live({ guests, probe, rounds, hits }) {
  for (const name of guests) {
    const lab = await labGuest(name, probe);
    const { command, elf } = lab;
    const base = [];
    const alone = [];
    const [gdb, stop] = [[], []];
    const traced = { polls: [], functions: [], both: [] };
    for (let round = 0; round < rounds; round++) {
      base.push(timed(command[0], command.slice(1)).ms);
      alone.push(await untraced(lab.start));
      for (const [kind, probes] of Object.entries(kinds))
        traced[kind].push(rsptrace(['run'], '--engine', 'target', ...probes, elf, '--', ...command));
      stop.push(stopEach(lab, hits));
      gdb.push(gdbEach(lab, hits));
    }
    console.log(`live, ${name}: untraced ${median(base).toFixed(0)} ms`);
    row('GDB + Python, entry and exit', gdb, 'us an event');
    row('--engine stop', stop, 'us an event');
    for (const [kind, runs] of Object.entries(traced)) {
      const each = runs.map(({ ms, records }) => ((ms - median(base)) / records) * 1000);
      const missing = runs.reduce((sum, run) => sum + run.missing, 0);
      const note = `${runs[0].records} events, ${missing} missing; ${times(gdb, each)} x GDB, ${times(stop, each)} x stop`;
      row(`--engine target, ${kind}: command`, each, 'us an event net', note);
      const guest = runs.map(({ ran_ms: ran, records }) => ((ran - median(alone)) / records) * 1000);
      row(`--engine target, ${kind}: guest`, guest, 'us an event net');
      row(`--engine target, ${kind}: decode`, runs.map(decodeRate), 'M records a second', bytesAnEvent(runs[0]));
    }
  }
}
