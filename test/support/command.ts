import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { qemuArgv } from '../qemu/guests/guests.js';
import { runInThread } from './in-process.js';
import { type Command, jsonOf, Output, type Ran } from './output.js';

export type { Command, Ran };

/** The built command, run as a user runs it. */
export const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

export interface Running extends Command {
  readonly process: ChildProcess;
}

const LIMIT_MS = 400_000;
/** `__SO_ACCEPTCON` of Linux's net.h. */
const LISTENING = '00010000';

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
export function start(program: string, args: readonly string[], limitMs = LIMIT_MS): Running {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = new Output();
  child.stdout.setEncoding('utf8').on('data', (text: string) => output.add('stdout', text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => output.add('stderr', text));
  const killer = setTimeout(() => {
    output.add('stderr', `\n[killed: it had not ended after ${limitMs / 1000} s]`);
    if (child.pid !== undefined) killTree(child.pid);
  }, limitMs);
  const ended = new Promise<Ran>((done) => {
    child.on('close', (status, signal) => {
      clearTimeout(killer);
      done(output.end(status, signal));
    });
  });
  return {
    process: child,
    ended,
    json: (status) => jsonOf(ended, status),
    over: () => child.exitCode !== null || child.signalCode !== null,
    shows: (text) => output.shows(text),
    read: (reader) => output.read(reader),
    signal: (signal) => void child.kill(signal),
  };
}

/** Runs a command line in this process, in a thread: see `runInThread`. */
export function rsptrace(...args: string[]): Command {
  return runInThread(args, LIMIT_MS);
}

/** The same for what may take longer on a busy machine, or is to be given up sooner. */
export function rsptraceWithin(limitMs: number, ...args: string[]): Command {
  return runInThread(args, limitMs);
}

/** Runs a command line as a user does: for what is about the process, as its pid, its end by a signal or its streams. */
export function rsptraceProcess(...args: string[]): Running {
  return start(process.execPath, [main, ...args]);
}

/** Waits until a trace has so many bytes: some tens of them an event, written every 200 ms. Ends early with the command that writes it. */
export async function traceGrows(tracer: Command, path: string, bytes: number): Promise<void> {
  const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  while (size() < bytes && !tracer.over()) await sleep(20);
}

/** A folder of the test's own, gone when the test ends. */
export function scratchFolder(t: { teardown: (fn: () => void) => void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'rsptrace-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Frozen extends Running {
  readonly socket: string;
}

/** A guest under a QEMU of the test's own, frozen, its stub on a unix socket; killed when the test ends. */
export function frozenGuest(
  t: { teardown: (fn: () => void) => void },
  name: string,
  extra: readonly string[] = [],
): Frozen {
  return frozenQemu(t, qemuArgv(name, extra));
}

/** The same for any command that starts a QEMU. */
export function frozenQemu(
  t: { teardown: (fn: () => void) => void },
  [program = '', ...args]: readonly string[],
): Frozen {
  const socket = join(scratchFolder(t), 'gdb');
  const stub = ['-S', '-chardev', `socket,path=${socket},server=on,wait=off,id=g`, '-gdb', 'chardev:g'];
  const running = start(program, [...args, ...stub]);
  t.teardown(() => void running.process.kill('SIGKILL'));
  waitForServer(socket);
  return { ...running, socket };
}

/** How many clients a unix socket has, accepted or not. */
export function connections(path: string): number {
  const lines = readFileSync('/proc/net/unix', 'utf8').split('\n');
  // SS_CONNECTING and SS_CONNECTED (linux/net.h); the one that listens is SS_UNCONNECTED.
  return lines.filter((line) => line.endsWith(` ${path}`) && /^\S+( \S+){4} 0[23] /.test(line)).length;
}

/** Blocks until something listens there, which proc_pid_net(5) shows as a flag, or for a minute. */
function waitForServer(socket: string): void {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  const listens = (): boolean =>
    readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .some((line) => line.endsWith(` ${socket}`) && line.split(' ')[3] === LISTENING);
  for (let tries = 0; !listens() && tries < 6000; tries++) Atomics.wait(clock, 0, 0, 10);
}
