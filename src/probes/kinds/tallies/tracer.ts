import { bucketCount, bucketOf } from '../../../arch/index.js';
import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { TallyRow } from '../../../trace/index.js';
import type { Call, CallKind, Moment, TracedCall } from '../../calls/call-tracer.js';
import { decide, holds, numberIn } from '../../expressions/comparison.js';
import type { HitMemory } from '../../reading.js';
import type { MemoryRequest } from '../../tracer.js';
import type { TallyProbe } from './resolve.js';

/** The counts of one probe: one number, or one for each bucket. */
interface Tally {
  readonly probe: TallyProbe;
  readonly counts: number[];
  /** Of a probe that adds numbers up. */
  sum: bigint;
}

/** A call whose return is counted. */
interface TalliedCall extends TracedCall {
  readonly began: number;
  readonly tallies: readonly Tally[];
}

const none: readonly never[] = [];

/**
 * Counts calls at their entries, or by what their returns tell, and adds the counts of counters in the target. It
 * emits no events.
 */
export class TallyTracer implements CallKind {
  readonly #all: readonly Tally[];
  readonly #at = new AddressMap<Tally[]>();

  constructor(probes: readonly TallyProbe[]) {
    this.#all = probes.map((probe) => ({
      probe,
      counts: new Array<number>(probe.by && !probe.adds ? bucketCount : 1).fill(0),
      sum: 0n,
    }));
    for (const tally of this.#all) {
      const { address } = tally.probe.function;
      const known = this.#at.get(address);
      if (known) known.push(tally);
      else this.#at.set(address, [tally]);
    }
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

  begin({ pc, registers, time }: Moment, _: unknown, memory: HitMemory): TalliedCall | undefined {
    const atReturn: Tally[] = [];
    for (const tally of this.#at.get(pc) ?? none) {
      const { probe, counts } = tally;
      const {
        by,
        function: { when },
      } = probe;
      if (when && !holds(when, registers, memory)) continue;
      if (by && by.kind !== 'entry') atReturn.push(tally);
      else if (!by) increment(counts, 0);
      else countNumber(tally, numberIn(by.number, registers, memory));
    }
    return atReturn.length > 0 ? { kind: this, began: time, tallies: atReturn } : undefined;
  }

  /** A counter in the target: for the one probe at that address. */
  add(address: Addr, counted: readonly number[]): void {
    const [tally] = this.#at.get(address) ?? none;
    for (const [i, count] of counted.entries()) if (tally) tally.counts[i] = (tally.counts[i] ?? 0) + count;
  }

  /** In the order of the probes. */
  rows(): TallyRow[] {
    return this.#all.map(({ probe: { function: fn, by, adds }, counts, sum }) => ({
      function: fn.ref,
      calls: counts.reduce((sum, count) => sum + count, 0),
      by: by && { argument: by.argument, counts, added: adds && { as: adds, sum } },
    }));
  }

  exitReads(): readonly MemoryRequest[] {
    return none;
  }

  began(): void {}

  returning({ payload }: Call, { registers, time }: Moment, memory: HitMemory): void {
    const { began, tallies } = payload as TalliedCall;
    for (const tally of tallies) {
      const { by } = tally.probe;
      if (by?.kind === 'duration') countNumber(tally, BigInt(Math.max(0, Math.round(time - began))));
      else if (by) countNumber(tally, numberIn(by.number, registers, memory));
    }
  }

  ended(): void {}

  lost(): void {}
}

function increment(counts: number[], at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

/** What could not be read is not counted. */
function countNumber(tally: Tally, value: ReturnType<typeof numberIn>): void {
  if (typeof value !== 'bigint') return;
  increment(tally.counts, tally.probe.adds ? 0 : bucketOf(value));
  tally.sum += value;
}
