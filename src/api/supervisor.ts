import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/**
 * What outlives rsptrace: a shell with a session of its own that waits on a pipe whose other end only rsptrace has.
 * When rsptrace ends without a call of {@link dismiss}, in whatever way, the shell becomes the command that cleans up.
 * It begins before what that command is to find does, so that no moment is without it.
 */
export class Supervisor implements Disposable {
  readonly #shell: ChildProcessByStdio<Writable, null, null>;

  /** `cleanUp`: a command, its program first. */
  constructor(cleanUp: readonly string[]) {
    const script = 'while read -r line; do [ "$line" ] || exit 0; set -- "$@" "$line"; done; exec "$@"';
    this.#shell = spawn('sh', ['-c', script, 'rsptrace-supervisor', ...cleanUp], {
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
    });
    // Without a shell nobody takes over.
    this.#shell.on('error', () => {});
    this.#shell.stdin.on('error', () => {});
    this.#shell.unref();
    if ('unref' in this.#shell.stdin && typeof this.#shell.stdin.unref === 'function') this.#shell.stdin.unref();
  }

  /** One more word for the command. */
  tell(word: string): void {
    this.#shell.stdin.write(`${word}\n`);
  }

  /** Does now what it does when this process is killed. */
  takeOver(): void {
    this.#shell.stdin.end();
  }

  dismiss(): void {
    this.#shell.stdin.end('\n');
  }

  [Symbol.dispose](): void {
    this.dismiss();
  }
}
