// A program of this machine under gdbserver, its ring a memfd that is read while it runs: test/native/calls.c, whose `leaf` is called nine times an
// iteration. The time of the recording, less what the program takes untraced under gdbserver.
import { join, resolve } from 'node:path';
import { parseProbe } from '../../dist/probes/index.js';
import { prepare } from '../../dist/recorder/index.js';
import { folder, median, startGdbserver } from '../bench-lib.mjs';
import { attached, build, gdbEach, row, times, untraced } from './common.mjs';

const iterations = '170000';
const probe = 'fn:leaf';

export async function gdbserver({ rounds, hits }) {
  const elf = join(folder, 'calls');
  const source = resolve(import.meta.dirname, '../../test/native/calls.c');
  build('gcc', ['-g', '-O2', '-pthread', '-no-pie', '-o', elf, source]);
  const [{ address }] = (await prepare(elf, [parseProbe(probe)])).functions.probes;
  const start = () => startGdbserver(elf, 'plain', iterations);
  const program = { start, elf, address: `0x${address.toString(16)}`, registers: 'rdi rsi' };
  const [base, gdb, runs] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    base.push(await untraced(start));
    runs.push(attached(start, '--engine', 'target', '-p', probe, elf));
    gdb.push(gdbEach(program, hits));
  }
  const each = runs.map(({ host_ms: ms, records }) => ((ms - median(base)) / records) * 1000);
  const [{ records, missing, scratch }] = runs;
  console.log(`gdbserver, calls.c: ${probe}, untraced ${median(base).toFixed(0)} ms; ${scratch}`);
  row('GDB + Python, entry and exit', gdb, 'us an event');
  row('--engine target', each, 'us an event net', `${records} events, ${missing} missing; ${times(gdb, each)} x GDB`);
}
