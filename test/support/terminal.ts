// A real terminal: tmux.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { scratchFolder } from './command.js';

/** Of 150 ms: each look is a process. */
const MOST_TRIES = 400;

/** A terminal of so many columns and lines, with a shell in it, whose prompt is `ready$ `. */
export class Terminal {
  readonly #socket: string;
  #isOpen = true;

  constructor(
    t: { teardown: (fn: () => void) => void },
    columns: number,
    lines: number,
    environment: readonly string[] = [],
    shell: readonly string[] = ['sh'],
  ) {
    this.#socket = join(scratchFolder(t), 'tmux');
    const size = ['-x', String(columns), '-y', String(lines)];
    this.#tmux('-f', '/dev/null', 'new-session', '-d', ...size, 'env', ...environment, 'PS1=ready$ ', ...shell);
    t.teardown(() => this.#isOpen && this.hangUp());
  }

  /** It goes, and with it what does not ignore that. */
  hangUp(): void {
    this.#isOpen = false;
    this.#tmux('kill-server');
  }

  keys(...keys: string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  resize(columns: number, lines: number): void {
    this.#tmux('resize-window', '-x', String(columns), '-y', String(lines));
  }

  /** With `styles`, with the sequences for colours. */
  screen(styles = false): string {
    return this.#tmux('capture-pane', '-p', ...(styles ? ['-e'] : []));
  }

  /** What is on the screen as soon as that is true of it. */
  async until(what: RegExp | ((screen: string) => boolean)): Promise<string> {
    const isIt = typeof what === 'function' ? what : (screen: string): boolean => what.test(screen);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const screen = this.screen();
      if (isIt(screen)) return screen;
      await sleep(150);
    }
    throw new Error(`never on the screen: ${what}\n${this.screen()}`);
  }

  /** Whether a program has the screen to itself. */
  get isAlternate(): boolean {
    return this.#tmux('display-message', '-p', '#{alternate_on}').trim() === '1';
  }

  #tmux(...words: string[]): string {
    return execFileSync('tmux', ['-S', this.#socket, ...words], { encoding: 'utf8' });
  }
}
