import { Worker } from 'node:worker_threads';

/** How long something is read before the line comes, and how often it is rewritten, in milliseconds. */
const silentMs = 1000;
const everyMs = 250;

/** What takes long, in its order. */
const readingPhases = [
  'reading',
  'choosing engines for',
  'boots once to see where the loader puts',
  'waits for the firmware that starts',
  'waits until its loader has started',
] as const;

/**
 * One line on stderr while a program is read, or its start is waited for, for longer than a second. A thread of its own
 * writes it, because reading keeps this one busy.
 */
export class ReadingLine implements Disposable {
  readonly #worker: Worker | undefined;
  /** The phase; 1 when all is done; 1 while the line is shown. */
  readonly #shared = new Int32Array(new SharedArrayBuffer(12));

  /** `wanted`: also where stderr is no terminal. */
  constructor(name: string, wanted: boolean, phase: (typeof readingPhases)[number] = 'reading') {
    this.phase(phase);
    if (!wanted && process.stderr.isTTY !== true) return;
    const workerData = { shared: this.#shared, name, readingPhases, silentMs, everyMs };
    this.#worker = new Worker(`(${write})(require('node:worker_threads').workerData, require('node:fs'))`, {
      eval: true,
      workerData,
      execArgv: [],
    });
    // A reading without its line is better than none.
    this.#worker.on('error', () => {});
    this.#worker.unref();
  }

  get isShown(): boolean {
    return this.#worker !== undefined;
  }

  phase(phase: (typeof readingPhases)[number]): void {
    Atomics.store(this.#shared, 0, readingPhases.indexOf(phase));
  }

  /** Waits until the line is gone, so that nothing is written into it. */
  [Symbol.dispose](): void {
    if (!this.#worker || Atomics.exchange(this.#shared, 1, 1) !== 0) return;
    Atomics.notify(this.#shared, 1);
    Atomics.wait(this.#shared, 2, 1, everyMs);
  }
}

interface Data {
  readonly shared: Int32Array;
  readonly name: string;
  readonly readingPhases: readonly string[];
  readonly silentMs: number;
  readonly everyMs: number;
}

/** The thread: its text alone is given to it. */
function write({ shared, name, readingPhases, silentMs, everyMs }: Data, fs: typeof import('node:fs')): void {
  const began = Date.now();
  const say = (text: string): void => {
    try {
      fs.writeSync(2, text);
    } catch {
      // Nobody reads it.
    }
  };
  let wait = silentMs;
  while (Atomics.wait(shared, 1, 0, wait) === 'timed-out') {
    wait = everyMs;
    Atomics.store(shared, 2, 1);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    say(`\r\x1b[Krsptrace: ${readingPhases[Atomics.load(shared, 0)]} ${name}, ${seconds} s`);
  }
  if (Atomics.load(shared, 2) === 0) return;
  say('\r\x1b[K');
  Atomics.store(shared, 2, 0);
  Atomics.notify(shared, 2);
}
