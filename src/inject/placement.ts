import {
  type Counter,
  type Displaced,
  type EntryTrampoline,
  type FrameNotes,
  type HookFrame,
  type Hop,
  hookMark,
  hookMarkBytes,
  type ProbeCode,
  type RingGeometry,
  wordsOf,
} from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { codeOf, type InnerPlace, type PlannedCount } from '../probes/index.js';
import { type Allocator, alignment, allocator, mark, markBytes, within } from './code-allocator.js';
import { type ChosenExits, chooseExits, placeEnds } from './exit-patches.js';
import { refuseUntilAgreed } from './inner-places.js';
import { outerPlan } from './record-format.js';
import type { Piece, Write } from './ring.js';
import { bytesReplaced, counterBytes, entryFields, exitFields, type Site } from './sites.js';

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

interface CodeRoom {
  /** Where trampolines are placed. */
  readonly code: Piece;
  /** Small pieces near the program's text, for hops: zero bytes that are executable. */
  readonly near: readonly Piece[];
}

/** Everything that is written to arm the sites: the code first, then, after that was read back, the patches. */
export interface Placement {
  readonly code: readonly Write[];
  readonly patches: readonly Patch[];
  readonly trampolines: readonly Trampoline[];
  /** Where code of ours is. */
  readonly ranges: readonly Piece[];
  readonly breakpoint: Addr;
  readonly geometry: RingGeometry;
  /** Exit trampolines by the index of their sites. */
  readonly exits: ReadonlyMap<number, Addr>;
  /** By exit trampoline's address: the return address that it stands for. */
  readonly hooks: ReadonlyMap<bigint, HookFrame>;
  /** Sites for which there was no room, or no jump that reaches. */
  readonly refused: ReadonlyMap<number, string>;
  /** By index: a site's counters, as offsets from the place of the first counter. */
  readonly counters: ReadonlyMap<number, number>;
  /** Where pointers are noted. */
  readonly notes: FrameNotes;
}

interface PlaceOptions {
  readonly sites: readonly Site[];
  readonly code: ProbeCode;
  readonly room: CodeRoom;
  readonly geometry: Omit<RingGeometry, 'wait'>;
  /** Where the lists for `controlBlock.outerPlan` are. */
  readonly lists: Piece;
  /** Where the counters of sites without records are. */
  readonly counters: Piece;
  /** Where places inside functions note pointers. */
  readonly notes: FrameNotes;
  readonly nests: boolean;
}

/** As far as code was placed there. Behind it, open calls may be led to return, which then are in no code of ours. */
function usedOf({ address: start, length }: Piece, writes: readonly Write[]): readonly Piece[] {
  const inside = writes.filter(({ address }) => address >= start && address < addOffset(start, length));
  const ends = inside.map(({ address, bytes }) => Number(address - start) + bytes.length);
  return ends.length === 0 ? [] : [{ address: start, length: Math.max(...ends) }];
}

/** Places the trampolines and builds every byte of them. Their order in memory is the order of the sites. */
export function placeSites(options: PlaceOptions): Placement & { readonly lists: readonly Write[] } {
  const { sites, code, room, notes } = options;
  const near = room.near[0] ?? { address: room.code.address, length: 0 };
  const waitAt = waitAddress(options);
  const wait = code.wait(waitAt, options.geometry, counterOf(sites));
  const codeFree = { address: room.code.address, length: Number(waitAt - room.code.address) };
  const take = allocator(codeFree);
  const geometry = { ...options.geometry, wait: waitAt };
  const memory: Memory = {
    ...{ code, geometry, take, notes, takeHop: allocator(near), takeList: allocator(options.lists) },
    takeCounters: allocator(options.counters),
    nests: options.nests,
  };
  const refused = new Map<number, string>();
  const all: PlacedSite[] = [];
  for (const site of sites) {
    const way = chooseWay(site, options, near);
    const placed = way ? placeSite(site, way, { memory, near, room: room.code }) : outOfReach('its entry');
    if (typeof placed === 'string') refused.set(site.index, placed);
    else all.push(placed);
  }
  refuseDisagreeing(sites, refused);
  const kept = all.filter(({ trampoline }) => !refused.has(trampoline.site.index));
  const written = [{ address: waitAt, bytes: wait.code }, ...all.flatMap(({ writes }) => writes)];
  return {
    code: written,
    patches: kept.flatMap(({ patches }) => patches),
    trampolines: kept.map(({ trampoline }) => trampoline),
    ranges: [room.code, ...usedOf(near, written)],
    breakpoint: wait.breakpoint,
    geometry,
    exits: new Map(all.flatMap(({ trampoline: { site, exit } }) => (exit ? [[site.index, exit.address]] : []))),
    hooks: new Map(all.flatMap(({ trampoline: { exit }, hook }) => (exit && hook ? [[exit.address, hook]] : []))),
    refused,
    lists: all.flatMap(({ list }) => list ?? []),
    counters: new Map(
      all.flatMap(({ trampoline: { site }, counter }) =>
        counter === undefined ? [] : [[site.index, Number(counter - options.counters.address)]],
      ),
    ),
    notes,
  };
}

/**
 * Where the wait routine goes, which has the breakpoint. An emulator runs a page with a breakpoint instruction by
 * instruction, so it lies as far from the trampolines as possible.
 */
function waitAddress({ code, room, geometry, sites }: PlaceOptions): Addr {
  const { length } = code.wait(room.code.address, geometry, counterOf(sites)).code;
  const offset = Math.floor((room.code.length - length) / alignment) * alignment;
  if (offset < 0) throw new RangeError('no room for the wait routine');
  return addOffset(room.code.address, offset);
}

/** The counter that records have their times from; undefined if none has one. */
function counterOf(sites: readonly Site[]): string | undefined {
  for (const { entry, exit } of sites) {
    for (const { from } of [...entry.fields, ...exit.fields]) if (from.kind === 'time') return from.counter;
  }
  return undefined;
}

/** A patch, and the jump in between if it leads to one. */
interface Way {
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

interface Places {
  readonly memory: Memory;
  /** Where hops go. */
  readonly near: Piece;
  /** Where trampolines go. */
  readonly room: Piece;
}

/** What one probe needs in the target. */
interface PlacedSite {
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
const outOfReach = (what: string): string => `the trampolines are out of reach of a jump from ${what}`;

/** The trampolines of a probe and the jumps to them; or why there are none. */
function placeSite(site: Site, way: Way, places: Places): PlacedSite | string {
  const { memory } = places;
  const { plan } = site;
  if (plan.inside) return placeInner(site, plan.inside, way, memory);
  const ends = site.ends && chooseExits(site.ends, memory.code, places.room, places.near);
  if (site.ends && !ends) return outOfReach('its ends');
  const nested = memory.nests && plan.outer ? { self: plan.outer.pointer, list: outerPlan(plan.outer) } : undefined;
  const listAt = nested && memory.takeList(nested.list.length);
  const nesting = nested && listAt !== undefined ? { self: nested.self, plan: listAt } : undefined;
  const exit = placeExit(site, ends, nesting !== undefined, memory);
  const placedEnds = ends && placeEnds({ ...memory, site, ends, exitAt: exit?.write?.address });
  const counter = site.counters > 0 ? memory.takeCounters(counterBytes * site.counters) : undefined;
  const entry = placeEntry({ site, way, exit, nesting, counter }, memory);
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
function placeExit(site: Site, ends: ChosenExits | undefined, nests: boolean, memory: Memory): PlacedExit | undefined {
  const { plan } = site;
  const { code, take } = memory;
  const hooked = plan.seesReturn && !ends;
  if (!hooked && !ends?.ends.some(({ tail }) => tail !== undefined)) return undefined;
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

interface EntryToPlace {
  readonly site: Site;
  readonly way: Way;
  readonly exit: PlacedExit | undefined;
  readonly nesting: EntryTrampoline['nesting'];
  readonly counter: Addr | undefined;
}

/** The entry trampoline, its hop if it is far away, and the patch that leads to them. */
function placeEntry(
  { site, way, exit, nesting, counter }: EntryToPlace,
  { code, geometry, take, takeHop }: Memory,
): { readonly writes: readonly Write[]; readonly patch: Patch; readonly trampoline: Trampoline } | string {
  const { plan } = site;
  const counts = site.counters > 0;
  const { displaced, hop } = way;
  const hopAt = hop && takeHop(hop.bytes(displaced));
  if (hop && hopAt === undefined) return noHop;
  const start = addOffset(take.next, markBytes);
  const bytes = code.entry({
    at: start,
    ring: geometry,
    fields: counts ? [] : entryFields(site),
    displaced,
    when: counts ? [] : plan.when,
    hook: exit?.hooked ? { exit: exit.write?.address ?? start, keep: plan.exit.keep } : undefined,
    nesting,
    outerCopy: counts ? undefined : site.entry.outerCopy,
    extents: counts ? [] : site.entry.extents,
    counters: countersAt(counter ?? start, plan.counts),
    via: hopAt === undefined ? 'patch' : { hop: hopAt },
  });
  const markAt = take(markBytes + bytes.length);
  if (markAt === undefined) return codeIsFull;
  const { trampoline, writes } = leadTo({
    site,
    displaced,
    hop,
    hopAt,
    marked: mark(markAt, plan.address, geometry.control),
    bytes,
  });
  const patch: Patch = {
    ...{ site, address: plan.address, part: 'entry', bytes: code.patch(displaced, hopAt ?? start) },
    original: site.code.subarray(0, displaced.patchLength),
  };
  return { writes, patch, trampoline };
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

interface Lead {
  readonly site: Site;
  readonly displaced: Displaced;
  readonly hop: Hop | undefined;
  readonly hopAt: Addr | undefined;
  /** The mark before the trampoline. */
  readonly marked: Write;
  readonly bytes: Uint8Array;
}

/** A trampoline with its mark before it, and the hop on the way to it. */
function leadTo({ site, displaced, hop, hopAt, marked, bytes }: Lead): Pick<PlacedSite, 'writes' | 'trampoline'> {
  const entry = { address: addOffset(marked.address, markBytes), bytes };
  const hopCode =
    hop && hopAt !== undefined ? { address: hopAt, bytes: hop.encode(displaced, hopAt, entry.address) } : undefined;
  return {
    writes: [...(hopCode ? [hopCode] : []), marked, entry],
    trampoline: { site, displaced, hop: hopCode, entry, exit: undefined, ends: [] },
  };
}

/** Of the probes that lie in each other's way, and of the groups that need each other, refuses those that lose. */
function refuseDisagreeing(sites: readonly Site[], refused: Map<number, string>): void {
  const lost = new Map<number, string>();
  for (const [at, { index }] of sites.entries()) {
    const why = refused.get(index);
    if (why !== undefined) lost.set(at, why);
  }
  const plans = sites.map(({ plan }) => plan);
  refuseUntilAgreed(plans, (at) => bytesReplaced(sites[at]), lost);
  for (const [at, why] of lost) refused.set(sites[at]?.index ?? -1, why);
}

/** The trampoline of a place inside a function; or why there is no room. */
function placeInner(
  site: Site,
  { taken, noted }: InnerPlace,
  { displaced: chosen, hop }: Way,
  { code, geometry, notes, take, takeHop }: Memory,
): PlacedSite | string {
  const displaced = site.inside?.find(({ kind }) => kind === chosen.kind);
  if (!displaced) return 'no patch is known for this architecture';
  const hopAt = hop && takeHop(hop.bytes(displaced));
  if (hop && hopAt === undefined) return noHop;
  const start = addOffset(take.next, markBytes);
  const via = hopAt === undefined ? 'patch' : ({ hop: hopAt } as const);
  const fields = entryFields(site);
  const { code: bytes, place } = code.inner({ at: start, ring: geometry, fields, displaced, notes, taken, noted, via });
  const markAt = take(markBytes + bytes.length);
  if (markAt === undefined) return codeIsFull;
  const patch: Patch = {
    site,
    address: displaced.start,
    part: 'inside',
    goesOn: addOffset(start, place),
    bytes: code.patch(displaced, hopAt ?? start),
    original: site.code.subarray(0, displaced.patchLength),
  };
  return {
    ...leadTo({ site, displaced, hop, hopAt, marked: mark(markAt, displaced.start, geometry.control), bytes }),
    patches: [patch],
  };
}

/** The first way whose jump reaches the trampolines; else the first whose jump reaches a hop. */
function chooseWay(site: Site, { code, room }: PlaceOptions, near: Piece): Way | undefined {
  const reach = ({ kind }: Displaced): number => code.patches.find((patch) => patch.kind === kind)?.reach ?? 0;
  const start = codeOf(site.plan).address;
  const direct = site.ways.find((displaced) => within(start, room.code, reach(displaced)));
  if (direct) return { displaced: direct, hop: undefined };
  const { hop } = code;
  // The hop's own jump, and the trampoline's way back.
  const farthest = Math.max(...code.patches.map((patch) => patch.reach));
  if (!hop || near.length === 0 || !within(start, room.code, farthest)) return undefined;
  const hopped = site.ways.find((displaced) => displaced.kind === 'near' && within(start, near, reach(displaced)));
  return hopped && { displaced: hopped, hop };
}
