import type { Displaced, DisplacedInside, FunctionExit, ProbeCode } from '../../arch/index.js';
import type { Addr } from '../../base/addr.js';
import type { CodeFacts, InnerPlace, ReadPlan } from '../../probes/index.js';
import { planExits } from './exit-patches.js';

/** How a function's code can be patched. */
export interface PatchableCode {
  /** The function, with padding behind it if it is short; or the window around a place inside. */
  readonly code: Uint8Array;
  /** Ways to patch its entry, the preferred one first. */
  readonly ways: readonly Displaced[];
  /** Ways to patch all its exits, if its return cannot be hooked. */
  readonly ends: readonly (readonly FunctionExit[])[] | undefined;
  /** Ways to patch a place inside a function; then there are no others. */
  readonly inside?: readonly DisplacedInside[];
}

/** Or why it cannot be patched. */
export type PatchVerdict = PatchableCode | string;

/**
 * Analyses the code of every probe; results have the probes' indices. It decodes each function completely, so it
 * takes a while.
 */
export function lookAtCode(
  plans: readonly ReadPlan[],
  bytesAt: (plan: ReadPlan) => Uint8Array | undefined,
  code: ProbeCode,
  facts: CodeFacts | undefined,
): readonly PatchVerdict[] {
  const stopsIn = stopsInside(plans);
  return plans.map((plan) => look(plan, stopsIn, bytesAt(plan), code, facts));
}

/** Whether a probe that needs a stop lies at an address or within this many bytes behind it. */
type StopsInside = (address: Addr, length: number) => boolean;

function stopsInside(plans: readonly ReadPlan[]): StopsInside {
  const stops = plans
    .flatMap(({ address, needsStop }) => (needsStop === undefined ? [] : [address]))
    .sort((a, b) => (a < b ? -1 : 1));
  return (address, length) => {
    let [low, high] = [0, stops.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((stops[middle] as Addr) > address) high = middle;
      else low = middle + 1;
    }
    const next = stops[low];
    return next !== undefined && next < address + BigInt(length);
  };
}

/**
 * A breakpoint inside a patch would stop in the middle of the jump. A breakpoint on a displaced instruction would
 * never stop.
 */
const stopInside = 'another probe stops in the code that a patch would replace';

function look(
  plan: ReadPlan,
  stopsIn: StopsInside,
  bytes: Uint8Array | undefined,
  code: ProbeCode,
  facts: CodeFacts | undefined,
): PatchVerdict {
  if (plan.needsStop !== undefined) return plan.needsStop;
  if (!bytes) return 'its code is not in the ELF';
  if (plan.inside) return lookInside(plan, plan.inside, bytes, code);
  const ways: Displaced[] = [];
  let why = 'no patch is known for this architecture';
  for (const { kind } of code.patches) {
    if (kind === 'far' && !plan.scratchIsFree && !code.entryIsPatchable?.(bytes)) continue;
    const displaced = code.displace(bytes, plan.address, kind);
    if ('refused' in displaced) why = displaced.refused;
    else if (displaced.hookRefused !== undefined) why = displaced.hookRefused;
    else if (stopsIn(plan.address, displaced.length)) why = stopInside;
    else ways.push(displaced);
  }
  if (ways.length === 0) return why;
  // Patched exits may be anywhere in the function.
  if (plan.returnStays !== undefined && stopsIn(plan.address, plan.codeSize)) return stopInside;
  const ends = planExits(plan, bytes.subarray(0, plan.codeSize), ways, code, facts);
  return typeof ends === 'string' ? ends : { code: bytes, ways, ends };
}

function lookInside(
  { address, entryRegisters, scratchIsFree }: ReadPlan,
  { window }: InnerPlace,
  bytes: Uint8Array,
  code: ProbeCode,
): PatchVerdict {
  const ways: DisplacedInside[] = [];
  let why = 'no patch is known for this architecture';
  for (const { kind } of code.patches) {
    // What is read must not be destroyed.
    const isFree = scratchIsFree && !entryRegisters.includes(window.free ?? '');
    const free = isFree ? window.free : undefined;
    const displaced = code.displaceInside(bytes, window.address, Number(address - window.address), { kind, free });
    if ('refused' in displaced) why = kind === 'near' ? displaced.refused : why;
    else ways.push(displaced);
  }
  return ways.length === 0 ? why : { code: bytes, ways, ends: undefined, inside: ways };
}
