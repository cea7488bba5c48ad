import { type RsptraceError, toError } from '../base/errors.js';
import type { Recording, RecordOptions } from './recording.js';

/** Everything that ends a recording, and why it ended. Only the first reason counts, but a failure overrides it. */
export class StopConditions implements Disposable {
  readonly #interrupt: () => void;
  readonly #signal: AbortSignal | undefined;
  #reason: Recording['end'] | undefined;
  #error: RsptraceError | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `interrupt` makes the run of the target end; it is called once. */
  constructor({ signal }: RecordOptions, interrupt: () => void) {
    this.#interrupt = interrupt;
    this.#signal = signal;
  }

  /** The end was requested. */
  get met(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): Recording['end'] {
    return this.#reason ?? 'guest-ended';
  }

  get error(): RsptraceError | undefined {
    return this.#error;
  }

  /** From now on the user's signal and duration count. */
  begin({ durationMs }: RecordOptions): void {
    this.#signal?.addEventListener('abort', this.#onAbort);
    if (this.#signal?.aborted) this.#onAbort();
    if (durationMs !== undefined) this.#timer = setTimeout(() => this.stop('duration'), durationMs);
  }

  stop(reason: Recording['end']): void {
    if (this.met) return;
    this.#reason = reason;
    this.#interrupt();
  }

  fail(thrown: unknown): void {
    this.#error ??= toError(thrown);
    this.stop('failed');
    this.#reason = 'failed';
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }

  readonly #onAbort = (): void => this.stop('interrupted');
}
