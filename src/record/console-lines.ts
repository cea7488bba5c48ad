import { StringDecoder } from 'node:string_decoder';
import type { Engines } from '../engines/index.js';
import type { Parts } from './parts.js';

/** The longest line of a console that is one event. */
const longestLine = 1000;

/**
 * The lines that a guest prints, as events. Nothing says a line's own time, so it stands behind the events that were
 * known when it came. Those that came before all events stand behind the first. They go past the counting, because they
 * are no hits.
 */
export class ConsoleLines {
  readonly #parts: Pick<Parts, 'options' | 'tracers' | 'stopping'>;
  readonly #engines: Engines;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  /** Those before the first event: no time is known for them. */
  #early: string[] | undefined = [];
  #isOver = false;

  constructor(parts: Pick<Parts, 'options' | 'tracers' | 'stopping'>, engines: Engines) {
    this.#parts = parts;
    this.#engines = engines;
  }

  readonly take = (text: Uint8Array): void => {
    if (this.#isOver) return;
    const lines = `${this.#rest}${this.#decoder.write(Buffer.from(text))}`.split(/\r*\n/);
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > longestLine) {
      lines.push(this.#rest);
      this.#rest = '';
    }
    for (const line of lines) if (line.trim() !== '') this.#engines.whenDigested(() => this.#tell(line));
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
    const { options, tracers, stopping } = this.#parts;
    try {
      options.sink.event({ type: 'console', time: tracers.output.time, text: line.slice(0, longestLine) });
    } catch (thrown) {
      stopping.fail(thrown);
    }
  }
}
