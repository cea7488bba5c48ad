import { closeSync } from 'node:fs';
import { messageOf } from '../base/errors.js';
import { openOutput, writeAll } from './open-output.js';
import { note } from './standard-error.js';

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
