import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { qemuArgv } from '../qemu/guests/guests.js';

/** The built command, run as a user runs it. */
export const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

export interface Ran {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ran>;
  /** Resolves when stdout and stderr together have shown this text. */
  shows(text: string): Promise<void>;
}

/** A process and all that it started: a QEMU that outlives its tracer would hold the output open, and the test with it. */
function killTree(root: number): void {
  const processes = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const tree = [root];
  for (const parent of tree) tree.push(...processes.flatMap(([pid = 0, of]) => (of === parent ? [pid] : [])));
  for (const pid of tree) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Starts a program; its output is collected. It is killed after `limitMs`, so that a hang fails a test and nothing more. */
export function start(program: string, args: readonly string[], limitMs = 400_000): Running {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  const waiting: { text: string; resolve: () => void; reject: (error: Error) => void }[] = [];
  const look = (): void => {
    for (const one of waiting) if (stdout.includes(one.text) || stderr.includes(one.text)) one.resolve();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    look();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    look();
  });
  const killer = setTimeout(() => {
    stderr += `\n[killed: it had not ended after ${limitMs / 1000} s]`;
    if (child.pid !== undefined) killTree(child.pid);
  }, limitMs);
  const ended = new Promise<Ran>((done) => {
    child.on('close', (status, signal) => {
      clearTimeout(killer);
      for (const one of waiting) one.reject(new Error(`ended without showing '${one.text}':\n${stdout}${stderr}`));
      done({ status, signal, stdout, stderr });
    });
  });
  return {
    process: child,
    ended,
    shows: (text) =>
      new Promise((done, reject) => {
        waiting.push({ text, resolve: done, reject });
        look();
      }),
  };
}

export function rsptrace(...args: string[]): Running {
  return start(process.execPath, [main, ...args]);
}

/** The same for what may take longer on a busy machine. */
export function rsptraceWithin(limitMs: number, ...args: string[]): Running {
  return start(process.execPath, [main, ...args], limitMs);
}

/** Waits until a trace has so many bytes: some tens of them an event, written every 200 ms. Ends early with the command that writes it. */
export async function traceGrows(tracer: Running, path: string, bytes: number): Promise<void> {
  const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  while (size() < bytes && tracer.process.exitCode === null && tracer.process.signalCode === null) await sleep(20);
}

/** A folder of the test's own, gone when the test ends. */
export function scratchFolder(t: { teardown: (fn: () => void) => void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A guest under a QEMU of the test's own, frozen, its stub on a unix socket; killed when the test ends. */
export function frozenGuest(
  t: { teardown: (fn: () => void) => void },
  name: string,
  extra: readonly string[] = [],
): Running & { readonly socket: string } {
  const socket = join(scratchFolder(t), 'gdb');
  const stub = ['-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
  const [program, ...args] = qemuArgv(name, [...extra, ...stub]);
  const running = start(program, args);
  t.teardown(() => void running.process.kill('SIGKILL'));
  return { ...running, socket };
}

/** How many clients a unix socket has, accepted or not. */
export function connections(path: string): number {
  const lines = readFileSync('/proc/net/unix', 'utf8').split('\n');
  // SS_CONNECTING and SS_CONNECTED (linux/net.h); the one that listens is SS_UNCONNECTED.
  return lines.filter((line) => line.endsWith(` ${path}`) && /^\S+( \S+){4} 0[23] /.test(line)).length;
}
