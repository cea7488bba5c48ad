import type { Addr } from '../../base/addr.js';

/** One instruction, as far as it tells where the next one is. */
export interface Step {
  readonly length: number;
  /** Where it surely goes instead of to the next one; `away` where only registers or the stack tell. */
  readonly jumps: Addr | 'away' | undefined;
  /** Where it may go instead. */
  readonly branches: Addr | undefined;
  readonly readsTime: boolean;
}

/** What is carried out between a place and where it is left. */
export interface CodePath {
  /** Instructions, with the one that leaves. */
  readonly steps: number;
  /** How many up to and with the one that reads the time; undefined where none does. */
  readonly untilTime: number | undefined;
}

/** More than any trampoline has: an endless loop. */
const mostSteps = 10_000;

/**
 * Follows trampolines on their usual way, which is how they are written: rare cases are branched to. So no branch is taken, but at the second visit
 * of a loop's head: a loop is gone through once. Ends at the first jump to where `stepAt` knows nothing.
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
