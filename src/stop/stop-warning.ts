import type { Logger } from '../base/logger.js';
import { stackIsRead } from '../probes/index.js';
import type { ProbeFact } from '../trace/index.js';

/**
 * After this many stops in addition to trampolines, a warning names the probes that cause them; and how many it
 * names.
 */
const manyStops = 1000;
const mostNamed = 8;

/** Warns once that a few functions, which cannot be patched, make a recording of many a thousand times slower. */
export class StopWarning {
  readonly #logger: Logger;
  #stops = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A probe has stopped the target, while the other probes do not. */
  stopped(choices: () => readonly ProbeFact[]): void {
    if (++this.#stops !== manyStops) return;
    const stopping = choices().filter(({ engine, why }) => engine === 'stop' && why !== stackIsRead);
    if (stopping.length === 0) return;
    const probes = stopping.slice(0, mostNamed).map(({ name }) => name);
    this.#logger.warn(
      { probes, more: stopping.length - probes.length },
      "these stop the target at each call; --engine target leaves them out, and so does '!' before a probe",
    );
  }
}
