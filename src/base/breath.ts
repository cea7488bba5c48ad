/** After so long of work without a pause, in milliseconds, whatever else waits has its turn: keys, timers, signals. */
const TURN_MS = 40;

/** For long loops that wait for nothing. */
export class Breath {
  #since = performance.now();

  async take(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
