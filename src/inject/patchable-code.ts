import type { Displaced, DisplacedInside, FunctionExit, PatchKind, ProbeCode } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { Refusal } from '../base/errors.js';
import { firstWhere } from '../base/search.js';
import type { InnerPlace, ReadPlan } from '../probes/index.js';
import { type Objection, objectionTo, type Proof, proofOf, type Replaced, type Subject } from '../proof/index.js';

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

/**
 * What can be made in any of the ways to patch, the preferred one first; or why not in the last one that was tried.
 * `make` gives undefined for a way that is out of the question.
 */
function patchWays<T extends object>(
  { patches }: ProbeCode,
  make: (kind: PatchKind) => T | Refusal | undefined,
  objection: (made: T) => Objection | undefined,
): readonly T[] | Objection {
  const ways: T[] = [];
  let last: Objection = { question: 'movable', why: 'no patch is known for this architecture' };
  for (const { kind } of patches) {
    const made = make(kind);
    if (made === undefined) continue;
    const found = 'refused' in made ? { question: 'movable', why: made.refused } : objection(made);
    if (found) last = found;
    else if (!('refused' in made)) ways.push(made);
  }
  return ways.length === 0 ? last : ways;
}

function look(subject: Subject, bytes: Uint8Array | undefined): PatchVerdict {
  const { plan, probeCode } = subject;
  const none = objectionTo('probe', subject, { address: plan.address, length: 0 });
  if (none) return none;
  if (!bytes) return { question: 'code', why: 'its code is not in the ELF' };
  if (plan.inside) return lookInside(subject, plan.inside, bytes);
  const ways = patchWays<Displaced>(
    probeCode,
    (kind) =>
      kind === 'far' && !plan.scratchIsFree && !probeCode.entryIsPatchable?.(bytes)
        ? undefined
        : probeCode.displace(bytes, plan.address, kind),
    (displaced) => objectionTo('patch', subject, replacedBy(displaced)),
  );
  if ('why' in ways) return ways;
  if (!plan.seesReturn) return { code: bytes, ways, ends: undefined, proof: proofOf('entry') };
  // A hook would stay on the stack for good, and cut the stacks of who comes later.
  if (subject.facts?.neverReturns(plan.address)) return { code: bytes, ways, ends: [[]], proof: proofOf('entry') };
  const unhookable = objectionTo('hook', subject, replacedBy(ways[0] as Displaced));
  if (!unhookable) return { code: bytes, ways, ends: undefined, proof: proofOf('hook') };
  const ends = planExits(subject, unhookable, bytes.subarray(0, plan.codeSize), ways);
  if (!('why' in ends)) return { code: bytes, ways, ends, proof: proofOf('exits', unhookable) };
  if (!plan.entryIsEnough) return ends;
  return { code: bytes, ways, ends: undefined, unseenReturn: ends.why, proof: proofOf('entry', ends) };
}

function replacedBy(displaced: Displaced): Replaced {
  const { start, length, patchLength } = displaced;
  return { address: start, length: Math.max(length, patchLength), by: displaced };
}

function lookInside(subject: Subject, { window }: InnerPlace, bytes: Uint8Array): PatchVerdict {
  const { probeCode, plan } = subject;
  const { address, entryRegisters, scratchIsFree } = plan;
  // What is read must not be destroyed.
  const isFree = scratchIsFree && !entryRegisters.includes(window.free ?? '');
  const free = isFree ? window.free : undefined;
  const ways = patchWays<DisplacedInside>(
    probeCode,
    (kind) => {
      const at = Number(address - window.address);
      const displaced = probeCode.displaceInside(bytes, window.address, at, { kind, free });
      return 'refused' in displaced && kind !== 'near' ? undefined : displaced;
    },
    (displaced) => objectionTo('patch', subject, replacedBy(displaced)),
  );
  return 'why' in ways ? ways : { code: bytes, ways, ends: undefined, inside: ways, proof: proofOf('inside') };
}

/**
 * The ways to patch all exits of a function whose return address must stay unchanged. A tail jump's return is hooked,
 * because only the jump's target could notice.
 * @param unhookable why the return address must stay
 * @param taken ways to patch its entry
 * @returns why there is none
 */
function planExits(
  subject: Subject,
  unhookable: Objection,
  bytes: Uint8Array,
  taken: readonly Pick<Displaced, 'start' | 'length'>[],
): readonly (readonly FunctionExit[])[] | Objection {
  const { plan, probeCode, facts, stopsIn } = subject;
  const because = (why: string): Objection => {
    return { question: unhookable.question, why: `${unhookable.why}, and its ends cannot be patched: ${why}` };
  };
  if (!facts) return because('the program changes its code as it runs');
  if (plan.exit.keep.length > 0 || plan.exit.reads.length > 0)
    return because('its return wants what it was called with');
  // Patched exits may be anywhere in the function.
  if (stopsIn({ address: plan.address, length: plan.codeSize })) return because('another probe stops in it');
  const entered = facts.enteredElsewhere(plan.address, plan.codeSize);
  if (entered !== undefined) return because(entered);
  const from = Math.max(...taken.map(({ start, length }) => Number(start - plan.address) + length));
  const inRegisters = (target: Addr): boolean => facts.inRegisters(target);
  const ways = patchWays<readonly FunctionExit[]>(
    probeCode,
    (kind) =>
      kind === 'far' && !plan.scratchIsFree
        ? undefined
        : probeCode.ends(bytes, plan.address, { kind, from, inRegisters }),
    (ends) => firstObjection(subject, ends),
  );
  return 'why' in ways ? because(ways.why) : ways;
}

function firstObjection(subject: Subject, ends: readonly FunctionExit[]): Objection | undefined {
  for (const end of ends) {
    const looks = end.tail === undefined ? undefined : subject.entries?.looksAtReturn(end.tail);
    if (looks !== undefined) return { question: 'return-address', why: looks };
    const found = objectionTo('patch', subject, { address: end.start, length: end.length, by: end });
    if (found) return found;
  }
  return undefined;
}
