import type { Displaced, DisplacedInside, FunctionExit, ProbeCode } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Refusal } from '../base/refusal.js';
import { firstWhere } from '../base/sorted.js';
import type { InnerPlace, ReadPlan } from '../probes/index.js';
import { type Objection, objectionTo, type Proof, proofOf, type Replaced, type Subject } from '../proof/index.js';
import { planExits } from './exit-patches.js';

/** How a function's code can be patched. */
export interface PatchableCode {
  /** The function, with padding behind it if it is short; or the window around a place inside. */
  readonly code: Uint8Array;
  /** Ways to patch its entry, the preferred one first. */
  readonly ways: readonly Displaced[];
  /** Ways to patch all its exits, if its return cannot be hooked. */
  readonly ends: readonly (readonly FunctionExit[])[] | undefined;
  /** Why its return is not observed, although it is asked for: its calls have no end. */
  readonly unseenReturn?: string;
  /** Ways to patch a place inside a function; then there are no others. */
  readonly inside?: readonly DisplacedInside[];
  /** Why all that is allowed. */
  readonly proof: Proof;
}

/** Or why it cannot be patched. */
export type PatchVerdict = PatchableCode | Objection;

export function isObjection(verdict: PatchVerdict): verdict is Objection {
  return 'why' in verdict;
}

/**
 * Asks all that must be proven before the code of every probe is changed; results have the probes' indices. It decodes
 * each function completely, so it takes a while.
 */
export function lookAtCode(
  plans: readonly ReadPlan[],
  bytesAt: (plan: ReadPlan) => Uint8Array | undefined,
  probeCode: ProbeCode,
  known: Pick<Subject, 'facts' | 'entries'>,
): readonly PatchVerdict[] {
  const stopsIn = stopsInside(plans);
  return plans.map((plan) => look({ plan, probeCode, ...known, stopsIn }, bytesAt(plan)));
}

function stopsInside(plans: readonly ReadPlan[]): Subject['stopsIn'] {
  const stops = plans
    .flatMap(({ address, needsStop }) => (needsStop === undefined ? [] : [address]))
    .sort((a, b) => (a < b ? -1 : 1));
  return ({ address, length }) => {
    const next = stops[firstWhere(stops.length, (index) => (stops[index] as Addr) > address)];
    return next !== undefined && next < address + BigInt(length);
  };
}

const noPatch: Objection = { question: 'movable', why: 'no patch is known for this architecture' };

function look(subject: Subject, bytes: Uint8Array | undefined): PatchVerdict {
  const { plan, probeCode } = subject;
  const none = objectionTo('probe', subject, { address: plan.address, length: 0 });
  if (none) return none;
  if (!bytes) return { question: 'code', why: 'its code is not in the ELF' };
  if (plan.inside) return lookInside(subject, plan.inside, bytes);
  const ways: Displaced[] = [];
  let objection = noPatch;
  for (const { kind } of probeCode.patches) {
    if (kind === 'far' && !plan.scratchIsFree && !probeCode.entryIsPatchable?.(bytes)) continue;
    const displaced = probeCode.displace(bytes, plan.address, kind);
    const found = 'refused' in displaced ? immovable(displaced) : objectionTo('patch', subject, replacedBy(displaced));
    if (found) objection = found;
    else if (!('refused' in displaced)) ways.push(displaced);
  }
  const [first] = ways;
  if (!first) return objection;
  if (!plan.seesReturn) return { code: bytes, ways, ends: undefined, proof: proofOf('entry') };
  // A hook would stay on the stack for good, and cut the stacks of who comes later.
  if (subject.facts?.neverReturns(plan.address)) return { code: bytes, ways, ends: [[]], proof: proofOf('entry') };
  const unhookable = objectionTo('hook', subject, replacedBy(first));
  if (!unhookable) return { code: bytes, ways, ends: undefined, proof: proofOf('hook') };
  const ends = planExits(subject, unhookable, bytes.subarray(0, plan.codeSize), ways);
  if (!('why' in ends)) return { code: bytes, ways, ends, proof: proofOf('exits', unhookable) };
  if (!plan.entryIsEnough) return ends;
  return { code: bytes, ways, ends: undefined, unseenReturn: ends.why, proof: proofOf('entry', ends) };
}

function immovable({ refused }: Refusal): Objection {
  return { question: 'movable', why: refused };
}

function replacedBy(displaced: Displaced): Replaced {
  const { start, length, patchLength } = displaced;
  return { address: start, length: Math.max(length, patchLength), by: displaced };
}

function lookInside(subject: Subject, { window }: InnerPlace, bytes: Uint8Array): PatchVerdict {
  const { probeCode, plan } = subject;
  const { address, entryRegisters, scratchIsFree } = plan;
  const ways: DisplacedInside[] = [];
  let objection = noPatch;
  for (const { kind } of probeCode.patches) {
    // What is read must not be destroyed.
    const isFree = scratchIsFree && !entryRegisters.includes(window.free ?? '');
    const free = isFree ? window.free : undefined;
    const displaced = probeCode.displaceInside(bytes, window.address, Number(address - window.address), { kind, free });
    if ('refused' in displaced) objection = kind === 'near' ? immovable(displaced) : objection;
    else {
      const found = objectionTo('patch', subject, replacedBy(displaced));
      if (found) objection = found;
      else ways.push(displaced);
    }
  }
  return ways.length === 0 ? objection : { code: bytes, ways, ends: undefined, inside: ways, proof: proofOf('inside') };
}
