import { plural } from '../text/index.js';
import type { TraceEvent } from '../trace/index.js';

/** The calls and polls that were open when a program ended: the last events of its trace. */
export class OpenAtEnd {
  #count = 0;
  #innermost: string | undefined;

  readonly see = (event: TraceEvent): void => {
    if ((event.type !== 'call-lost' && event.type !== 'poll-lost') || ('entryOnly' in event && event.entryOnly)) {
      this.#count = 0;
      return;
    }
    if (this.#count++ === 0) this.#innermost = event.type === 'call-lost' ? event.function.name : event.future.future;
  };

  /** `while 3 calls were open, the innermost of work::step`. */
  get text(): string {
    if (this.#count === 0) return 'while no traced call was open';
    const were = this.#count === 1 ? 'was' : 'were';
    return `while ${plural(this.#count, 'call')} ${were} open, one of ${this.#innermost}`;
  }
}
