import { Buffer } from 'node:buffer';
import { closeSync } from 'node:fs';
import { messageOf } from '../base/errors.js';
import { note, showOutput } from './failure.js';
import { openOutput, writeAll } from './open-output.js';

/** The file of `--console`; opened before QEMU starts, so that a wrong path costs nothing. */
export class ConsoleFile implements Disposable {
  readonly #path: string;
  #fd: number | undefined;

  /** Throws `OUTPUT_CANNOT_WRITE`, `OUTPUT_IN_USE`. */
  constructor(path: string | undefined) {
    this.#path = path ?? '';
    if (path === undefined) return;
    const failure = { code: 'OUTPUT_CANNOT_WRITE', sentence: 'the console cannot be kept in' } as const;
    this.#fd = openOutput({ option: '--console', path, failure });
  }

  /** A file that cannot be written any more ends here, with a sentence: the recording goes on. */
  write(text: Uint8Array): void {
    if (this.#fd === undefined) return;
    try {
      writeAll(this.#fd, text);
    } catch (error) {
      note(`the console is kept no further in ${this.#path}: ${messageOf(error)}`);
      this[Symbol.dispose]();
    }
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** The most bytes that may wait for a reader of stderr that is slower than the target prints. */
const mostWaiting = 1024 * 1024;

let collected: Uint8Array[] = [];

let left = 0;

/**
 * Shows on stderr what the target prints through its stub: each read in one write. If the reader is slower than the
 * target prints, output is left out, and its amount is reported, because the target may print without end.
 */
export function showConsole(text: Uint8Array): void {
  if (collected.length === 0) queueMicrotask(flush);
  collected.push(text);
}

function flush(): void {
  const text = Buffer.concat(collected);
  collected = [];
  if (process.stderr.writableLength > mostWaiting) {
    left += text.length;
    return;
  }
  if (left > 0) process.stderr.write(`\n[${left} bytes that the target printed are left out]\n`);
  left = 0;
  showOutput(process.stderr, text);
}
