import { StringDecoder } from 'node:string_decoder';
import type { EventOutput } from '../calls/index.js';
import type { TraceSink } from '../trace/index.js';

/** The longest line of a console that is one event: a longer one is several. */
const longestLine = 1000;

/** Cuts what a guest prints into lines, without those that are blank. */
export class ConsoleLines {
  readonly #emit: (line: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  #isOver = false;

  constructor(emit: (line: string) => void) {
    this.#emit = emit;
  }

  readonly take = (text: Uint8Array): void => {
    if (this.#isOver) return;
    const lines = `${this.#rest}${this.#decoder.write(Buffer.from(text))}`.split('\n');
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length > longestLine) {
      lines.push(this.#rest);
      this.#rest = '';
    }
    for (const line of lines) this.#line(line);
  };

  /** The trace is about to end. */
  end(): void {
    this.#line(this.#rest);
    this.#isOver = true;
  }

  #line(line: string): void {
    let end = line.length;
    while (line[end - 1] === '\r') end--;
    for (let at = 0; at < end; at += longestLine) {
      const part = line.slice(at, Math.min(end, at + longestLine));
      if (part.trim() !== '') this.#emit(part);
    }
  }
}

/**
 * Lines of a console as events. Nothing says a line's own time, so it stands behind the events that were known when it
 * came. Those that came before all events stand behind the first. They go past the counting, because they are no hits.
 */
export class ConsoleEvents {
  readonly #sink: TraceSink;
  readonly #output: EventOutput;
  /** Those before the first event: no time is known for them. */
  #early: string[] | undefined = [];

  constructor(sink: TraceSink, output: EventOutput) {
    this.#sink = sink;
    this.#output = output;
  }

  /** There is a first event, and so a time. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const line of early) this.line(line);
  }

  line(text: string): void {
    if (this.#early) this.#early.push(text);
    else this.#sink.event({ type: 'console', time: this.#output.time, text });
  }
}
