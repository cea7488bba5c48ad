// A program of this machine under gdbserver, its ring a memfd that is read while it runs: test/native/calls.c, whose `leaf` is called nine times an
// iteration. The time of the recording, less what the program takes untraced under gdbserver; beside it uftrace, of the same program with -pg.
import { join, resolve } from 'node:path';
import { parseProbe } from '../../dist/probes/index.js';
import { addressesOf, prepare } from '../../dist/record/index.js';
import { folder, median, startGdbserver } from '../bench-lib.mjs';
import { attached, build, bytesAnEvent, decodeRate, gdbEach, row, timed, times, untraced } from './common.mjs';

const iterations = '170000';
const probe = 'fn:leaf';

export async function gdbserver({ rounds, hits }) {
  const elf = join(folder, 'calls');
  const source = resolve(import.meta.dirname, '../../test/native/calls.c');
  build('gcc', ['-g', '-O2', '-pthread', '-no-pie', '-o', elf, source]);
  const [address] = addressesOf(await prepare(elf, [parseProbe(probe)]));
  const profiled = join(folder, 'calls-pg');
  build('gcc', ['-g', '-pg', '-O2', '-pthread', '-no-pie', '-o', profiled, source]);
  const start = () => startGdbserver(elf, 'plain', iterations);
  const program = { start, elf, address: `0x${address.toString(16)}`, registers: 'rdi rsi' };
  const [base, gdb, runs, uftrace] = [[], [], [], []];
  for (let round = 0; round < rounds; round++) {
    base.push(await untraced(start));
    runs.push(attached(start, '--engine', 'target', '-p', probe, elf));
    gdb.push(gdbEach(program, hits));
    const data = join(folder, 'uftrace');
    const only = ['-F', 'leaf', '--no-libcall', '-d', data];
    const recorded = timed('uftrace', ['record', ...only, profiled, 'plain', iterations]).ms;
    uftrace.push({ recorded, whole: recorded + timed('uftrace', ['dump', '-d', data]).ms });
  }
  const each = runs.map(({ host_ms: ms, records }) => ((ms - median(base)) / records) * 1000);
  const [{ records, missing, scratch }] = runs;
  console.log(`gdbserver, calls.c: ${probe}, untraced ${median(base).toFixed(0)} ms; ${scratch}`);
  row('GDB + Python, entry and exit', gdb, 'us an event');
  row('--engine target', each, 'us an event net', `${records} events, ${missing} missing; ${times(gdb, each)} x GDB`);
  row('--engine target: decode', runs.map(decodeRate), 'M records a second', bytesAnEvent(runs[0]));
  row(
    '--engine target: program',
    runs.map(({ ran_ms: ms }) => ms),
    'ms',
  );
  row(
    '--engine target: all',
    runs.map(({ host_ms: ms }) => ms),
    'ms',
  );
  row(
    'uftrace record',
    uftrace.map(({ recorded }) => recorded),
    'ms',
  );
  row(
    'uftrace record and dump',
    uftrace.map(({ whole }) => whole),
    'ms',
  );
}
