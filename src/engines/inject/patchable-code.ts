import type { Displaced, FunctionExit, ProbeCode } from '../../arch/index.js';
import type { CodeFacts, ReadPlan } from '../../probes/index.js';
import { planExits } from './exit-patches.js';

/** How a function's code can be patched. */
export interface PatchableCode {
  readonly code: Uint8Array;
  /** Ways to patch its entry, the one to be preferred first. */
  readonly ways: readonly Displaced[];
  /** Ways to patch all its ends, where its return is not hooked. */
  readonly ends: readonly (readonly FunctionExit[])[] | undefined;
}

/** Or why it cannot. */
export type PatchVerdict = PatchableCode | string;

/** Looks at the code of every probe, at the same index; it decodes all of each function, so it takes a while. */
export function lookAtCode(
  plans: readonly ReadPlan[],
  bytesAt: (plan: ReadPlan) => Uint8Array | undefined,
  code: ProbeCode,
  facts: CodeFacts | undefined,
): readonly PatchVerdict[] {
  return plans.map((plan) => look(plan, bytesAt(plan), code, facts));
}

function look(
  plan: ReadPlan,
  bytes: Uint8Array | undefined,
  code: ProbeCode,
  facts: CodeFacts | undefined,
): PatchVerdict {
  if (plan.needsStop !== undefined) return plan.needsStop;
  if (!bytes) return 'its code is not in the ELF';
  const ways: Displaced[] = [];
  let why = 'no patch is known for this architecture';
  for (const { kind } of code.patches) {
    if (kind === 'far' && !plan.scratchIsFree && !code.entryIsPatchable?.(bytes)) continue;
    const displaced = code.displace(bytes, plan.address, kind);
    if ('refused' in displaced) why = displaced.refused;
    else if (displaced.hookRefused !== undefined) why = displaced.hookRefused;
    else ways.push(displaced);
  }
  if (ways.length === 0) return why;
  const ends = plan.returnStays === undefined ? undefined : planExits(plan, plan.returnStays, bytes, ways, code, facts);
  return typeof ends === 'string' ? ends : { code: bytes, ways, ends };
}
