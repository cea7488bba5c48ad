import type { Addr } from '../../base/addr.js';

/** One instruction, as far as it determines the next one. */
export interface Step {
  readonly length: number;
  /** Where it surely goes instead of to the next one; `away` if only registers or the stack determine the place. */
  readonly jumps: Addr | 'away' | undefined;
  /** Where it may go instead. */
  readonly branches: Addr | undefined;
  readonly readsTime: boolean;
}

/** What is run between a place and the end of the path. */
export interface CodePath {
  /** Instructions, including the one that leaves. */
  readonly steps: number;
  /** Instructions up to and including the one that reads the time; undefined if none does. */
  readonly untilTime: number | undefined;
}

/** More than any trampoline has: an endless loop. */
const mostSteps = 10_000;

/**
 * Follows trampolines on their usual way. They are written so that rare cases are branched to, so no branch is taken.
 * The one exception is the second visit of a loop's head: a loop is run once. Ends at the first jump to a place that
 * `stepAt` does not know.
 */
export function usualPath(start: Addr, stepAt: (at: Addr) => Step | undefined): CodePath | undefined {
  const branched = new Set<bigint>();
  let untilTime: number | undefined;
  let at = start;
  for (let steps = 1; steps <= mostSteps; steps++) {
    const step = stepAt(at);
    if (step === undefined) return undefined;
    if (step.readsTime) untilTime ??= steps;
    let next: Addr | 'away' = step.jumps ?? ((at + BigInt(step.length)) as Addr);
    if (step.branches !== undefined && branched.has(at)) next = step.branches;
    branched.add(at);
    if (step.jumps !== undefined && (next === 'away' || stepAt(next) === undefined)) return { steps, untilTime };
    if (next === 'away') return undefined;
    at = next;
  }
  return undefined;
}
