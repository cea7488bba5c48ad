// From the ring to the client: out of shared memory while the target runs, or by packets at its stops.
import type { Addr } from '../base/addr.js';
import type { Batch, Reply } from '../rsp/index.js';
import type { ControlWords } from './control-words.js';
import type { DrainedRecords } from './drained-records.js';
import type { Piece, RingReader, Write } from './ring.js';
import type { TargetCounters } from './target-counters.js';
import type { TargetEngineOptions } from './target-engine-options.js';
import { lostRing, queue, readRing, writeAll } from './transfers.js';

/** How a ring is read at a stop. */
export interface StoppedRead {
  /** Flush every committed record, even past another hart's uncommitted slot: the next event is this stop. */
  readonly all?: boolean;
  /** The recording ends: what is read waits however much waits already, because the ring is small next to it. */
  readonly last?: boolean;
  /**
   * Writes for the target go out together with its resume. If the ring cannot be read at this stop, another stop is
   * tried.
   */
  readonly resume?: Batch | undefined;
}

interface RingDrainParts {
  readonly options: TargetEngineOptions;
  readonly memory: Piece;
  /** Where a full ring stops the target; undefined if the target gets room while it runs. */
  readonly breakpoint: Addr | undefined;
  readonly ring: RingReader;
  readonly control: ControlWords;
  readonly counters: TargetCounters;
  readonly drained: DrainedRecords;
}

interface Accepted {
  readonly writes: readonly Write[];
  readonly failed: { readonly error: unknown } | undefined;
}

/** Reads the ring, and gives the target room. */
export class RingDrain {
  readonly #options: TargetEngineOptions;
  readonly #memory: Piece;
  readonly #breakpoint: Addr | undefined;
  readonly #ring: RingReader;
  readonly #control: ControlWords;
  readonly #counters: TargetCounters;
  readonly #drained: DrainedRecords;
  /** What was read while the target ran gives it this room, at its next stop. The last write of each address counts. */
  readonly #owed = new Map<Addr, Uint8Array>();
  /** The stub's answers to the writes that went with the last resume. */
  #renewals: readonly Reply<boolean>[] = [];

  constructor({ options, memory, breakpoint, ring, control, counters, drained }: RingDrainParts) {
    this.#options = options;
    this.#memory = memory;
    this.#breakpoint = breakpoint;
    this.#ring = ring;
    this.#control = control;
    this.#counters = counters;
    this.#drained = drained;
  }

  /** Says to writers that this client lives, if it is time to, or `now`. */
  renew(now = false): void {
    const { shared, data } = this.#options.scratch;
    if (!shared || this.#breakpoint !== undefined) return;
    for (const { address, bytes } of this.#control.renewed(now)) shared.write(Number(address - data.address), bytes);
  }

  /**
   * Reads the ring out of shared memory.
   * @param stopped the target does not run; its `all`: see {@link RingReader.accept}; `last`: also if too much waits to
   * be digested
   * @returns true if there is more
   */
  live(stopped?: StoppedRead): boolean {
    const { all = false, last = false } = stopped ?? {};
    const { shared, data } = this.#options.scratch;
    const { queue } = this.#drained;
    this.renew();
    // A part at a time, so that the guest gets room soon: a writer that waits for long gives us up.
    const room = Math.max(queue.room, last ? 1 : 0);
    if (!shared || room === 0) return false;
    const { next } = this.#ring;
    const at = (address: Addr): number => Number(address - data.address);
    shared.read(0, this.#control.bytes);
    if (shared.endsWithTarget) this.#counters.readShared();
    const pieces = this.#ring.wanted(this.#control.head, room);
    const read = pieces.map(({ address, length }) => {
      const bytes = queue.open(length);
      shared.read(at(address), bytes);
      return bytes;
    });
    const { writes, failed } = this.#accept(read, all);
    for (const { address, bytes } of writes) {
      this.#owed.delete(address);
      this.#owed.set(address, bytes);
    }
    for (const bytes of read) queue.close(bytes);
    if (this.#breakpoint === undefined || stopped) {
      for (const [address, bytes] of this.#owed) shared.write(at(address), bytes);
      this.#owed.clear();
    }
    if (failed) throw failed.error;
    return this.#ring.next > next && this.#ring.hasMore;
  }

  /** Reads the ring while the target is stopped. */
  async stopped({ all = false, last = false, resume }: StoppedRead = {}): Promise<void> {
    const { session, scratch } = this.#options;
    if (scratch.shared) {
      while (this.live({ all, last }) || !(last || this.#drained.hasRoom))
        if (!this.#drained.hasRoom) this.#drained.digestAll();
      return;
    }
    const read = await readRing({ session, scratch, memory: this.#memory }, (head) => {
      this.#control.bytes.set(head);
      return this.#ring.wanted(this.#control.head);
    });
    // Outside the kernel, the hart may be unable to see the kernel's memory.
    if (!read && resume) return;
    if (!read || this.#renewals.some((reply) => !reply.value)) throw lostRing(this.#control.address);
    const { writes, failed } = this.#accept(read, all);
    this.#renewals = resume ? queue(resume, writes) : [];
    const written = resume ? true : writeAll(session, writes);
    // If the digesting throws, nobody waits for this promise.
    if (written !== true) written.catch(() => {});
    // While the stub works on the writes.
    if (!last && !this.#drained.hasRoom) this.#drained.digestAll();
    if (!(await written)) throw lostRing(this.#control.address);
    if (failed) throw failed.error;
    await this.#counters.read();
  }

  /** The writes for the target, which needs them also where what was read could not be kept. */
  #accept(read: readonly Uint8Array[], all: boolean): Accepted {
    const writes = this.#ring.accept(read, (...slots) => this.#drained.add(...slots), all);
    let failed: Accepted['failed'];
    try {
      // What has left the ring is safe before the target may overwrite it.
      this.#drained.queue.settle();
    } catch (error) {
      failed = { error };
    }
    const renewed = this.#breakpoint === undefined ? [] : this.#control.renewed(true);
    return { writes: [...writes, ...this.#control.answer(), ...renewed], failed };
  }
}
