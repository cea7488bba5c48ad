import type { WriteStream } from 'node:tty';
import type { Progress } from '../record/index.js';

const everyMs = 250;

/** One line that is rewritten while a recording runs: on a terminal only. */
export class StatusLine {
  readonly #stream: WriteStream | NodeJS.WriteStream;
  readonly #on: boolean;
  /** What is counted in it. */
  readonly #counted: 'events' | 'records';
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: NodeJS.WriteStream, wanted: boolean, counted: 'events' | 'records' = 'events') {
    this.#counted = counted;
    this.#stream = stream;
    this.#on = wanted && stream.isTTY === true;
  }

  start(progress: () => Progress): void {
    if (!this.#on) return;
    const began = performance.now();
    let before = { count: 0, at: began };
    this.#timer = setInterval(() => {
      const now = progress();
      const at = performance.now();
      const areEvents = this.#counted === 'events';
      const count = now[this.#counted];
      const rate = ((count - before.count) * 1000) / (at - before.at);
      before = { count, at };
      const guest = areEvents ? `, ${(now.guestNs / 1e6).toFixed(1)} ms traced` : '';
      const waiting = areEvents && now.undigested > 0 ? `, ${now.undigested} records wait` : '';
      this.#stream.write(
        `\r\x1b[K${count} ${this.#counted}, ${rate.toFixed(0)}/s${waiting}, ${now.stops} stops${guest}, ${((at - began) / 1000).toFixed(0)} s  (Ctrl-C ends it)`,
      );
    }, everyMs);
    this.#timer.unref();
  }

  /** Writes text above the line, also where there is none. */
  above(text: string): void {
    this.#stream.write(`${this.#timer ? '\r\x1b[K' : ''}${text}`);
  }

  stop(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stream.write('\r\x1b[K');
  }
}
