/** How long the guest has run, by the host's clock in milliseconds, as `performance.now` counts. */
export class RunningTimes {
  /** Ended runs so far, each of which ended in a stop. */
  runs = 0;
  #since: number | undefined;
  #ran = 0;
  #stoppedAt = 0;

  /** The guest runs from now on. */
  begin(): void {
    this.#since = performance.now();
  }

  /** It has stopped. */
  end(): void {
    this.#stoppedAt = performance.now();
    this.#ran += this.#stoppedAt - (this.#since ?? this.#stoppedAt);
    this.#since = undefined;
    this.runs++;
  }

  /** How long it had run, in nanoseconds, at a moment of this run or of the one before. */
  upTo(hostMs: number): number {
    const since = this.#since;
    const ran = since !== undefined && hostMs >= since ? hostMs - since : Math.min(0, hostMs - this.#stoppedAt);
    return (this.#ran + ran) * 1e6;
  }
}
