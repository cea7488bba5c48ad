import { registersOf } from '../../expressions/plan.js';
import { planConditions } from '../../expressions/planned-conditions.js';
import type { ReadPlan } from '../../read-plan.js';
import type { TallyProbe } from './resolve.js';

/** What counting a function's calls reads: the registers of its conditions, and of what it counts by. */
export function planTally(
  { function: probe, by, adds, groupedBy }: TallyProbe,
  general: ReadonlySet<string>,
): ReadPlan {
  const { address, size, ref, producer } = probe;
  const { registers, reads, why, when, isDecided } = planConditions(
    probe.when,
    by?.kind === 'entry' ? [by.number.spot] : [],
  );
  const returned = by?.kind === 'result' ? registersOf([by.number.spot]) : [];
  const foreign = [...registers, ...returned].find((name) => !general.has(name));
  const counted = by?.kind === 'entry' ? by.number.target : undefined;
  const seesReturn = by !== undefined && by.kind !== 'entry';
  // What lies in memory is counted when a record is read, and so is what is added up or grouped: counters only count.
  const isCounted =
    isDecided && !adds && !groupedBy && (by === undefined || (counted !== undefined && !counted.behind));
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: registers,
    entryReads: isCounted ? [] : reads,
    exit: { keep: [], registers: returned, reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      foreign !== undefined
        ? `what is asked for lies in ${foreign}`
        : size === 0
          ? 'the size of its code is not known'
          : why,
    returnStays: seesReturn && probe.stackArguments ? 'it may have arguments on the stack' : undefined,
    when,
    seesReturn,
    count: isCounted ? { by: counted } : undefined,
    hasThreshold: false,
  };
}
