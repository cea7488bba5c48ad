import type { Progress } from '../record/index.js';
import { note } from './standard-error.js';

/** How long a guest may run without a hit before a message says so, in milliseconds. */
const silentMs = 5000;

/** Says once, after some seconds without a hit, what is known about the reason. */
export class Silence {
  #timer: NodeJS.Timeout | undefined;

  start(elf: string, progress: () => Progress): void {
    this.#timer = setTimeout(() => {
      const { hits, codeAbsent } = progress();
      if (hits > 0) return;
      const why = codeAbsent
        ? `the target had nothing of ${elf} in its memory when it began: does it run that, or is its loader not done?`
        : `the target has ${elf} in its memory, and has not come to what is probed`;
      note(`no probe was hit in ${silentMs / 1000} s: ${why}`);
    }, silentMs);
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
