import type { Batch, Reply } from '../rsp/index.js';
import type { MemoryRequest } from './stop-engine.js';

/** Memory that was asked for before the stop's registers were known. */
export interface GuessedReads {
  /** The reply to exactly this read, if it was guessed. */
  find(request: MemoryRequest): Reply<Uint8Array | undefined> | undefined;
}

/** Guesses kept; a program has far fewer places and Futures than that in one phase of its work. */
const mostKept = 4096;
/** A guess that is larger would cost more than the round trip that it may save. */
const mostBytes = 2048;

const nothing: GuessedReads = { find: () => undefined };

/**
 * Guesses what memory the next stop will want from what came after a stop like this one before: programs repeat themselves, and
 * a Future lies where it lay. A right guess saves a round trip; a wrong one costs some microseconds and changes nothing, since
 * bytes are used only for the address they were read from, at the stop they were read at.
 */
export class ReadGuesses {
  readonly #after = new Map<string, readonly MemoryRequest[]>();
  #last: string | undefined;

  /** Asks, in the batch that also reads the registers, for what this stop will probably want. */
  ask(batch: Batch): GuessedReads {
    const guess = this.#last === undefined ? undefined : this.#after.get(this.#last);
    if (!guess) return nothing;
    const asked = guess.map((request) => ({ request, reply: batch.readMemory(request.address, request.length) }));
    return {
      find: ({ address, length }) =>
        asked.find(({ request }) => request.address === address && request.length === length)?.reply,
    };
  }

  /** What this stop wanted in the end. */
  learn(pc: bigint, wanted: readonly MemoryRequest[]): void {
    if (this.#last !== undefined) {
      const bytes = wanted.reduce((sum, { length }) => sum + length, 0);
      if (this.#after.size >= mostKept) this.#after.clear();
      if (bytes <= mostBytes) this.#after.set(this.#last, wanted);
    }
    this.#last = `${pc}:${wanted[0]?.address}`;
  }
}
