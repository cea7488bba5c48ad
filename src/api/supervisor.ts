import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** A command that is run at last is loaded before that, when this process has lived so long, in milliseconds. */
const loadedAfterMs = 1000;

/**
 * The word before those of a command of ours that is loaded, and waits in place of the shell. It says by a line that it
 * is loaded. A first line of input says that the shell is gone; others are more words, an empty one dismisses it. It
 * acts at the end of its input.
 */
export const waitsForEnd = 'rsptrace-supervisor';

/**
 * What outlives rsptrace: a process with a session of its own that waits on a pipe whose other end only rsptrace has.
 * When rsptrace ends without a call of {@link dismiss}, in whatever way, it becomes the command that cleans up. It
 * begins before what that command is to find does, so that no moment is without it. At first that is a shell, which is
 * there at once; then the command itself, so that a busy machine need not start it when a target stands.
 */
export class Supervisor implements Disposable {
  #waiting: ChildProcess;
  readonly #command: string[];
  #timer: NodeJS.Timeout | undefined;

  /** `cleanUp`: a command, its program first. */
  constructor(cleanUp: readonly string[]) {
    this.#command = [...cleanUp];
    const script = 'while read -r line; do [ "$line" ] || exit 0; set -- "$@" "$line"; done; exec "$@"';
    this.#waiting = start(['sh', '-c', script, waitsForEnd, ...cleanUp], 'ignore');
    if (cleanUp[0] === process.execPath) this.#timer = setTimeout(() => this.#load(), loadedAfterMs).unref();
  }

  add(word: string): void {
    this.#command.push(word);
    this.#waiting.stdin?.write(`${word}\n`);
  }

  /** Does now what it does when this process is killed. */
  takeOver(): void {
    this.#end();
  }

  dismiss(): void {
    this.#end('\n');
  }

  [Symbol.dispose](): void {
    this.dismiss();
  }

  #end(last = ''): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#waiting.stdin?.end(last);
  }

  #load(): void {
    const [node = '', file = '', ...words] = this.#command;
    const { length } = this.#command;
    const loaded = start([node, file, waitsForEnd, ...words], 'pipe');
    loaded.stdout?.once('data', () => {
      // Whoever was dismissed or has taken over meanwhile is the shell.
      if (this.#timer === undefined) return loaded.stdin?.end();
      for (const line of ['instead', ...this.#command.slice(length)]) loaded.stdin?.write(`${line}\n`);
      this.#waiting.stdin?.end('\n');
      this.#waiting = loaded;
    });
  }
}

/** Without the process nobody takes over; it keeps nobody alive. */
function start([program = '', ...words]: readonly string[], output: 'ignore' | 'pipe'): ChildProcess {
  const child = spawn(program, words, { stdio: ['pipe', output, 'inherit'], detached: true });
  child.on('error', () => {});
  child.unref();
  for (const stream of [child.stdin, child.stdout]) keepsNobody(stream);
  return child;
}

function keepsNobody(stream: Readable | Writable | null): void {
  stream?.on('error', () => {});
  if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
}

/** Signals that end a program in good order, if it handles them. */
const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type EndingSignal = (typeof endingSignals)[number];

/** Handles these signals until it is disposed of. */
export function onSignals(
  handle: (signal: EndingSignal) => void,
  signals: readonly EndingSignal[] = endingSignals,
): Disposable {
  const handled = (signal: string): void => handle(signal as EndingSignal);
  for (const signal of signals) process.on(signal, handled);
  return {
    [Symbol.dispose]: () => {
      for (const signal of signals) process.off(signal, handled);
    },
  };
}

/** A signal that comes again within so many milliseconds is the same one: `timeout` sends it twice. */
export const repeatMs = 200;

export function ignoreRepeats(signal: NodeJS.Signals): void {
  const ignore = (): void => {};
  process.on(signal, ignore);
  setTimeout(() => process.off(signal, ignore), repeatMs).unref();
}

/** Aborts at the first signal that ends programs, unless it was disposed of; the next one is not handled any more. */
export function abortAtSignal(controller: AbortController): Disposable {
  const handled = onSignals((signal) => {
    ignoreRepeats(signal);
    handled[Symbol.dispose]();
    controller.abort();
  });
  return handled;
}
