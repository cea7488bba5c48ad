import { StringDecoder } from 'node:string_decoder';
import type { GuestNanos, TraceSink } from '../trace/index.js';

/** The longest line of a console that is one event. */
const longestLine = 1000;

interface ConsoleLinesOptions {
  readonly sink: TraceSink;
  /** The time of the newest event. */
  readonly time: () => GuestNanos;
  /** Calls back when all events that are on their way have come. */
  readonly whenDigested: (tell: () => void) => void;
  readonly onError: (thrown: unknown) => void;
}

/**
 * The lines that a guest prints, as events. Nothing says a line's own time, so it stands behind the events that were
 * known when it came. Those that came before all events stand behind the first.
 */
export class ConsoleLines {
  readonly #options: ConsoleLinesOptions;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  /** Those before the first event: no time is known for them. */
  #early: string[] | undefined = [];
  #isOver = false;

  constructor(options: ConsoleLinesOptions) {
    this.#options = options;
  }

  readonly take = (text: Uint8Array): void => {
    if (this.#isOver) return;
    const lines = `${this.#rest}${this.#decoder.write(Buffer.from(text))}`.split(/\r*\n/);
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > longestLine) {
      lines.push(this.#rest);
      this.#rest = '';
    }
    for (const line of lines) if (line.trim() !== '') this.#options.whenDigested(() => this.#tell(line));
  };

  /** There is a first event, and so a time. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const line of early) this.#tell(line);
  }

  /** The trace is about to end. */
  end(): void {
    if (this.#rest.trim() !== '') this.#tell(this.#rest);
    this.#isOver = true;
  }

  #tell(line: string): void {
    if (this.#isOver) return;
    if (this.#early) {
      this.#early.push(line);
      return;
    }
    try {
      this.#options.sink.event({ type: 'console', time: this.#options.time(), text: line.slice(0, longestLine) });
    } catch (thrown) {
      this.#options.onError(thrown);
    }
  }
}
