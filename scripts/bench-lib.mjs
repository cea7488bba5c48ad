// What benchmarks share: stubs that stand at the first instruction, GDB's and a C client's time an event, medians.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const folder = mkdtempSync(join(tmpdir(), 'rsptrace-bench-'));
const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
// Whoever ends us early wants no QEMU left either.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
export const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

/**
 * Runs units of work (a round of one guest) in turn, up to `rounds` each, and none that would end after `seconds`, by
 * what the slowest took so far. The first is run in any case. Returns how many rounds each has had.
 */
export async function inTime(units, { rounds, seconds }) {
  const began = performance.now();
  const done = Object.fromEntries(Object.keys(units).map((name) => [name, 0]));
  let longest = 0;
  for (let round = 0; round < rounds; round++)
    for (const [name, run] of Object.entries(units)) {
      const start = performance.now();
      if (start - began + longest > seconds * 1000) return done;
      await run();
      done[name]++;
      longest = Math.max(longest, performance.now() - start);
    }
  return done;
}

export const roundsText = (done) => (done === 1 ? '1 round' : `${done} interleaved rounds`);
const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
let stubs = 0;

function startStub(program, args, socket) {
  const child = spawn(program, args, { stdio: 'ignore' });
  running.add(child);
  return {
    address: socket,
    stop: () => {
      running.delete(child);
      child.kill('SIGKILL');
    },
  };
}

/** A guest that stands at its first instruction. */
export function startQemu(guest, elf) {
  const socket = join(folder, `gdb${++stubs}`);
  const [program, ...args] = guest.qemu.map((arg) => (arg === '{elf}' ? elf : arg));
  const options = ['-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
  const stub = startStub(program, [...args, ...options], socket);
  while (!existsSync(socket)) pause();
  return stub;
}

/** A program under gdbserver, which says its port only in words. */
export function startGdbserver(elf, ...args) {
  const said = join(folder, `gdbserver${++stubs}`);
  const command = 'said=$0; exec gdbserver --once 127.0.0.1:0 "$@" 2>"$said"';
  const stub = startStub('sh', ['-c', command, said, elf, ...args]);
  for (;;) {
    const port = existsSync(said) && /Listening on port (\d+)/.exec(readFileSync(said, 'utf8'))?.[1];
    if (port) return { ...stub, address: `127.0.0.1:${port}` };
    pause();
  }
}

function resultOf(name, { stdout, stderr }) {
  const found = /RESULT ([\d.]+)(?: ([\d.]+))?/.exec(stdout);
  if (!found) throw new Error(`${name} gave no result:\n${stdout}${stderr}`);
  return { wall: Number(found[1]), cpu: found[2] === undefined ? undefined : Number(found[2]) };
}

/** Microseconds an event with GDB + Python: mode `entry`, or `exit` for entry and exit. */
export function gdb({ start, elf, address, mode, hits, registers, warm = 5 }) {
  const stub = start();
  const env = { ...process.env, TARGET: stub.address, ADDRESS: address, MODE: mode, HITS: String(hits) };
  const more = { ...env, REGISTERS: registers, WARM: String(warm) };
  const script = resolve(import.meta.dirname, 'bench-gdb.py');
  const options = { env: more, encoding: 'utf8', timeout: 300_000 };
  const ran = spawnSync('gdb-multiarch', ['-nx', '-batch', '-x', script, elf], options);
  stub.stop();
  return resultOf('gdb', ran);
}

let client;
/** Microseconds an event, wall and CPU, with the C client; `reads`: the Future's bytes, by the place of its pointer in `g`. */
export function floor({ start, address, mode, hits, warm, reads, clock }) {
  if (client === undefined) {
    client = join(folder, 'floor');
    execFileSync('gcc', ['-O2', '-o', client, resolve(import.meta.dirname, 'bench-floor.c')]);
  }
  const stub = start();
  const where = stub.address.replace(/^.*:/, '');
  const { place = -1, length = 0 } = reads ?? {};
  const args = [
    where,
    address.replace('0x', ''),
    mode,
    hits,
    warm,
    place,
    length,
    ...(clock?.packet ? [clock.packet] : []),
  ];
  const ran = spawnSync(client, args.map(String), { encoding: 'utf8', timeout: 300_000 });
  stub.stop();
  return resultOf('the C client', ran);
}
