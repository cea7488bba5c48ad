// Linux's own profiler, which samples a process that is never stopped for it.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RsptraceError } from '../base/errors.js';
import { textOf } from '../base/proc.js';

/** So much of the stack is in each sample. */
const stackBytes = 32_768;
/** How much of its output is read at once, and how long to wait for more, in milliseconds. */
const pieceBytes = 2 ** 20;
const waitMs = 50;
/** So much of what it says is kept. */
const mostSaid = 4000;
/** The disk gets back what was read, whenever it is so much. */
const keptBytes = 2 ** 26;

export interface Perf {
  /** {@link PerfStream} reads it. */
  readonly output: AsyncIterable<Uint8Array>;
  /** It ends, and its output with it. So does it when this process is gone, in whatever way. */
  end(): void;
  /** Why it sampled nothing. */
  refused(): RsptraceError;
  /** The status with which it gave up; undefined if it has not. */
  gaveUp(): number | undefined;
}

/**
 * Has perf sample a process, each thread when it has run for a period. It ends with the command that it runs, and that
 * with its input.
 *
 * Its output is a file without a name: a reader that is late, on a host that is busy, costs no sample.
 * @throws RsptraceError `RUN_NOT_FOUND`
 */
export async function startPerf(pid: number, periodMs: number): Promise<Perf> {
  const event = ['-e', 'cpu-clock', '-c', String(Math.round(periodMs * 1e6)), '--call-graph', `dwarf,${stackBytes}`];
  const file = unnamedFile();
  const child = spawn('perf', ['record', '-q', '-B', '-N', ...event, '-p', `${pid}`, '-o', '-', '--', 'cat'], {
    stdio: ['pipe', file, 'pipe'],
    detached: true,
    env: { ...process.env, PERF_CONFIG: '/dev/null', LC_ALL: 'C' },
  });
  let said = '';
  child.stderr?.on('data', (piece: Buffer) => {
    if (said.length < mostSaid) said += piece.toString('latin1');
  });
  child.stdin?.on('error', () => {});
  let isOver = false;
  let status: number | undefined;
  child.once('close', (code) => {
    isOver = true;
    status = code || undefined;
  });
  await once(child, 'spawn').catch((thrown: NodeJS.ErrnoException) => {
    closeSync(file);
    throw new RsptraceError('RUN_NOT_FOUND', `perf cannot be started: ${thrown.code}`, {
      hint: 'install it (Debian: linux-perf)',
    });
  });
  return {
    output: growing(file, () => isOver),
    end: () => child.stdin?.end(),
    refused: () => refused(pid, said),
    gaveUp: () => status,
  };
}

function unnamedFile(): number {
  const path = join(tmpdir(), `rsptrace-perf-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}

/** What is written into a file, until nothing is any more; it is closed then. */
async function* growing(file: number, isOver: () => boolean): AsyncGenerator<Uint8Array> {
  try {
    for (let [at, freed] = [0, 0]; ; ) {
      if (at - freed >= keptBytes) {
        freeUntil(file, at);
        freed = at;
      }
      const wasOver = isOver();
      const piece = Buffer.allocUnsafeSlow(pieceBytes);
      const length = readSync(file, piece, 0, pieceBytes, at);
      at += length;
      if (length > 0) yield piece.subarray(0, length);
      else if (wasOver) return;
      else await delay(waitMs);
    }
  } finally {
    closeSync(file);
  }
}

/** What lies before `end` has been read: a hole takes no room on the disk. Where there can be none, the file grows. */
function freeUntil(file: number, end: number): void {
  const words = ['--punch-hole', '--offset', '0', '--length', `${end}`, '/proc/self/fd/3'];
  spawn('fallocate', words, { stdio: ['ignore', 'ignore', 'ignore', file] }).once('error', () => {});
}

function refused(pid: number, said: string): RsptraceError {
  const lines = said.split('\n').map((line) => line.trim());
  const why = lines.find((line) => line !== '' && !/^(Error|WARNING):?$/.test(line)) ?? 'it does not say why';
  const paranoid = textOf('/proc/sys/kernel/perf_event_paranoid').trim();
  return new RsptraceError('SAMPLES_UNAVAILABLE', `perf does not sample process ${pid}: ${why}`, {
    hint: `it needs root, or the same user and at most 2 in kernel.perf_event_paranoid (here ${paranoid || 'none'}); a container needs --cap-add PERFMON`,
  });
}
