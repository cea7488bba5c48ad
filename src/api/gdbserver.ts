// A process of this machine under a gdbserver of our own: one that runs, or a program that is started.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { RsptraceError } from '../base/errors.js';
import type { Environment } from './gdbserver-vectors.js';

/** What is to be traced: a process that runs, or a command, whose first word is the program. */
export type Subject = { readonly pid: number } | { readonly command: readonly string[] };

/** How long gdbserver may take to listen, and to end when its client has gone, in milliseconds. */
const startMs = 10_000;
const endMs = 3000;

/** So much of what it says is kept. */
const mostSaid = 4000;

/** How long to wait between looks at a process that is not our child, in milliseconds. */
const lookMs = 50;

/** gdbserver's own lines on the stderr that it shares with the program. */
const ownLines =
  /^(?:Process .* created; pid = \d+|Attached; pid = \d+|Listening on port \d+|Remote debugging from .*|Detaching from process \d+|Killing process\(es\): .*|Child (?:exited with status|terminated with signal) .*)\r?\n/gm;

/**
 * A gdbserver that serves one client and then goes. Disposing of it ends it, and leaves a process that it was attached
 * to.
 */
export class Gdbserver implements Disposable {
  /** Where it listens. */
  readonly address: string;
  /** The process that it traces, which stands. */
  readonly pid: number;
  /** Since when the process stands at the latest, as `performance.now` counts. */
  readonly since: number;
  readonly #child: ChildProcess;
  readonly #startTime: string | undefined;

  private constructor(child: ChildProcess, found: { address: string; pid: number; since: number }) {
    this.#child = child;
    this.address = found.address;
    this.pid = found.pid;
    this.since = found.since;
    this.#startTime = startTime(found.pid);
  }

  /**
   * Stops the process, or starts the program and stops it at its first instruction. `output`: where a program's
   * standard output goes; 2 for our standard error. `env`: the program's environment.
   * @throws RsptraceError `GDBSERVER_NOT_FOUND`, `GDBSERVER_FAILED`
   */
  static async start(
    subject: Subject,
    output: 'inherit' | 2 = 'inherit',
    env: Environment = process.env,
  ): Promise<Gdbserver> {
    const since = performance.now();
    const isRunning = 'pid' in subject;
    const what = isRunning ? ['--attach', '127.0.0.1:0', String(subject.pid)] : ['127.0.0.1:0', ...subject.command];
    // Ctrl-C on the terminal ends the recording, not the program.
    const input = isRunning || process.stdin.isTTY ? 'ignore' : 'inherit';
    const stdio = [input, isRunning ? 'ignore' : output, 'pipe'] as const;
    const child = spawn('gdbserver', ['--once', ...what], { stdio: [...stdio], detached: true, env });
    let said = '';
    child.stderr?.on('data', (piece: Buffer) => {
      if (said.length < mostSaid) said += piece.toString('latin1');
      if (!isRunning) process.stderr.write(piece.toString('latin1').replace(ownLines, ''), 'latin1');
    });
    await once(child, 'spawn').catch((thrown: unknown) => {
      throw notFound(thrown as NodeJS.ErrnoException);
    });
    const ended = new Promise<undefined>((resolve) => child.once('close', () => resolve(undefined)));
    const deadline = performance.now() + startMs;
    for (;;) {
      const port = /^Listening on port (\d+)/m.exec(said)?.[1];
      const pid = /pid = (\d+)/.exec(said)?.[1];
      if (port && pid) return new Gdbserver(child, { address: `127.0.0.1:${port}`, pid: Number(pid), since });
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) break;
      await Promise.race([child.stderr && once(child.stderr, 'data'), ended, delay(lookMs)]);
    }
    child.kill('SIGKILL');
    throw failed(subject, said);
  }

  /** Resolves when gdbserver has ended, which it does when its client has gone; one that does not is ended. */
  async gone(): Promise<void> {
    if (await this.#hasEnded(endMs)) return;
    this.#child.kill('SIGKILL');
    await this.#hasEnded(endMs);
  }

  /** The process is still there. */
  get isAlive(): boolean {
    return this.#startTime !== undefined && startTime(this.pid) === this.#startTime;
  }

  /** Resolves when the process has ended. */
  async processEnded(withinMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    const deadline = performance.now() + withinMs;
    while (this.isAlive && performance.now() < deadline) await delay(lookMs);
    return !this.isAlive;
  }

  /** Sends the process a signal, if it is still there. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    try {
      if (this.isAlive) process.kill(this.pid, signal);
    } catch {
      // It has ended.
    }
  }

  [Symbol.dispose](): void {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGKILL');
  }

  async #hasEnded(withinMs: number): Promise<boolean> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return true;
    const timer = new AbortController();
    const ended = once(child, 'exit').then(() => true);
    const late = delay(withinMs, false, { signal: timer.signal }).catch(() => false);
    return Promise.race([ended, late]).finally(() => timer.abort());
  }
}

/** When a process began (proc(5), `starttime`): its number alone may be another's. */
function startTime(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // Its name is in parentheses, and may have some itself.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function notFound({ code, message }: NodeJS.ErrnoException): RsptraceError {
  const why = code === 'ENOENT' ? 'gdbserver is not installed' : `gdbserver cannot be started: ${message}`;
  return new RsptraceError('GDBSERVER_NOT_FOUND', why, { hint: 'on Debian: apt install gdbserver' });
}

function failed(subject: Subject, said: string): RsptraceError {
  const what = 'pid' in subject ? `attach to process ${subject.pid}` : `start ${subject.command[0]}`;
  const last = said.trim().split('\n').slice(-3).join(' | ');
  const refused = 'pid' in subject && /not permitted/.test(said);
  return new RsptraceError('GDBSERVER_FAILED', `gdbserver could not ${what}`, {
    hint: refused
      ? 'tracing it needs the permission: the same user and kernel.yama.ptrace_scope 0, or root; and nobody else may trace it'
      : `its last lines: ${last === '' ? 'none' : last}`,
  });
}
