// What benchmarks share: guests that stand at their first instruction, GDB's time an event, medians.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const folder = mkdtempSync(join(tmpdir(), 'rsptrace-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
export const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)];

let qemus = 0;
/** A guest that stands at its first instruction. */
export function startQemu(guest, elf) {
  const socket = join(folder, `gdb${++qemus}`);
  const [program, ...args] = guest.qemu.map((arg) => (arg === '{elf}' ? elf : arg));
  const child = spawn(
    program,
    [...args, '-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'],
    {
      stdio: 'ignore',
    },
  );
  return { socket, stop: () => child.kill('SIGKILL') };
}

/** Microseconds an event with GDB + Python: `entry`, or `exit` for entry and exit. */
export function gdb(guest, elf, address, mode, hits) {
  const qemu = startQemu(guest, elf);
  spawnSync('sleep', ['0.3']);
  const env = { ...process.env, TARGET: qemu.socket, ADDRESS: address, MODE: mode, HITS: String(hits) };
  env.REGISTERS = guest.arch === 'riscv64' ? 'a0 a1' : 'rdi rsi';
  const script = resolve(import.meta.dirname, 'bench-gdb.py');
  const { stdout, stderr } = spawnSync('gdb-multiarch', ['-nx', '-batch', '-x', script, elf], {
    env,
    encoding: 'utf8',
    timeout: 300_000,
  });
  qemu.stop();
  const found = /RESULT ([\d.]+)/.exec(stdout);
  if (!found) throw new Error(`gdb gave no result:\n${stdout}${stderr}`);
  return Number(found[1]);
}
