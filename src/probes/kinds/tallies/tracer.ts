import { bucketCount, bucketOf } from '../../../arch/index.js';
import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import { addTo } from '../../../base/made-once.js';
import type {
  AheadReads,
  Call,
  CallKind,
  CallSite,
  HitMemory,
  MemoryRequest,
  Moment,
  TracedCall,
} from '../../../calls/index.js';
import type { RootRef, TallyRow } from '../../../trace/index.js';
import { decide, holds, numberIn } from '../../expressions/comparison.js';
import { pollAround } from '../poll/traced-poll.js';
import type { TallyProbe } from './resolve.js';

/** Counts: one number, or one for each bucket. */
interface Counts {
  readonly counts: number[];
  /** Calls that are not among them: what never returned, where that counts, and what could not be read. */
  missed: number;
  /** Of a probe that adds numbers up. */
  sum: bigint;
}

/** The counts of one probe. */
interface Tally extends Counts {
  readonly probe: TallyProbe;
  /** Of one that groups calls: those of each task, undefined for calls outside of all, or of each hart. */
  readonly groups: Map<RootRef | number | undefined, Counts>;
}

/** A probe's counts that a call belongs to. */
interface Counting {
  readonly probe: TallyProbe;
  readonly to: Counts;
}

/** A call whose return is counted. */
interface TalliedCall extends TracedCall {
  readonly began: number;
  readonly tallies: readonly Counting[];
}

const none: readonly never[] = [];

/**
 * Counts calls at their entries, or by what their returns show, and adds the counts of counters in the target. It
 * emits no events.
 */
export class TallyTracer implements CallKind {
  readonly #all: readonly Tally[];
  readonly #at = new AddressMap<Tally[]>();
  /** A kernel has 46,000 functions, each with a counter. */
  readonly #byProbe: ReadonlyMap<object, Tally>;
  readonly ahead: AheadReads = {
    entryReads: (at, memory) => this.moreReads(at, memory),
    mayBegin: ({ pc, registers }, memory) =>
      (this.#at.get(pc) ?? none).some(({ probe: { by, function: fn } }) => {
        const isAtReturn = by !== undefined && by.kind !== 'entry';
        return isAtReturn && (!fn.when || holds(fn.when, registers, memory));
      }),
  };

  constructor(probes: readonly TallyProbe[]) {
    this.#all = probes.map((probe) => ({ probe, ...zero(probe), groups: new Map() }));
    this.#byProbe = new Map(this.#all.map((tally) => [tally.probe, tally]));
    for (const tally of this.#all) addTo(this.#at, tally.probe.function.address, tally);
  }

  isAt(pc: Addr): boolean {
    return this.#at.get(pc) !== undefined;
  }

  entryReads({ pc }: Moment): readonly MemoryRequest[] | undefined {
    return this.#at.get(pc) ? none : undefined;
  }

  moreReads({ pc, registers }: Moment, memory: HitMemory): readonly MemoryRequest[] {
    return (this.#at.get(pc) ?? none).flatMap(({ probe: { by, function: fn } }) => {
      const decided = fn.when ? decide(fn.when, registers, memory) : true;
      if (typeof decided !== 'boolean') return decided;
      const value = by?.kind === 'entry' && decided ? numberIn(by.number, registers, memory) : undefined;
      return typeof value === 'object' ? value : none;
    });
  }

  begin({ pc, registers, time, hart }: Moment, { around }: CallSite, memory: HitMemory): TalliedCall | undefined {
    const atReturn: Counting[] = [];
    for (const tally of this.#at.get(pc) ?? none) {
      const { probe } = tally;
      const { by, function: fn } = probe;
      if (fn.when && !holds(fn.when, registers, memory)) continue;
      const counting = { probe, to: countsOf(tally, hart, around) };
      if (by && by.kind !== 'entry') atReturn.push(counting);
      else if (!by) increment(counting.to.counts, 0);
      else countNumber(counting, numberIn(by.number, registers, memory));
    }
    return atReturn.length > 0 ? { kind: this, place: pc, began: time, tallies: atReturn } : undefined;
  }

  add(probe: object, words: BigUint64Array): void {
    const tally = this.#byProbe.get(probe);
    if (!tally) return;
    const counts = tally.probe.adds ? words.subarray(0, 1) : words;
    for (const [i, count] of counts.entries()) tally.counts[i] = (tally.counts[i] ?? 0) + Number(count);
    const [, low, high] = words;
    if (tally.probe.adds) tally.sum += BigInt.asIntN(128, ((high ?? 0n) << 64n) | (low ?? 0n));
  }

  /** In the order of the probes. */
  rows(): TallyRow[] {
    return this.#all.flatMap((tally) => {
      const { groups, probe } = tally;
      const { groupedBy } = probe;
      if (groupedBy === undefined || groups.size === 0) return rowOf(probe, tally, undefined);
      return [...groups].map(([key, counts]) => {
        const group = typeof key === 'number' ? { by: 'hart' as const, hart: key } : { by: 'task' as const, root: key };
        return rowOf(probe, counts, group);
      });
    });
  }

  lost({ payload }: Call): void {
    for (const { to } of (payload as TalliedCall).tallies) to.missed++;
  }

  returning({ payload, wasLost }: Call, { registers, time }: Moment, memory: HitMemory): void {
    const { began, tallies } = payload as TalliedCall;
    for (const counting of tallies) {
      if (wasLost) counting.to.missed--;
      const { by } = counting.probe;
      if (by?.kind === 'duration') countNumber(counting, BigInt(Math.max(0, Math.round(time - began))));
      else if (by) countNumber(counting, numberIn(by.number, registers, memory));
    }
  }
}

function zero({ by, adds }: TallyProbe): Counts {
  return { counts: new Array<number>(by && !adds ? bucketCount : 1).fill(0), missed: 0, sum: 0n };
}

/** The counts of the task whose poll is open around a call, or of its hart; the probe's own where it groups nothing. */
function countsOf(tally: Tally, hart: number, around: Call | undefined): Counts {
  const { probe, groups } = tally;
  if (probe.groupedBy === undefined) return tally;
  const root = pollAround(around)?.payload.root;
  const key = probe.groupedBy === 'hart' ? hart : root?.isPart ? undefined : root;
  const known = groups.get(key) ?? zero(probe);
  groups.set(key, known);
  return known;
}

function rowOf(
  { function: fn, by, adds }: TallyProbe,
  { counts, missed, sum }: Counts,
  group: TallyRow['group'],
): TallyRow {
  return {
    function: fn.ref,
    calls: counts.reduce((total, count) => total + count, 0),
    ...(missed > 0 && { isBound: true }),
    by: by && { argument: by.argument, counts, added: adds && { as: adds, sum } },
    group,
  };
}

function increment(counts: number[], at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

function countNumber({ probe, to }: Counting, value: ReturnType<typeof numberIn>): void {
  if (typeof value !== 'bigint') {
    to.missed++;
    return;
  }
  increment(to.counts, probe.adds ? 0 : bucketOf(value));
  to.sum += value;
}
