// What the parts of `scripts/bench engine` share: the guests, rsptrace as people run it, what it is compared with, and how figures are printed.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseProbe } from '../../dist/probes/index.js';
import { addressesOf, prepare } from '../../dist/record/index.js';
import { connect } from '../../dist/rsp/index.js';
import { findGuest, unpack } from '../../test/qemu/guests/store.mjs';
import { folder, gdb, median, startQemu } from '../bench-lib.mjs';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

/** Runs a program to its end; how long that took, in milliseconds. */
export function timed(program, args) {
  const began = performance.now();
  const options = { encoding: 'utf8', maxBuffer: 1 << 28, timeout: 600_000, killSignal: 'SIGKILL' };
  const { status, stdout, stderr } = spawnSync(program, args, options);
  if (status === null)
    throw new Error(`${program} was ended after ${((performance.now() - began) / 1e3).toFixed(0)} s`);
  return { ms: performance.now() - began, status, stdout, stderr };
}

/** rsptrace with `--json` and the trace written: what it says, and how long the command took as a whole. */
export function rsptrace(command, ...args) {
  const trace = join(folder, 'engine.pftrace');
  const { ms, stdout, stderr } = timed(process.execPath, [main, ...command, '--json', '--force', '-o', trace, ...args]);
  const said = stdout.trim() === '' ? undefined : JSON.parse(stdout);
  if (said === undefined || said.error) throw new Error(said?.error?.message ?? stderr.slice(-500));
  return { ...said, ms, bytes: statSync(trace).size };
}

/** Records a second that became events and trace, in millions. */
export const decodeRate = ({ records, digested_ms: ms }) => records / ms / 1e3;

export const bytesAnEvent = ({ bytes, events }) => `${(bytes / events).toFixed(1)} bytes of trace an event`;

/** One of the repository's guests, and where a probe of it lies. */
export async function labGuest(name, probe) {
  const guest = findGuest(name);
  const elf = unpack(guest);
  const command = guest.qemu.map((arg) => (arg === '{elf}' ? elf : arg));
  const [address] = addressesOf(await prepare(elf, [parseProbe(probe)]));
  const registers = guest.arch === 'riscv64' ? 'a0 a1' : 'rdi rsi';
  // The end of its RAM, but for what QEMU has there: no guest of these uses it.
  const free = guest.arch === 'riscv64' ? '0x87c00000' : '0x7c00000';
  const place = `0x${address.toString(16)}`;
  return { name, elf, command, probe, address: place, registers, free, start: () => startQemu(guest, elf) };
}

/** Microseconds an event with GDB and Python: entry and exit. */
export function gdbEach({ start, elf, address, registers }, hits) {
  return gdb({ start, elf, address, registers, mode: 'exit', hits }).wall;
}

/** What a frozen target takes that nobody traces, from its first instruction to its end, in milliseconds. */
export async function untraced(start) {
  const stub = start();
  const session = await connect(stub.address, { waitMs: 10_000 });
  const began = performance.now();
  let stop = await session.resume();
  while (stop.kind === 'signal') stop = await session.resume();
  const ms = performance.now() - began;
  session.close();
  stub.stop();
  return ms;
}

/** rsptrace at a stub that is started for it, see {@link rsptrace}. */
export function attached(start, ...args) {
  const stub = start();
  try {
    return rsptrace(['--remote', stub.address], ...args);
  } finally {
    stub.stop();
  }
}

/** Microseconds an event of the stop engine, at a stub that is started for it. */
export function stopEach({ start, elf, probe }, hits) {
  const { host_ms: ms, stops } = attached(start, '--engine', 'stop', '-n', String(hits), '-p', probe, elf);
  return (ms / stops) * 1000;
}

/** Prints a figure with its median, least and most. */
export function row(what, list, unit, note = '') {
  const digits = median(list) < 10 ? 3 : median(list) < 100 ? 1 : 0;
  const text = (value) => value.toFixed(digits);
  const range = `(${text(Math.min(...list))} .. ${text(Math.max(...list))})`;
  console.log(`  ${what.padEnd(34)} ${text(median(list)).padStart(8)} ${unit} ${range.padEnd(20)} ${note}`.trimEnd());
}

/** How many times as fast: the ratio of medians. */
export function times(slow, fast) {
  const ratio = median(slow) / median(fast);
  return ratio < 100 ? ratio.toFixed(1) : ratio.toFixed(0);
}

/** The assembler, or the compiler, with its messages where it fails. */
export function build(program, args) {
  const { status, stderr } = timed(program, args);
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}
