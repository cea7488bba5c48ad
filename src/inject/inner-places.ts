import type { Addr } from '../base/addr.js';
import { firstWhere } from '../base/search.js';
import type { ReadPlan } from '../probes/index.js';
import type { Piece } from './ring.js';

const near = 'another probe stops in the code that a patch would replace';
const taken = 'the patch of another probe is there';

/** A probe that may be served by a patch. */
interface Patched {
  readonly index: number;
  readonly plan: ReadPlan;
  /** Bytes whose first is patched. */
  readonly low: Addr;
  readonly high: bigint;
}

/**
 * Refuses probes until all that are left agree: patches do not overlap, and no probe stops in the middle of one. Of
 * places that belong together either all are patched, or none is. `refused` gets the reasons.
 * @param replaced the bytes that the patch of a probe replaces
 */
export function refuseUntilAgreed(
  plans: readonly ReadPlan[],
  replaced: (index: number) => Piece | undefined,
  refused: Map<number, string>,
): void {
  if (!plans.some(({ inside }) => inside)) return;
  for (;;) {
    const before = refused.size;
    refuseGroups(plans, refused);
    refuseAroundStops(plans, replaced, refused);
    refuseOverlaps(plans, replaced, refused);
    if (refused.size === before) return;
  }
}

function refuseGroups(plans: readonly ReadPlan[], refused: Map<number, string>): void {
  const reasons = new Map<number, string>();
  for (const [index, why] of refused) {
    for (const group of plans[index]?.inside?.groups ?? []) if (!reasons.has(group)) reasons.set(group, why);
  }
  for (const [index, { inside }] of plans.entries()) {
    if (refused.has(index)) continue;
    const group = inside?.groups.find((each) => reasons.has(each));
    if (group !== undefined) refused.set(index, `of where it begins and ends: ${plainly(reasons.get(group) ?? '')}`);
  }
}

function plainly(why: string): string {
  return why.replace(/^(of where it begins and ends: )+/, '');
}

function refuseAroundStops(
  plans: readonly ReadPlan[],
  replaced: (index: number) => Piece | undefined,
  refused: Map<number, string>,
): void {
  const stops = [...refused.keys()].flatMap((index) => plans[index]?.address ?? []).sort((a, b) => (a < b ? -1 : 1));
  for (const { index, plan, low, high } of patchesOf(plans, replaced, refused)) {
    const first = firstWhere(stops.length, (each) => (stops[each] as Addr) >= low);
    const inside = stops.slice(first, first + 32).filter((address) => address < high && address !== plan.address);
    // An entry's own first instruction is run at its new place.
    if (inside.some((address) => plan.inside !== undefined || address > low)) refused.set(index, near);
  }
}

function refuseOverlaps(
  plans: readonly ReadPlan[],
  replaced: (index: number) => Piece | undefined,
  refused: Map<number, string>,
): void {
  // Entries were there first: a place inside a function gives way to them.
  const patches = [...patchesOf(plans, replaced, refused)];
  patches.sort((a, b) => (a.low < b.low ? -1 : a.low > b.low ? 1 : isInside(a) - isInside(b)));
  let last: Patched | undefined;
  for (const patch of patches) {
    if (last && patch.low < last.high) {
      const loser = isInside(patch) ? patch : last;
      refused.set(loser.index, taken);
      if (loser === patch) continue;
    }
    last = patch;
  }
}

function isInside({ plan }: Patched): number {
  return plan.inside ? 1 : 0;
}

function* patchesOf(
  plans: readonly ReadPlan[],
  replaced: (index: number) => Piece | undefined,
  refused: ReadonlyMap<number, string>,
): Generator<Patched> {
  for (const [index, plan] of plans.entries()) {
    const piece = refused.has(index) ? undefined : replaced(index);
    if (piece) yield { index, plan, low: piece.address, high: piece.address + BigInt(piece.length) };
  }
}
