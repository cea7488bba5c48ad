import { madeOnce } from '../../base/made-once.js';
import type { TraceEvent, WatchAccess, WatchRef } from './events.js';
import { Fold } from './sinks.js';

/** The accesses of one place: a row of the table, as `--json` prints it. */
export interface WatchRow {
  /** As it was asked for. */
  readonly watch: string;
  /** What the target reported; `asked` differs where it cannot report reads alone. */
  readonly access: WatchAccess;
  readonly asked: WatchAccess;
  /** `0x80200000`. */
  readonly address: string;
  readonly size: number;
  readonly type: string;
  readonly reads: number;
  /** All writes that the target distinguishes from reads, including those of the same value. */
  readonly writes: number;
  /** Reads, or writes of the same value: a target that reports both does not say which. */
  readonly accesses: number;
  /** Accesses after which other bytes were there. */
  readonly changed: number;
  /** The value after the last access; null where it could not be read. */
  readonly last: string | null;
}

interface Tally {
  read: number;
  write: number;
  access: number;
  changed: number;
  last: string | undefined;
}

/** Counts accesses per watched place while they come. */
export class WatchSummary extends Fold {
  readonly #tallies = new Map<number, Tally>();

  event(event: TraceEvent): void {
    if (event.type !== 'watch') return;
    const { watch } = event;
    const tally = madeOnce<number, Tally>(this.#tallies, watch.key, () => {
      return { read: 0, write: 0, access: 0, changed: 0, last: undefined };
    });
    tally[event.access]++;
    if (event.changed) tally.changed++;
    tally.last = event.value;
  }

  /** A row a place, in the order in which they were asked for. */
  rows(watches: readonly WatchRef[]): WatchRow[] {
    return watches.map((watch) => {
      const tally = this.#tallies.get(watch.key);
      return {
        watch: watch.name,
        access: watch.access,
        asked: watch.asked,
        address: `0x${watch.address.toString(16)}`,
        size: watch.size,
        type: watch.type,
        reads: tally?.read ?? 0,
        writes: tally?.write ?? 0,
        accesses: tally?.access ?? 0,
        changed: tally?.changed ?? 0,
        last: tally?.last ?? null,
      };
    });
  }
}
