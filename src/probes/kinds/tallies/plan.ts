import { planConditions } from '../../expressions/comparison.js';
import { registersOf } from '../../expressions/plan.js';
import type { PlannedCount, ReadPlan } from '../../read-plan.js';
import type { TallyProbe } from './resolve.js';

/** What counting a function's calls reads: the registers of its conditions, and of what it counts by. */
export function planTally(tally: TallyProbe, general: ReadonlySet<string>): ReadPlan {
  const { function: probe, by } = tally;
  const { address, size, ref, producer } = probe;
  const { registers, reads, why, when, isDecided } = planConditions(
    probe.when,
    by?.kind === 'entry' ? [by.number.spot] : [],
  );
  const returned = by?.kind === 'result' ? registersOf([by.number.spot]) : [];
  const foreign = [...registers, ...returned].find((name) => !general.has(name));
  const seesReturn = by !== undefined && by.kind !== 'entry';
  const count = isDecided ? countOf(tally, when) : undefined;
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: registers,
    entryReads: reads,
    exit: { keep: [], registers: returned, reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      probe.unread ??
      (foreign !== undefined
        ? `what is asked for lies in ${foreign}`
        : size === 0
          ? 'the size of its code is not known'
          : why),
    returnStays: seesReturn && probe.stackArguments ? 'it may have arguments on the stack' : undefined,
    when,
    seesReturn,
    counts: count ? [count] : [],
  };
}

/** What counters in the target can count of it: no result, no time, no tasks or harts apart. */
function countOf(probe: TallyProbe, when: ReadPlan['when']): PlannedCount | undefined {
  const { by, adds, groupedBy } = probe;
  if (groupedBy) return undefined;
  if (!by) return { kind: 'calls', when, probe };
  if (by.kind !== 'entry' || !by.number.target) return undefined;
  return { kind: adds ? 'sum' : 'buckets', of: by.number.target, when, probe };
}
