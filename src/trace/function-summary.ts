import type { FunctionRef, TraceEvent, TraceInfo, TraceSink } from './events.js';
import { type AnyBegin, innermost, OpenCalls, type Track } from './open-calls.js';
import { compare } from './summary.js';

/** What one function did: a row of the table, as `--json` prints it. Times are guest nanoseconds. */
export interface FunctionRow {
  /** `labkern::work::deep0`: without generic arguments. Rows of one generic function share it. */
  readonly function: string;
  readonly instance: string;
  /** `0x80200000`. */
  readonly address: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly calls: number;
  /** Those of `calls` whose return was not seen; they have no time. */
  readonly lost: number;
  /** Time inside it, with all that it calls; of calls inside a call of the same function only the outer one counts, as in uftrace. */
  readonly total_ns: number;
  /** Time inside it, without the traced functions that ran meanwhile on the same hart, or in the same thread. */
  readonly self_ns: number;
  /** Mean time of the calls that returned, recursive ones included. */
  readonly avg_ns: number;
  readonly max_ns: number;
}

interface Tally {
  readonly function: FunctionRef;
  calls: number;
  lost: number;
  returned: number;
  total: number;
  self: number;
  sum: number;
  max: number;
}

interface Open {
  readonly begin: AnyBegin;
  /** Time of the calls directly inside that have returned. */
  inside: number;
}

/** More calls than this do not wait at the same time. */
const mostWaiting = 65_536;

/** Counts calls per function while they come; {@link rows} at any time. Calls still open count as calls and nothing else. */
export class FunctionSummary implements TraceSink {
  /** By the function's key. */
  readonly #tallies: Tally[] = [];
  /** Calls that were taken for lost and may yet return: those of a thread that waits, while others run on its hart. */
  readonly #waiting = new Set<string>();
  readonly #open = new OpenCalls<Open>(({ begin }) => {
    if (begin.type !== 'call-begin') return;
    this.#tally(begin.function).lost++;
    if (this.#waiting.size < mostWaiting) this.#waiting.add(keyOf(begin.function, begin.time));
  });

  begin(_info: TraceInfo): void {}

  hart(): void {}

  flush(): void {}

  end(): void {}

  event(event: TraceEvent): void {
    switch (event.type) {
      case 'call-begin':
        this.#tally(event.function).calls++;
        this.#open.begin({ begin: event, inside: 0 });
        break;
      case 'poll-begin':
        this.#open.begin({ begin: event, inside: 0 });
        break;
      case 'poll-end':
      case 'poll-lost':
        this.#passOn(event, this.#open.end(event)?.inside ?? 0);
        break;
      case 'call-end': {
        const tally = this.#tally(event.function);
        const open = this.#open.end(event);
        if (open === undefined) {
          if (!this.#waiting.delete(keyOf(event.function, event.began))) tally.calls++;
          else this.#returned(tally, event.time - event.began);
          break;
        }
        const time = event.time - open.begin.time;
        tally.returned++;
        tally.sum += time;
        tally.self += time - open.inside;
        tally.max = Math.max(tally.max, time);
        if (!isInside(this.#open.on(event), event.function)) tally.total += time;
        this.#passOn(event, time);
        break;
      }
      case 'call-lost': {
        const tally = this.#tally(event.function);
        const open = this.#open.end(event);
        // Counted when it was taken for lost.
        if (open === undefined && this.#waiting.delete(keyOf(event.function, event.began))) break;
        if (open === undefined) tally.calls++;
        tally.lost++;
        this.#passOn(event, open?.inside ?? 0);
        break;
      }
      case 'state':
      case 'derived-poll':
      case 'watch':
      case 'reset':
        break;
    }
  }

  /** A row a function, in no particular order. */
  rows(): FunctionRow[] {
    return this.#tallies
      .filter((tally) => tally !== undefined)
      .map((tally) => ({
        function: tally.function.name,
        instance: tally.function.instance,
        address: `0x${tally.function.address.toString(16)}`,
        file: tally.function.file ?? null,
        line: tally.function.line ?? null,
        calls: tally.calls,
        lost: tally.lost,
        total_ns: tally.total,
        self_ns: tally.self,
        avg_ns: tally.returned === 0 ? 0 : Math.round(tally.sum / tally.returned),
        max_ns: tally.max,
      }));
  }

  /** Time that the innermost call still open did not spend in itself. A poll hands it on to the function around it. */
  #passOn(track: Track, time: number): void {
    const around = innermost(this.#open.on(track));
    if (around !== undefined) around.inside += time;
  }

  /** A call that was taken for lost. */
  #returned(tally: Tally, time: number): void {
    tally.lost--;
    tally.returned++;
    tally.sum += time;
    tally.total += time;
    tally.max = Math.max(tally.max, time);
  }

  #tally(fn: FunctionRef): Tally {
    let tally = this.#tallies[fn.key];
    if (tally === undefined) {
      tally = { function: fn, calls: 0, lost: 0, returned: 0, total: 0, self: 0, sum: 0, max: 0 };
      this.#tallies[fn.key] = tally;
    }
    return tally;
  }
}

function keyOf(fn: FunctionRef, began: number): string {
  return `${fn.key}@${began}`;
}

/** A call of this function is open already. */
function isInside(open: readonly Open[], fn: FunctionRef): boolean {
  for (const { begin } of open) if (begin.type === 'call-begin' && begin.function.key === fn.key) return true;
  return false;
}

/** The rows for machines: sorted by function, then instance, then address, in code unit order. */
export function functionJson(rows: readonly FunctionRow[]): FunctionRow[] {
  return [...rows].sort(
    (a, b) => compare(a.function, b.function) || compare(a.instance, b.instance) || compare(a.address, b.address),
  );
}
