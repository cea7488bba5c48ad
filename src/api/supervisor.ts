import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/** By which the shell that waits is known among processes. */
const name = 'rsptrace-supervisor';

/**
 * What outlives rsptrace: a shell with a session of its own that waits on a pipe whose other end only rsptrace has. When
 * rsptrace ends without a call of {@link dismiss}, in whatever way, it becomes the command that cleans up. It begins
 * before what that command is to find does, so that no moment is without it.
 */
export class Supervisor implements Disposable {
  readonly #input: Writable | null;

  /** `cleanUp`: a command, its program first. */
  constructor(cleanUp: readonly string[]) {
    // Each line of input is one more word for the command; an empty one dismisses it.
    const script = 'while read -r line; do [ "$line" ] || exit 0; set -- "$@" "$line"; done; exec "$@"';
    const stdio = ['pipe', 'ignore', 'inherit'] as const;
    const shell = spawn('sh', ['-c', script, name, ...cleanUp], { stdio: [...stdio], detached: true });
    // Without the shell nobody takes over; it keeps nobody alive.
    shell.on('error', () => {}).unref();
    this.#input = shell.stdin?.on('error', () => {}) ?? null;
    if (this.#input && 'unref' in this.#input && typeof this.#input.unref === 'function') this.#input.unref();
  }

  /** One more word for the command. */
  add(word: string): void {
    this.#input?.write(`${word}\n`);
  }

  /** Does now what it does when this process is killed. */
  takeOver(): void {
    this.#input?.end();
  }

  dismiss(): void {
    this.#input?.end('\n');
  }

  [Symbol.dispose](): void {
    this.dismiss();
  }
}
