import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Ran } from './command.js';

/**
 * The built command without a process of its own, which takes longer to start than most command lines to run.
 * Signals, logs and the end of the process are no part of it. Each command runs in some test as a user runs it.
 */
export class CommandThread implements Disposable {
  readonly #worker = new Worker(join(import.meta.dirname, 'command-thread.mjs'), { trackUnmanagedFds: false });

  /** One after another: they share their standard streams. */
  async run(...words: readonly string[]): Promise<Ran> {
    const answer = once(this.#worker, 'message');
    this.#worker.postMessage(words);
    const [ran] = (await answer) as [Ran];
    return ran;
  }

  [Symbol.dispose](): void {
    void this.#worker.terminate();
  }
}
