import type { Addr } from '../../base/addr.js';
import type { Session } from '../../rsp/index.js';
import type { Scratch } from '../memory/scratch.js';
import type { Placement } from './placement.js';
import type { Piece, Write } from './ring.js';
import { counterBytes } from './sites.js';

/**
 * The counters that trampolines increment, between the control block and the ring. They are read together, and the
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

  /** By the address of the function. */
  all(): ReadonlyMap<Addr, readonly number[]> {
    const view = new DataView(this.#bytes.buffer);
    const all = new Map<Addr, readonly number[]>();
    for (const { site } of this.#placement.patches) {
      const offset = this.#placement.counters.get(site.index);
      if (offset === undefined) continue;
      const word = (_: unknown, i: number): number => Number(view.getBigUint64(offset + counterBytes * i, true));
      all.set(site.plan.address, Array.from({ length: site.counters }, word));
    }
    return all;
  }
}
