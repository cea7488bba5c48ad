import type { ValuePlace } from '../../argument-places.js';
import { planConditions } from '../../expressions/planned-conditions.js';
import type { ReadPlan } from '../../read-plan.js';
import type { FunctionProbe } from '../../resolve-functions.js';

/** What a function's hits read: the registers of its arguments, and of its result. */
export function planFunction(probe: FunctionProbe, values: boolean, general: ReadonlySet<string>): ReadPlan {
  const { address, size, ref, result, producer, stackArguments } = probe;
  const { registers: looked, reads, why, when } = planConditions(probe.when);
  const entry = [...new Set([...(values ? registersOf(probe.arguments.map(({ where }) => where)) : []), ...looked])];
  const exit = values && result ? registersOf([result.where]) : [];
  const foreign = [...entry, ...exit].find((name) => !general.has(name));
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: entry,
    entryReads: reads,
    exit: { keep: [], registers: exit, reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      foreign !== undefined
        ? `a value lies in ${foreign} (--no-args leaves values out)`
        : size === 0
          ? 'the size of its code is not known'
          : why,
    returnStays: stackArguments ? 'it may have arguments on the stack' : undefined,
    when,
    seesReturn: true,
    count: undefined,
    hasThreshold: true,
  };
}

function registersOf(places: readonly ValuePlace[]): string[] {
  const names = places.flatMap((where) =>
    where.kind === 'registers'
      ? where.parts.flatMap((part) => ('register' in part ? [part.register] : []))
      : where.kind === 'pointer'
        ? [where.register]
        : [],
  );
  return [...new Set(names)];
}
