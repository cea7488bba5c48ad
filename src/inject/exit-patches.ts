import type { FunctionExit, Hop, ProbeCode, RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { type Objection, objectionTo, type Subject } from '../proof/index.js';
import { mark, markBytes, within } from './code-allocator.js';
import type { Patch } from './place-site.js';
import type { Piece, Write } from './ring.js';
import { exitFields, type Site } from './sites.js';

/**
 * The ways to patch all exits of a function whose return address must stay unchanged. A tail jump's return is hooked:
 * only the jump's target could notice.
 * @param unhookable why the return address must stay
 * @param taken ways to patch its entry
 * @returns why there is none
 */
export function planExits(
  subject: Subject,
  unhookable: Objection,
  bytes: Uint8Array,
  taken: readonly { readonly length: number }[],
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
  const from = Math.max(...taken.map(({ length }) => length));
  const ways: (readonly FunctionExit[])[] = [];
  let why = 'no patch is known for this architecture';
  for (const { kind } of probeCode.patches) {
    if (kind === 'far' && !plan.scratchIsFree) continue;
    const inRegisters = (target: Addr): boolean => facts.inRegisters(target);
    const ends = probeCode.ends(bytes, plan.address, { kind, from, inRegisters });
    if ('refused' in ends) why = ends.refused;
    else {
      const found = firstObjection(subject, ends);
      if (found) why = found.why;
      else ways.push(ends);
    }
  }
  return ways.length === 0 ? because(why) : ways;
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

export interface ChosenExits {
  readonly ends: readonly FunctionExit[];
  readonly hop: Hop | undefined;
}

/** The first way whose jumps all reach the trampolines; else the first way whose jumps all reach hops. */
export function chooseExits(
  ways: readonly (readonly FunctionExit[])[],
  code: ProbeCode,
  room: Piece,
  near: Piece,
): ChosenExits | undefined {
  const reach = (end: FunctionExit): number => code.patches.find(({ kind }) => kind === end.kind)?.reach ?? 0;
  const direct = ways.find((ends) => ends.every((end) => within(end.start, room, reach(end))));
  if (direct) return { ends: direct, hop: undefined };
  const { hop } = code;
  const isHopped = (end: FunctionExit): boolean => end.kind === 'near' && within(end.start, near, reach(end));
  const hopped = hop && near.length > 0 ? ways.find((ends) => ends.every(isHopped)) : undefined;
  return hopped && { ends: hopped, hop };
}

interface ExitsToPlace {
  readonly site: Site;
  readonly ends: ChosenExits;
  /** The exit trampoline for tail jumps. */
  readonly exitAt: Addr | undefined;
  readonly code: ProbeCode;
  readonly geometry: RingGeometry;
  readonly take: (length: number) => Addr | undefined;
  readonly takeHop: (length: number) => Addr | undefined;
}

/** The trampolines of a function's exits, and the jumps to them; undefined if there is no room. */
export function placeEnds({
  site,
  ends: { ends, hop },
  exitAt,
  code,
  geometry,
  take,
  takeHop,
}: ExitsToPlace): { readonly writes: readonly Write[]; readonly patches: readonly Patch[] } | undefined {
  const writes: Write[] = [];
  const patches: Patch[] = [];
  const common = { ring: geometry, fields: exitFields(site), extents: site.exit.extents, hopped: hop !== undefined };
  for (const end of ends) {
    if (end.tail !== undefined && exitAt === undefined) return undefined;
    const trampoline = (at: Addr): Uint8Array => code.end({ ...common, at, end, exit: exitAt });
    const markAt = take(markBytes + trampoline(exitAt ?? geometry.wait).length);
    const hopAt = hop && takeHop(hop.headBytes);
    if (markAt === undefined || (hop && hopAt === undefined)) return undefined;
    const at = addOffset(markAt, markBytes);
    writes.push(mark(markAt, end.start, geometry.control), { address: at, bytes: trampoline(at) });
    if (hop && hopAt !== undefined) writes.push({ address: hopAt, bytes: hop.head(hopAt, at) });
    const from = Number(end.start - site.plan.address);
    const original = site.code.slice(from, from + end.patchLength);
    patches.push({ site, address: end.start, part: 'exit', bytes: code.patch(end, hopAt ?? at), original });
  }
  return { writes, patches };
}
