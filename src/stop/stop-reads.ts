import type { Architecture } from '../arch/index.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { MemoryRequest } from '../calls/index.js';
import type { Batch, Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import { RamReads } from './ram-reads.js';
import { type GuessedReads, ReadGuesses } from './read-guesses.js';

interface StopReadsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly ram?: GuestRam | undefined;
}

/**
 * The memory that a stop reads. Most of it is guessed and read together with the registers, which costs less than
 * anything else. What was not guessed is read out of the machine's RAM where that is at hand, which costs less than
 * another round trip.
 */
export class StopReads {
  readonly #session: Session;
  readonly #ram: RamReads | undefined;
  readonly #guesses = new ReadGuesses();

  constructor({ session, arch, ram }: StopReadsOptions) {
    this.#session = session;
    this.#ram = RamReads.for(ram, arch);
  }

  /**
   * Called with the batch that reads a stop's registers, and with what it reads of them besides `g` (undefined: all).
   * The result is called with the answer.
   */
  ask(batch: Batch, names: readonly string[] | undefined): (registers: RegisterReader) => GuessedReads {
    const guessed = this.#guesses.ask(batch);
    const ram = this.#ram?.registers.every((name) => this.#isRead(name, names)) ? this.#ram : undefined;
    return (registers) => {
      if (ram === undefined) return guessed;
      let inRam: GuessedReads | undefined;
      return {
        find: (request) => {
          const known = guessed.find(request);
          if (known !== undefined) return known;
          inRam ??= ram.at(registers);
          return inRam.find(request);
        },
      };
    };
  }

  /** The memory that this stop finally read. */
  learn(pc: bigint, wanted: readonly MemoryRequest[]): void {
    this.#guesses.learn(pc, wanted);
  }

  #isRead(name: string, names: readonly string[] | undefined): boolean {
    if (names === undefined || names.includes(name)) return true;
    const { features, target } = this.#session;
    return features.registerBlock && target.register(name)?.offsetInG !== undefined;
  }
}
