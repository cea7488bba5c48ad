// Wall time per event without stops, in microseconds, net of an untraced run: `rsptrace run --engine target` with the trace file written,
// against GDB + Python and against the stop engine at the same poll function. Interleaved, so that load falls on all; medians over rounds.
//   polls: every poll of the program's own crates.   functions: fn:** as well.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseProbe } from '../dist/probes/index.js';
import { prepare } from '../dist/recorder/index.js';
import { findGuest, unpack } from '../test/qemu/guests/store.mjs';
import { folder, gdb, median, startQemu } from './bench-lib.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    hits: { type: 'string', default: '1000' },
    guest: { type: 'string', multiple: true, default: ['rv-o2-long', 'x86-o2-long'] },
    probe: { type: 'string', default: 'poll:labkern::work::leaf_io' },
  },
});
const hits = Number(values.hits);
const main = resolve(import.meta.dirname, '../dist/cli/main.js');

const timed = (program, args) => {
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    timeout: 600_000,
  });
  if (status === null) throw new Error(`${program} was ended: ${stderr}`);
  return { ms: performance.now() - began, stdout, stderr };
};

for (const name of values.guest) {
  const guest = findGuest(name);
  const elf = unpack(guest);
  const command = guest.qemu.map((arg) => (arg === '{elf}' ? elf : arg));
  const program = await prepare(elf, [parseProbe(values.probe)]);
  const address = `0x${program.polls.probes.probes[0].address.toString(16)}`;
  const registers = guest.arch === 'riscv64' ? 'a0 a1' : 'rdi rsi';
  const target = (...options) => {
    const trace = join(folder, 'engine.pftrace');
    const args = [main, 'run', '--json', '--engine', 'target', '-o', trace, ...options, elf, '--', ...command];
    const { ms, stdout, stderr } = timed(process.execPath, args);
    const found = stdout.slice(stdout.lastIndexOf('\n{"version"') + 1);
    if (!found.startsWith('{')) throw new Error(stderr.slice(-500));
    const { records, missing, host_ms: recorded } = JSON.parse(found);
    return { ms, records, missing, recorded };
  };
  const stop = () => {
    const args = [main, 'run', '--json', '--engine', 'stop', '-n', String(hits), '-o', join(folder, 'stop.pftrace')];
    const { stdout } = timed(process.execPath, [...args, '-p', values.probe, elf, '--', ...command]);
    const { host_ms: ms, stops } = JSON.parse(stdout.slice(stdout.lastIndexOf('\n{"version"') + 1));
    return (ms / stops) * 1000;
  };
  const rows = { untraced: [], polls: [], functions: [], stop: [], gdb: [] };
  for (let round = 0; round < Number(values.rounds); round++) {
    rows.untraced.push(timed(command[0], command.slice(1)).ms);
    rows.polls.push(target());
    rows.functions.push(target('-p', 'fn:**', '-p', 'poll:**', '--no-args'));
    rows.stop.push(stop());
    const { wall } = gdb({ start: () => startQemu(guest, elf), elf, address, mode: 'exit', hits, registers });
    rows.gdb.push(wall);
  }
  const base = median(rows.untraced);
  console.log(`${name}: ${values.rounds} interleaved rounds; untraced ${base.toFixed(0)} ms`);
  const baseline = { 'gdb + python, entry+exit': median(rows.gdb), 'rsptrace --engine stop': median(rows.stop) };
  for (const [kind, us] of Object.entries(baseline))
    console.log(`  ${kind.padEnd(28)} ${us.toFixed(0).padStart(8)} us an event`);
  for (const kind of ['polls', 'functions']) {
    const each = rows[kind].map(({ ms, records }) => ((ms - base) / records) * 1000);
    const { records, missing } = rows[kind][0];
    const us = median(each);
    const times = (baseline['gdb + python, entry+exit'] / us).toFixed(0);
    console.log(
      `  --engine target, ${kind.padEnd(11)} ${us.toFixed(3).padStart(8)} us an event net (${records} events, ${missing} missing): ${times} x GDB`,
    );
  }
}
console.log(`on ${/model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]}`);
