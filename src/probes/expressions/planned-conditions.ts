import type { Condition } from '../../arch/index.js';
import type { PlannedReads } from '../read-plan.js';
import type { Conditions } from './comparison.js';
import { readsOf, registersOf, type Spot } from './plan.js';

/** What a trampoline needs for a function's conditions. */
interface PlannedConditions {
  readonly registers: readonly string[];
  readonly reads: readonly PlannedReads[];
  /** Why only a stop can decide. */
  readonly why: string | undefined;
  /** What the trampoline itself decides. */
  readonly when: readonly Condition[];
  /** That is all of it: otherwise the rest is decided when the record is read. */
  readonly isDecided: boolean;
}

/** More loads than this take a trampoline too long. */
const mostLoads = 16;

/** Plans a function's conditions. `others`: what else its record must tell. */
export function planConditions(conditions: Conditions = [], others: readonly Spot[] = []): PlannedConditions {
  const all = conditions.flat();
  const spots = [...all.flatMap(({ number }) => number?.spot ?? []), ...others];
  const reads = readsOf(spots);
  const many = countLoads(reads) > mostLoads ? `its condition takes more than ${mostLoads} loads` : undefined;
  // One of several lists must hold: that is decided when the record is read.
  const [only = []] = conditions.length === 1 ? conditions : [];
  return {
    registers: registersOf(spots),
    reads,
    why: all.find(({ why }) => why !== undefined)?.why ?? many,
    when: only.flatMap(({ target }) => target ?? []),
    isDecided: conditions.length === 0 || (conditions.length === 1 && only.every(({ target }) => target !== undefined)),
  };
}

/** Each place counts once, however many comparisons read it. */
function countLoads(reads: readonly PlannedReads[]): number {
  const places = reads.flatMap(({ pointer, through = [], from = 0, loads }) =>
    loads.map(({ offset, size }) => `${pointer} ${through.join()} ${from + offset} ${size}`),
  );
  return new Set(places).size;
}
