import type { MemoryRequest, Reaction, Visit } from '../calls/index.js';
import type { Batch, Reply } from '../rsp/index.js';

/** Memory that was requested before the stop's registers were known. */
export interface GuessedReads {
  /** The reply to exactly this read, if it was guessed. */
  find(request: MemoryRequest): Reply<Uint8Array | undefined> | undefined;
}

/** Guesses that are kept. A program has far fewer places and Futures than that in one phase of its work. */
const mostKept = 4096;
/** A larger guess would cost more than the round trip that it may save. */
const mostBytes = 2048;

/** Nothing was guessed. */
export const nothing: GuessedReads = { find: () => undefined };

/**
 * Reads what a tracer asks for until it says what follows. `first`: the answers to what it has asked for at first, if it
 * was asked. Returns also what was read more.
 */
export async function finish(
  visit: Visit,
  begin: () => Batch,
  { find }: GuessedReads,
  ...first: Parameters<Visit['next']>
): Promise<{ readonly more: readonly MemoryRequest[]; readonly reaction: Reaction }> {
  const more: MemoryRequest[] = [];
  let step = visit.next(...first);
  while (!step.done) {
    const wanted = step.value;
    const batch = begin();
    const replies = wanted.map((one) => find(one) ?? batch.readMemory(one.address, one.length));
    if (!wanted.every(find)) await batch.send();
    more.push(...wanted);
    step = visit.next(replies.map(({ value }) => value));
  }
  return { more, reaction: step.value };
}

/** Stands for the first address of a stop that read nothing. */
const nowhere = -1n;

/** What was read at the stop after one like this; undefined as long as there was none, or it was too much. */
interface Guess {
  wanted: readonly MemoryRequest[] | undefined;
}

/**
 * Guesses which memory the next stop will read, from what followed an earlier stop like this one. Programs repeat
 * themselves, and a Future stays in its place. A right guess saves a round trip; a wrong one costs some microseconds.
 * It changes nothing, because bytes are used only for the address and the stop at which they were read.
 */
export class ReadGuesses {
  /** By the pc and the first address that the stop before read. */
  readonly #after = new Map<bigint, Map<bigint, Guess>>();
  #kept = 0;
  #last: Guess | undefined;

  /** Requests the memory that this stop will probably read, in the batch that also reads the registers. */
  ask(batch: Batch): GuessedReads {
    const wanted = this.#last?.wanted;
    if (!wanted || wanted.length === 0) return nothing;
    const replies = wanted.map(({ address, length }) => batch.readMemory(address, length));
    return {
      find: ({ address, length }) =>
        replies[wanted.findIndex((one) => one.address === address && one.length === length)],
    };
  }

  /** The memory that this stop finally read. */
  learn(pc: bigint, wanted: readonly MemoryRequest[]): void {
    if (this.#last !== undefined) {
      let bytes = 0;
      for (const { length } of wanted) bytes += length;
      if (bytes <= mostBytes) this.#last.wanted = wanted;
    }
    this.#last = this.#at(pc, wanted[0]?.address ?? nowhere);
  }

  #at(pc: bigint, first: bigint): Guess {
    let places = this.#after.get(pc);
    if (places === undefined) {
      places = new Map();
      this.#after.set(pc, places);
    }
    let guess = places.get(first);
    if (guess === undefined) {
      if (this.#kept++ >= mostKept) {
        this.#after.clear();
        this.#kept = 0;
        return this.#at(pc, first);
      }
      guess = { wanted: undefined };
      places.set(first, guess);
    }
    return guess;
  }
}
