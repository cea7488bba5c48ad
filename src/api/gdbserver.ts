// A process of this machine under a gdbserver of our own: one that runs, or a program that is started.
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { RsptraceError } from '../base/errors.js';
import { sendSignal, statOf } from '../base/proc.js';
import { markOfOurs, tracerOf } from './abandoned-server.js';
import type { Environment } from './gdbserver-vectors.js';
import { Supervisor } from './supervisor.js';

/** What is to be traced: a process that runs, or a command, whose first word is the program. */
export type Subject = { readonly pid: number } | { readonly command: readonly string[] };

/** How long gdbserver may take to listen, and to end when its client has gone, in milliseconds. */
const startMs = 10_000;
const endMs = 3000;
/** How long after it has let go of its process its end may be seen, in milliseconds. */
const seenMs = 300;

/** So much of what it says is kept. */
const mostSaid = 4000;

/** How long to wait between looks at a process that is not our child, in milliseconds. */
const lookMs = 20;
/** The same while gdbserver attaches to it, from when on it stands. */
const tracedMs = 2;

/** A gdbserver that a closed pipe ends in the middle of attaching leaves the process stopped. */
const survivor = ['-c', 'trap "" PIPE; exec gdbserver "$@"', 'sh'];
/** What a shell ends with that does not find a command. */
const notThere = 127;

/** By which a supervisor finds the gdbserver of this process. */
const ownWord = `rsptrace-${process.pid}`;

/** What a program is started by: its standard error is ours, and not the pipe that gdbserver writes to. */
const wrapper = ['--wrapper', 'sh', '-c', `'exec "$@" 2>&3 3>&-'`, ownWord, '--'];

interface GdbserverOptions {
  /** Where a program's standard output goes; 2 for our standard error. */
  readonly output?: 'inherit' | 2;
  /** The program's environment. */
  readonly env?: Environment;
  /** Is run if this process is killed, with a word as its last by which the server is found, see {@link Supervisor}. */
  readonly cleanUp: readonly string[];
}

/**
 * A gdbserver that serves one client and then goes. Disposing of it ends it, and leaves a process that it was attached
 * to.
 */
export class Gdbserver implements Disposable {
  readonly address: string;
  /** The process that it traces, which stands. */
  readonly pid: number;
  /** When the process was last seen to run, or the program was not there yet, as `performance.now` counts. */
  readonly since: number;
  readonly #child: ChildProcess;
  /** Resolves when the child has ended: one listener, however often that is asked for. */
  readonly #exit: Promise<true>;
  readonly #supervisor: Supervisor;
  readonly #isAttached: boolean;
  readonly #startTime: string | undefined;
  #isEnding = false;

  private constructor(
    child: ChildProcess,
    supervisor: Supervisor,
    found: { address: string; pid: number; since: number; isAttached: boolean },
  ) {
    this.#child = child;
    this.#exit = new Promise((resolve) => child.once('exit', () => resolve(true)));
    this.#supervisor = supervisor;
    this.address = found.address;
    this.pid = found.pid;
    this.since = found.since;
    this.#isAttached = found.isAttached;
    this.#startTime = startTime(found.pid);
  }

  /**
   * Stops the process, or starts the program and stops it at its first instruction.
   * @throws RsptraceError `RUN_NOT_FOUND`, `GDBSERVER_FAILED`
   */
  static async start(
    subject: Subject,
    { output = 'inherit', env = process.env, cleanUp }: GdbserverOptions,
  ): Promise<Gdbserver> {
    let since = performance.now();
    const isRunning = 'pid' in subject;
    const what = isRunning
      ? ['--attach', '127.0.0.1:0', String(subject.pid)]
      : [...wrapper, '127.0.0.1:0', ...subject.command];
    // Ctrl-C on the terminal ends the recording, not the program.
    const input = isRunning || process.stdin.isTTY ? 'ignore' : 'inherit';
    const stdio = isRunning ? [input, 'ignore', 'pipe'] : [input, output, 'pipe', 2];
    const word = isRunning ? `${ownWord}-${subject.pid}` : ownWord;
    const supervisor = new Supervisor([...cleanUp, word]);
    const [program, before] = isRunning ? ['sh', survivor] : ['gdbserver', []];
    // A program that is started would have it from gdbserver.
    const marked = isRunning ? { ...env, [markOfOurs]: word } : env;
    const stood = isRunning && statOf(subject.pid)[0] === 'T';
    const child = spawn(program, [...before, ...what], { stdio: stdio as StdioOptions, detached: true, env: marked });
    for (const event of ['exit', 'error']) child.once(event, () => supervisor.dismiss());
    let said = '';
    let noticed = (): void => {};
    child.stderr?.on('data', (piece: Buffer) => {
      if (said.length < mostSaid) said += piece.toString('latin1');
      noticed();
    });
    await once(child, 'spawn').catch((thrown: unknown) => {
      throw notFound(thrown as NodeJS.ErrnoException);
    });
    const ended = new Promise<undefined>((resolve) => child.once('close', () => resolve(undefined)));
    const deadline = performance.now() + startMs;
    for (;;) {
      const now = performance.now();
      if (isRunning && tracerOf(subject.pid) !== child.pid) since = now;
      const port = /^Listening on port (\d+)/m.exec(said)?.[1];
      // The program's path comes first, and may have anything in it.
      const pid = /(?:created|Attached); pid = (\d+)$/m.exec(said)?.[1];
      if (port && pid) {
        const found = { address: `127.0.0.1:${port}`, pid: Number(pid), since, isAttached: isRunning };
        return new Gdbserver(child, supervisor, found);
      }
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) break;
      const more = new Promise<void>((resolve) => {
        noticed = resolve;
      });
      await Promise.race([more, ended, delay(isRunning ? tracedMs : lookMs)]);
    }
    child.kill('SIGKILL');
    // What it has said last may come behind its end.
    await Promise.race([ended, delay(endMs, undefined, { ref: false })]);
    if (child.exitCode === notThere) throw notFound({ code: 'ENOENT' });
    // It stops a process by a SIGSTOP (ptrace(2), PTRACE_ATTACH): killed, it leaves it stopped, or about to stop.
    if (isRunning && child.signalCode !== null && !stood) sendSignal(subject.pid, 'SIGCONT');
    throw failed(subject, said);
  }

  /**
   * Resolves when gdbserver has ended, which it does when its client has gone; one that does not is ended. One that has
   * let go of a program of its own would wait for the program's end.
   */
  async gone(): Promise<void> {
    const deadline = performance.now() + endMs;
    while (performance.now() < deadline && (this.#isAttached || tracerOf(this.pid) === this.#child.pid))
      if (await this.#hasEnded(lookMs)) return;
    this.#end();
    await this.#hasEnded(endMs);
  }

  /** Resolves when it has ended, in whatever way. */
  get ended(): Promise<true> {
    return this.#exit;
  }

  /** It was ended by a signal of somebody else's. */
  async wasKilled(): Promise<boolean> {
    // Its end is seen a moment after that of its connection.
    if (!this.#isEnding && tracerOf(this.pid) !== this.#child.pid) await this.#hasEnded(seenMs);
    return this.#child.signalCode !== null && !this.#isEnding;
  }

  get isAlive(): boolean {
    return this.#startTime !== undefined && startTime(this.pid) === this.#startTime;
  }

  /** Whether the process has ended within this time. */
  async processEnded(withinMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    const deadline = performance.now() + withinMs;
    while (this.isAlive && performance.now() < deadline) await delay(lookMs);
    return !this.isAlive;
  }

  /** Sends the process a signal, if it is still there. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (this.isAlive) sendSignal(this.pid, signal);
  }

  /** A process that was not left in order is left to the supervisor. */
  [Symbol.dispose](): void {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (this.#isAttached) this.#supervisor.takeOver();
    else this.#end();
  }

  #end(): void {
    this.#isEnding = true;
    this.#child.kill('SIGKILL');
  }

  async #hasEnded(withinMs: number): Promise<boolean> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return true;
    return Promise.race([this.#exit, delay(withinMs, false, { ref: false })]);
  }
}

/** When a process began (proc(5), `starttime`): its number alone may be another's. */
function startTime(pid: number): string | undefined {
  const fields = statOf(pid);
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
}

function notFound({ code, message }: Partial<NodeJS.ErrnoException>): RsptraceError {
  const why = code === 'ENOENT' ? 'gdbserver is not installed' : `gdbserver cannot be started: ${message}`;
  return new RsptraceError('RUN_NOT_FOUND', why, { hint: 'on Debian: apt install gdbserver' });
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
