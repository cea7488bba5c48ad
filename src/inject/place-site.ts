import {
  type Counter,
  type Displaced,
  type EntryTrampoline,
  type FrameNotes,
  type FunctionExit,
  type HookFrame,
  type Hop,
  hookMark,
  hookMarkBytes,
  type ProbeCode,
  type RingGeometry,
  wordsOf,
} from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import type { InnerPlace, PlannedCount } from '../probes/index.js';
import { type Allocator, mark, markBytes, within } from './code-allocator.js';
import { outerPlan } from './record-format.js';
import type { Piece, Write } from './ring.js';
import { counterBytes, entryFields, exitFields, type Site } from './sites.js';

/** Patches that belong together, and the jump in between if they lead to one each. */
interface Way<P> {
  readonly patches: readonly P[];
  readonly hop: Hop | undefined;
}

/** The first way whose jumps all reach the trampolines; else the first whose jumps all reach hops. */
function chooseWay<P extends Displaced | FunctionExit>(
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
function placeEnds({
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

/** What a patch belongs to. */
export interface Patched {
  readonly plan: Pick<Site['plan'], 'name' | 'address'>;
}

/** The bytes of a patch, and the bytes that it replaces. */
export interface Patch<T extends Patched = Site> {
  readonly site: T;
  readonly address: Addr;
  /** At the function's start, at one of its exits, or elsewhere inside. */
  readonly part: 'entry' | 'exit' | 'inside';
  /** Where a hart goes on that is at the probe's own address, if the patch begins before it. */
  readonly goesOn?: Addr;
  readonly bytes: Uint8Array;
  readonly original: Uint8Array;
}

/** The layout for one probe. */
export interface Trampoline {
  readonly site: Site;
  readonly displaced: Displaced;
  /** The jump that its patch leads to, if the trampoline is out of the patch's reach. */
  readonly hop: Write | undefined;
  readonly entry: Write;
  /** If the return is hooked. */
  readonly exit: Write | undefined;
  /** Code for the function's exits, if these are patched. */
  readonly ends: readonly Write[];
}

/** A patch, and the jump in between if it leads to one. */
interface Jump {
  readonly displaced: Displaced;
  readonly hop: Hop | undefined;
}

/** The memory that trampolines are placed in, and what their code refers to. */
interface Memory {
  readonly code: ProbeCode;
  readonly geometry: RingGeometry;
  readonly take: Allocator;
  readonly takeHop: Allocator;
  readonly takeList: Allocator;
  readonly takeCounters: Allocator;
  readonly notes: FrameNotes;
  readonly nests: boolean;
}

export interface Places {
  readonly memory: Memory;
  /** Where hops go. */
  readonly near: Piece;
  /** Where trampolines go. */
  readonly room: Piece;
}

/** What one probe needs in the target. */
export interface PlacedSite {
  readonly writes: readonly Write[];
  readonly patches: readonly Patch[];
  readonly trampoline: Trampoline;
  readonly hook?: HookFrame | undefined;
  readonly list?: Write | undefined;
  readonly counter?: Addr | undefined;
}

/** Why a probe has no trampoline where others have theirs. */
export const codeIsFull = 'the scratch memory for code is full';
const noHop = 'there is no room near its code for a jump to its trampoline';
/** Ends the reason where a longer jump would reach them. */
export const callerKeeps =
  'a longer jump takes a register in which its caller may keep a value (gcc: -fipa-ra, from -O2 on)';
const outOfReach = ({ plan }: Site, what: string): string =>
  `the trampolines are out of reach of a jump from ${what}${plan.scratchIsFree ? '' : `, and ${callerKeeps}`}`;

/** The trampolines of a probe and the jumps to them; or why there are none. */
export function placeSite(site: Site, places: Places): PlacedSite | string {
  const { memory } = places;
  const { plan } = site;
  const choose = <P extends Displaced | FunctionExit>(ways: readonly (readonly P[])[]): Way<P> | undefined =>
    chooseWay(ways, memory.code, places.room, places.near);
  const chosen = choose(site.ways.map((displaced) => [displaced]));
  const [displaced] = chosen?.patches ?? [];
  if (!chosen || !displaced) return outOfReach(site, 'its entry');
  const way = { displaced, hop: chosen.hop };
  if (plan.inside) return placeInner(site, plan.inside, way, memory);
  const ends = site.ends && choose(site.ends);
  if (site.ends && !ends) return outOfReach(site, 'its ends');
  const nested = memory.nests && plan.outer ? { self: plan.outer.pointer, list: outerPlan(plan.outer) } : undefined;
  const listAt = nested && memory.takeList(nested.list.length);
  const nesting = nested && listAt !== undefined ? { self: nested.self, plan: listAt } : undefined;
  const exit = placeExit(site, ends, nesting !== undefined, memory);
  const placedEnds = ends && placeEnds({ ...memory, site, ends, exitAt: exit?.write?.address });
  const counter = site.counters > 0 ? memory.takeCounters(counterBytes * site.counters) : undefined;
  const entry = placeEntry({ site, exit, nesting, counter }, way, memory);
  if (typeof entry === 'string') return entry;
  if ((ends && !placedEnds) || (exit && !exit.write)) return codeIsFull;
  return {
    writes: [...entry.writes, ...(exit?.write ? [exit.mark, exit.write] : []), ...(placedEnds?.writes ?? [])],
    patches: [entry.patch, ...(placedEnds?.patches ?? [])],
    trampoline: { ...entry.trampoline, exit: exit?.write, ends: placedEnds?.writes ?? [] },
    hook: exit?.hook,
    list: nested && listAt !== undefined ? { address: listAt, bytes: nested.list } : undefined,
    counter,
  };
}

interface PlacedExit {
  /** Before it. */
  readonly mark: Write;
  /** Undefined if there was no room. */
  readonly write: Write | undefined;
  /** The function's return is hooked; else only its tail jumps return through this code. */
  readonly hooked: boolean;
  readonly hook: HookFrame;
}

/** The exit trampoline of a function whose return, or whose tail jumps' return, is hooked; undefined for others. */
function placeExit(
  site: Site,
  ends: Way<FunctionExit> | undefined,
  nests: boolean,
  memory: Memory,
): PlacedExit | undefined {
  const { plan } = site;
  const { code, take } = memory;
  const hooked = plan.seesReturn && !ends;
  if (!hooked && !ends?.patches.some(({ tail }) => tail !== undefined)) return undefined;
  const { keep } = plan.exit;
  const markAt = take.next;
  const at = addOffset(markAt, hookMarkBytes);
  const bytes = code.exit({
    at,
    ring: memory.geometry,
    fields: exitFields(site),
    extents: site.exit.extents,
    keep,
    nesting: nests,
  });
  const hasRoom = take(hookMarkBytes + bytes.length) !== undefined;
  const hook = { offset: code.hookedReturnOffset(keep.length, nests), size: code.hookFrameBytes(keep.length, nests) };
  const mark = { address: markAt, bytes: hookMark(hook) };
  return { mark, write: hasRoom ? { address: at, bytes } : undefined, hooked, hook };
}

interface EntryParts {
  readonly site: Site;
  readonly exit: PlacedExit | undefined;
  readonly nesting: EntryTrampoline['nesting'];
  readonly counter: Addr | undefined;
}

/** The entry trampoline, its hop if it is far away, and the patch that leads to them. */
function placeEntry({ site, exit, nesting, counter }: EntryParts, way: Jump, memory: Memory): Lead | string {
  const { plan } = site;
  const counts = site.counters > 0;
  const { displaced } = way;
  return leadTo(site, way, memory, (start, via) => ({
    code: memory.code.entry({
      at: start,
      ring: memory.geometry,
      fields: counts ? [] : entryFields(site),
      displaced,
      when: counts ? [] : plan.when,
      hook: exit?.hooked ? { exit: exit.write?.address ?? start, keep: plan.exit.keep } : undefined,
      nesting,
      outerCopy: counts ? undefined : site.entry.outerCopy,
      extents: counts ? [] : site.entry.extents,
      counters: countersAt(counter ?? start, plan.counts),
      via,
    }),
  }));
}

/** A probe's counters, one behind the other. */
function countersAt(start: Addr, counts: readonly PlannedCount[]): Counter[] {
  let at = start;
  return counts.map((count) => {
    const counter = { ...count, at };
    at = addOffset(at, counterBytes * wordsOf(count));
    return counter;
  });
}

/** A trampoline with its mark before it, the hop on the way to it, and the patch that leads to them. */
interface Lead {
  readonly writes: readonly Write[];
  readonly patch: Patch;
  readonly trampoline: Trampoline;
}

/** `make`: the code, and for a place inside, where in it a hart goes on that is at that place. */
function leadTo(
  site: Site,
  { displaced, hop }: Jump,
  { code, geometry, take, takeHop }: Memory,
  make: (start: Addr, via: EntryTrampoline['via']) => { readonly code: Uint8Array; readonly place?: number },
): Lead | string {
  const hopAt = hop && takeHop(hop.bytes(displaced));
  if (hop && hopAt === undefined) return noHop;
  const start = addOffset(take.next, markBytes);
  const { code: bytes, place } = make(start, hopAt === undefined ? 'patch' : { hop: hopAt });
  const markAt = take(markBytes + bytes.length);
  if (markAt === undefined) return codeIsFull;
  const entry = { address: start, bytes };
  const hopCode =
    hop && hopAt !== undefined ? { address: hopAt, bytes: hop.encode(displaced, hopAt, start) } : undefined;
  // The code of a place inside begins with the patch.
  const from = place === undefined ? Number(displaced.start - site.plan.address) : 0;
  const patch: Patch = {
    site,
    address: displaced.start,
    part: place === undefined ? 'entry' : 'inside',
    ...(place !== undefined && { goesOn: addOffset(start, place) }),
    bytes: code.patch(displaced, hopAt ?? start),
    original: site.code.subarray(from, from + displaced.patchLength),
  };
  return {
    writes: [...(hopCode ? [hopCode] : []), mark(markAt, displaced.start, geometry.control), entry],
    patch,
    trampoline: { site, displaced, hop: hopCode, entry, exit: undefined, ends: [] },
  };
}

/** The trampoline of a place inside a function; or why there is no room. */
function placeInner(
  site: Site,
  { taken, noted }: InnerPlace,
  { displaced: chosen, hop }: Jump,
  memory: Memory,
): PlacedSite | string {
  const displaced = site.inside?.find(({ kind }) => kind === chosen.kind);
  if (!displaced) return 'no patch is known for this architecture';
  const { code, geometry: ring, notes } = memory;
  const fields = entryFields(site);
  const lead = leadTo(site, { displaced, hop }, memory, (at, via) =>
    code.inner({ at, ring, fields, displaced, notes, taken, noted, via }),
  );
  return typeof lead === 'string' ? lead : { ...lead, patches: [lead.patch] };
}
