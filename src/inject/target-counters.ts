import { wordsOf } from '../arch/index.js';
import type { PlannedCount } from '../probes/index.js';
import type { Session } from '../rsp/index.js';
import type { Scratch } from '../scratch/index.js';
import type { Placement } from './placement.js';
import type { Piece, Write } from './ring.js';
import { counterBytes } from './sites.js';

/** The words that a probe has counted in. */
export interface CountedWords extends Pick<PlannedCount, 'probe'> {
  readonly words: BigUint64Array;
}

/**
 * The words that trampolines count in, between the control block and the ring. They are read together, and the
 * values of the last read are kept.
 */
export class TargetCounters {
  readonly #session: Session;
  readonly #scratch: Scratch;
  readonly #piece: Piece;
  readonly #placement: Pick<Placement, 'counters' | 'patches'>;
  readonly #bytes: Uint8Array;

  constructor(session: Session, scratch: Scratch, piece: Piece, placement: Pick<Placement, 'counters' | 'patches'>) {
    this.#session = session;
    this.#scratch = scratch;
    this.#piece = piece;
    this.#placement = placement;
    this.#bytes = new Uint8Array(piece.length);
  }

  /** Their bytes before the first trampoline runs. */
  zeros(): readonly Write[] {
    const { address, length } = this.#piece;
    return length === 0 ? [] : [{ address, bytes: new Uint8Array(length) }];
  }

  /**
   * Reads them: out of shared memory at any time, else only while the target is stopped. If the read fails, the last
   * values stay.
   */
  async read(): Promise<void> {
    const { address, length } = this.#piece;
    if (length === 0) return;
    if (!this.readShared()) this.#bytes.set((await this.#session.memory().read(address, length)) ?? []);
  }

  /** Reads them out of shared memory; false if there is none. */
  readShared(): boolean {
    const { address, length } = this.#piece;
    const { shared, data } = this.#scratch;
    if (length > 0) shared?.read(Number(address - data.address), this.#bytes);
    return shared !== undefined;
  }

  /** What each probe has counted. */
  all(): readonly CountedWords[] {
    const view = new DataView(this.#bytes.buffer);
    const all: CountedWords[] = [];
    for (const { site } of this.#placement.patches) {
      let offset = this.#placement.counters.get(site.index);
      if (offset === undefined) continue;
      for (const count of site.plan.counts) {
        const words = new BigUint64Array(wordsOf(count));
        for (let i = 0; i < words.length; i++, offset += counterBytes) words[i] = view.getBigUint64(offset, true);
        all.push({ probe: count.probe, words });
      }
    }
    return all;
  }
}
