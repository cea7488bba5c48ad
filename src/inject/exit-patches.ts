import type { Displaced, FunctionExit, Hop, ProbeCode, RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { mark, markBytes, within } from './code-allocator.js';
import type { Patch } from './place-site.js';
import type { Piece, Write } from './ring.js';
import { exitFields, type Site } from './sites.js';

/** Patches that belong together, and the jump in between if they lead to one each. */
export interface Way<P> {
  readonly patches: readonly P[];
  readonly hop: Hop | undefined;
}

/** The first way whose jumps all reach the trampolines; else the first whose jumps all reach hops. */
export function chooseWay<P extends Displaced | FunctionExit>(
  ways: readonly (readonly P[])[],
  { patches, hop }: ProbeCode,
  room: Piece,
  near: Piece,
): Way<P> | undefined {
  const reach = (patch: P): number => patches.find(({ kind }) => kind === patch.kind)?.reach ?? 0;
  const direct = ways.find((all) => all.every((patch) => within(patch.start, room, reach(patch))));
  if (direct) return { patches: direct, hop: undefined };
  if (!hop || near.length === 0) return undefined;
  // The hop's own jump, and the trampoline's way back.
  const farthest = Math.max(...patches.map((patch) => patch.reach));
  const isHopped = (patch: P): boolean =>
    patch.kind === 'near' && within(patch.start, near, reach(patch)) && within(patch.start, room, farthest);
  const hopped = ways.find((all) => all.every(isHopped));
  return hopped && { patches: hopped, hop };
}

interface ExitsToPlace {
  readonly site: Site;
  readonly ends: Way<FunctionExit>;
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
  ends: { patches: ends, hop },
  exitAt,
  code,
  geometry,
  take,
  takeHop,
}: ExitsToPlace): { readonly writes: readonly Write[]; readonly patches: readonly Patch[] } | undefined {
  const writes: Write[] = [];
  const jumps: Patch[] = [];
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
    jumps.push({ site, address: end.start, part: 'exit', bytes: code.patch(end, hopAt ?? at), original });
  }
  return { writes, patches: jumps };
}
