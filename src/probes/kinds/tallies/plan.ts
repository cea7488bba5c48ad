import type { ReadPlan } from '../../read-plan.js';
import type { TallyProbe } from './resolve.js';

/** What counting a function's calls reads: the registers of its conditions, and of the argument that it counts by. */
export function planTally({ function: probe, by }: TallyProbe, general: ReadonlySet<string>): ReadPlan {
  const { address, size, ref, producer } = probe;
  const conditions = probe.when ?? [];
  const looked = [...conditions.flat(), ...(by ? [by] : [])].map(({ register }) => register);
  const foreign = looked.find((name) => !general.has(name));
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: [...new Set(looked)],
    entryReads: [],
    exit: { keep: [], registers: [], reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      foreign !== undefined
        ? `what is asked for lies in ${foreign}`
        : size === 0
          ? 'the size of its code is not known'
          : undefined,
    returnStays: undefined,
    when: conditions.length === 1 ? (conditions[0] ?? []) : [],
    seesReturn: false,
    // One of several lists of conditions: that is decided when a record is read.
    count:
      conditions.length > 1 ? undefined : { by: by && { register: by.register, size: by.size, signed: by.signed } },
    hasThreshold: false,
  };
}
