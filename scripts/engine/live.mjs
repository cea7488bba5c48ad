// One hart of each QEMU under `rsptrace run`, the ring read out of shared memory while the guest runs, the trace file written: the wall time of
// the whole command, rsptrace's own start and its reading of the ELF included, less that of QEMU alone.
//   polls: every poll of the program's own crates.   functions: fn:** as well.
import { median } from '../bench-lib.mjs';
import { gdbEach, labGuest, row, rsptrace, stopEach, timed, times } from './common.mjs';

const kinds = { polls: [], functions: ['-p', 'fn:**', '-p', 'poll:**', '--no-args'] };

export async function live({ guests, probe, rounds, hits }) {
  for (const name of guests) {
    const lab = await labGuest(name, probe);
    const { command, elf } = lab;
    const base = [];
    const [gdb, stop] = [[], []];
    const traced = { polls: [], functions: [] };
    for (let round = 0; round < rounds; round++) {
      base.push(timed(command[0], command.slice(1)).ms);
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
      row(`--engine target, ${kind}`, each, 'us an event net', note);
    }
  }
}
