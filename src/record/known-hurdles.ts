import type { ClosedCounter } from '../clock/index.js';
import { counterHurdle, type Hurdle } from '../engines/index.js';

/** What keeps probes from running without stops, as far as it is known: most of it before the target runs. */
export class KnownHurdles {
  readonly #tell: (hurdles: readonly Hurdle[]) => void;
  #all: readonly Hurdle[];

  constructor(all: readonly Hurdle[], tell: (hurdles: readonly Hurdle[]) => void = () => {}) {
    this.#all = all;
    this.#tell = tell;
  }

  get all(): readonly Hurdle[] {
    return this.#all;
  }

  /** Before anything is written to the target. */
  tell(): void {
    if (this.#all.length > 0) this.#tell(this.#all);
  }

  /** There will be no trampolines. */
  get isWithoutMemory(): boolean {
    return this.#all.some(({ code }) => code === 'memory');
  }

  /** Firmware keeps the counter from the kernel, which could not be known before that had run. */
  counterOpened(closed: ClosedCounter, probes: number): void {
    if (this.#all.some(({ code }) => code === 'counter')) return;
    const hurdle = counterHurdle(closed, probes);
    this.#all = [...this.#all, hurdle];
    this.#tell([hurdle]);
  }
}
