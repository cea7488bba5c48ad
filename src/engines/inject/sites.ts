import {
  bucketCount,
  controlBlock,
  type Displaced,
  type FrameNotes,
  type Hop,
  type ProbeCode,
  type RingGeometry,
} from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import { codeOf, type InnerPlace, type ReadPlan } from '../../probes/index.js';
import type { HookFrame } from '../../unwind/index.js';
import { type Allocator, alignment, allocator, mark, markBytes, within } from './code-allocator.js';
import { chooseExits, placeEnds } from './exit-patches.js';
import { refuseUntilAgreed } from './inner-places.js';
import type { PatchableCode, PatchVerdict } from './patchable-code.js';
import {
  entryFormat,
  exitFormat,
  outerPlan,
  outerRoom,
  type RecordFormat,
  type RecordSources,
} from './record-format.js';
import type { Piece, Write } from './ring.js';

/** A probe that is served by trampolines. */
export interface Site extends PatchableCode {
  readonly plan: ReadPlan;
  /** Index in the plan. Its records carry `2 * index`, plus 1 at the exit. */
  readonly index: number;
  readonly entry: RecordFormat;
  readonly exit: RecordFormat;
  /** Number of counters in the target that it uses instead of records; 0: it writes records. */
  readonly counters: number;
}

export interface SitePlan {
  readonly sites: readonly Site[];
  /** Why a probe needs a stop, by its index among the candidates. */
  readonly refused: ReadonlyMap<number, string>;
  /** log2 of the bytes of the longest record. */
  readonly slotShift: number;
}

/** Longer records would leave a small ring without slots. */
const mostRecordBytes = 256;
const leastSlotShift = 6;

/**
 * Decides for every probe whether its reads can be compiled too; changes nothing. `looks` are the results of
 * {@link lookAtCode}.
 */
export function planSites(
  plans: readonly ReadPlan[],
  looks: readonly PatchVerdict[],
  sources: RecordSources,
): SitePlan {
  const sites: Site[] = [];
  const refused = new Map<number, string>();
  let longest = 1 << leastSlotShift;
  const room = outerRoom(plans);
  const able: Site[] = [];
  for (const [index, plan] of plans.entries()) {
    const look = looks[index] ?? 'its code is not in the ELF';
    const site = typeof look === 'string' ? look : planSite(plan, look, index, sources, room);
    if (typeof site === 'string') refused.set(index, site);
    else able[index] = site;
  }
  refuseUntilAgreed(plans, (index) => bytesReplaced(able[index]), refused);
  for (const site of able) {
    if (!site || refused.has(site.index)) continue;
    sites.push(site);
    longest = Math.max(longest, site.entry.size, site.exit.size);
  }
  return { sites, refused, slotShift: Math.ceil(Math.log2(longest)) };
}

/** The records of every plan, whether its code can be patched or not. */
export function planFormats(plans: readonly ReadPlan[], sources: RecordSources): readonly Site[] {
  const room = outerRoom(plans);
  const look: PatchableCode = { code: new Uint8Array(0), ways: [], ends: undefined };
  return plans.map((plan, index) => {
    const entry = entryFormat(plan, 2 * index, sources, room);
    const exit = exitFormat(plan, 2 * index + 1, sources);
    return { plan, index, ...look, entry, exit, counters: 0 };
  });
}

/** Bytes that are run elsewhere. */
function bytesReplaced(site: PatchableCode | undefined): number {
  return Math.max(0, ...(site?.ways ?? []).map(({ length }) => length));
}

function planSite(
  plan: ReadPlan,
  look: PatchableCode,
  index: number,
  sources: RecordSources,
  room: number,
): Site | string {
  const entry = entryFormat(plan, 2 * index, sources, room);
  const exit = exitFormat(plan, 2 * index + 1, sources);
  if (Math.max(entry.size, exit.size) > mostRecordBytes) return 'what it reads does not fit a record';
  const counters = plan.count ? (plan.count.by ? bucketCount : 1) : 0;
  return { plan, index, ...look, entry, exit, counters };
}

/** The bytes of a patch, and the bytes that it replaces. */
export interface Patch {
  readonly site: Site;
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

export interface CodeRoom {
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

export interface PlaceOptions {
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
  /**
   * Calls that last less than this number of ticks, and in which nothing is recorded, are dropped. Their entries pend
   * in this memory.
   */
  readonly brief?: Brief | undefined;
}

export interface Brief {
  readonly below: bigint;
  readonly record: Addr;
}

/** Places the trampolines and builds every byte of them. Their order in memory is the order of the sites. */
export function placeSites(options: PlaceOptions): Placement & { readonly lists: readonly Write[] } {
  const { sites, code, room, lists: listRoom, nests } = options;
  const writes: Write[] = [];
  const patches: Patch[] = [];
  const trampolines: Trampoline[] = [];
  const refused = new Map<number, string>();
  const hooks = new Map<bigint, HookFrame>();
  const exits = new Map<number, Addr>();
  const lists: Write[] = [];
  const takeList = allocator(listRoom);
  const takeCounters = allocator(options.counters);
  const counters = new Map<number, number>();
  const nearRoom = room.near[0] ?? { address: room.code.address, length: 0 };
  const takeHop = allocator(nearRoom);

  // An emulator runs a page with a breakpoint instruction by instruction, so the breakpoint lies as far from the
  // trampolines as possible.
  const waitLength = code.wait(room.code.address, options.geometry).code.length;
  const waitOffset = Math.floor((room.code.length - waitLength) / alignment) * alignment;
  if (waitOffset < 0) throw new RangeError('no room for the wait routine');
  const waitAt = addOffset(room.code.address, waitOffset);
  const take = allocator({ address: room.code.address, length: waitOffset });
  const wait = code.wait(waitAt, options.geometry);
  writes.push({ address: waitAt, bytes: wait.code });
  const geometry = withPending({ ...options.geometry, wait: waitAt }, options, take, writes);
  const below = geometry.pending && options.brief?.below;

  for (const site of sites) {
    const { plan, index } = site;
    const way = chooseWay(site, options, nearRoom);
    if (!way) {
      refused.set(index, 'the trampolines are out of reach of a jump from its entry');
      continue;
    }
    const { displaced, hop } = way;
    if (plan.inside) {
      const placed = placeInner({
        site,
        inside: plan.inside,
        way,
        code,
        geometry,
        notes: options.notes,
        take,
        takeHop,
      });
      if (typeof placed === 'string') refused.set(index, placed);
      else {
        writes.push(...placed.writes);
        patches.push(placed.patch);
        trampolines.push(placed.trampoline);
      }
      continue;
    }
    const ends = site.ends && chooseExits(site.ends, code, room.code, nearRoom);
    if (site.ends && !ends) {
      refused.set(index, 'the trampolines are out of reach of a jump from its ends');
      continue;
    }
    const nested = nests && plan.outer ? { self: plan.outer.pointer, list: outerPlan(plan.outer) } : undefined;
    const listAt = nested && takeList(nested.list.length);
    const nesting = nested && listAt !== undefined ? { self: nested.self, plan: listAt } : undefined;
    const hooked = plan.seesReturn && !ends;
    const returnsThrough = hooked || ends?.ends.some(({ tail }) => tail !== undefined);
    const pends = below !== undefined && hooked && plan.hasThreshold;
    const exitCode = returnsThrough
      ? code.exit({
          at: take.next,
          ring: geometry,
          fields: site.exit.fields,
          keep: plan.exit.keep,
          nesting: nesting !== undefined,
          below: pends ? below : undefined,
        })
      : undefined;
    const exitAt = exitCode && take(exitCode.length);
    const placed = ends && placeEnds({ site, ends, exitAt, code, geometry, take, takeHop });
    const countAt = plan.count && takeCounters(counterBytes * site.counters);
    const hopAt = hop && takeHop(hop.bytes(displaced));
    if (hop && hopAt === undefined) {
      refused.set(index, 'there is no room near its code for a jump to its trampoline');
      continue;
    }
    const start = addOffset(take.next, markBytes);
    const entryCode = code.entry({
      at: start,
      ring: geometry,
      fields: plan.count ? [] : site.entry.fields,
      displaced,
      when: plan.when,
      hook: hooked ? { exit: exitAt ?? start, keep: plan.exit.keep } : undefined,
      nesting,
      outerCopy: plan.count ? undefined : site.entry.outerCopy,
      count: plan.count && { at: countAt ?? start, by: plan.count.by },
      pends,
      via: hopAt === undefined ? 'patch' : { hop: hopAt },
    });
    const entryAt = take(markBytes + entryCode.length);
    const lacks = (ends && !placed) || (returnsThrough && exitAt === undefined);
    if (entryAt === undefined || lacks) {
      refused.set(index, 'the scratch memory for code is full');
      continue;
    }
    const hopCode = hop && hopAt !== undefined && { address: hopAt, bytes: hop.encode(displaced, hopAt, start) };
    if (hopCode) writes.push(hopCode);
    if (nested && listAt !== undefined) lists.push({ address: listAt, bytes: nested.list });
    if (countAt !== undefined) counters.set(index, Number(countAt - options.counters.address));
    const exit = exitAt !== undefined && exitCode ? { address: exitAt, bytes: exitCode } : undefined;
    if (exit) {
      writes.push(exit);
      exits.set(index, exit.address);
      const kept = plan.exit.keep.length;
      const size = code.hookFrameBytes(kept, nesting !== undefined);
      hooks.set(exit.address, { offset: code.hookedReturnOffset(kept), size });
    }
    writes.push({ address: entryAt, bytes: mark(plan.address) });
    const entry = { address: start, bytes: entryCode };
    writes.push(entry);
    trampolines.push({ site, displaced, hop: hopCode || undefined, entry, exit, ends: placed?.writes ?? [] });
    const original = site.code.subarray(0, displaced.patchLength);
    patches.push({
      site,
      address: plan.address,
      part: 'entry',
      bytes: code.patch(displaced, hopAt ?? start),
      original,
    });
    if (placed) {
      writes.push(...placed.writes);
      patches.push(...placed.patches);
    }
  }
  const ranges = [room.code, ...room.near.slice(0, 1)];
  const all = sites.map(({ plan }) => plan);
  const [indices, lost] = [sites.map(({ index }) => index), new Map<number, string>()];
  for (const [at, index] of indices.entries()) {
    const why = refused.get(index);
    if (why !== undefined) lost.set(at, why);
  }
  refuseUntilAgreed(all, (at) => bytesReplaced(sites[at]), lost);
  for (const [at, why] of lost) refused.set(indices[at] ?? -1, why);
  return {
    code: writes,
    patches: patches.filter(({ site }) => !refused.has(site.index)),
    trampolines: trampolines.filter(({ site }) => !refused.has(site.index)),
    ranges,
    breakpoint: wait.breakpoint,
    geometry,
    exits,
    hooks,
    refused,
    lists,
    counters,
    notes: options.notes,
  };
}

/** Adds the routine for calls that pend. */
function withPending(
  geometry: RingGeometry,
  { brief, code, sites }: PlaceOptions,
  take: ReturnType<typeof allocator>,
  writes: Write[],
): RingGeometry {
  if (!brief || !sites.some(({ plan }) => plan.hasThreshold)) return geometry;
  const pending = { record: brief.record, flush: take.next };
  const bytes = code.flush(pending.flush, { ...geometry, pending });
  const address = take(bytes.length);
  if (address === undefined) return geometry;
  writes.push({ address, bytes });
  return { ...geometry, pending };
}

/** A patch, and the jump in between if it leads to one. */
interface Way {
  readonly displaced: Displaced;
  readonly hop: Hop | undefined;
}

interface InnerToPlace {
  readonly site: Site;
  readonly inside: InnerPlace;
  readonly way: Way;
  readonly code: ProbeCode;
  readonly geometry: RingGeometry;
  readonly notes: FrameNotes;
  readonly take: Allocator;
  readonly takeHop: Allocator;
}

/** The trampoline of a place inside a function; or why there is no room. */
function placeInner({
  site,
  inside: { taken, noted },
  way: { displaced: chosen, hop },
  code,
  geometry,
  notes,
  take,
  takeHop,
}: InnerToPlace):
  | { readonly writes: readonly Write[]; readonly patch: Patch; readonly trampoline: Trampoline }
  | string {
  const displaced = site.inside?.find(({ kind }) => kind === chosen.kind);
  if (!displaced) return 'no patch is known for this architecture';
  const hopAt = hop && takeHop(hop.bytes(displaced));
  if (hop && hopAt === undefined) return 'there is no room near its code for a jump to its trampoline';
  const start = addOffset(take.next, markBytes);
  const via = hopAt === undefined ? 'patch' : ({ hop: hopAt } as const);
  const { fields } = site.entry;
  const { code: bytes, place } = code.inner({ at: start, ring: geometry, fields, displaced, notes, taken, noted, via });
  const markAt = take(markBytes + bytes.length);
  if (markAt === undefined) return 'the scratch memory for code is full';
  const entry = { address: start, bytes };
  const hopCode = hop && hopAt !== undefined && { address: hopAt, bytes: hop.encode(displaced, hopAt, start) };
  const patch: Patch = {
    site,
    address: displaced.start,
    part: 'inside',
    goesOn: addOffset(start, place),
    bytes: code.patch(displaced, hopAt ?? start),
    original: site.code.subarray(0, displaced.patchLength),
  };
  return {
    writes: [...(hopCode ? [hopCode] : []), { address: markAt, bytes: mark(displaced.start) }, entry],
    patch,
    trampoline: { site, displaced, hop: hopCode || undefined, entry, exit: undefined, ends: [] },
  };
}

/** The first way whose jump reaches the trampolines; else the first whose jump reaches a hop. */
function chooseWay(site: Site, { code, room }: PlaceOptions, near: Piece): Way | undefined {
  const reach = ({ kind }: Displaced): number => code.patches.find((patch) => patch.kind === kind)?.reach ?? 0;
  const start = codeOf(site.plan).address;
  const direct = site.ways.find((displaced) => within(start, room.code, reach(displaced)));
  if (direct) return { displaced: direct, hop: undefined };
  const { hop } = code;
  const hopped = site.ways.find((displaced) => displaced.kind === 'near' && within(start, near, reach(displaced)));
  return hop && hopped && near.length > 0 ? { displaced: hopped, hop } : undefined;
}

/** Bytes of code that are enough for these sites' trampolines. For memory that is divided before they are placed. */
export function codeRoom(sites: readonly Site[]): number {
  const roomOf = ({ plan, entry, exit, ends = [] }: Site): number => {
    const fields = entry.fields.length + exit.fields.length;
    const hops = plan.entryReads.reduce((sum, { through = [] }) => sum + through.length, 0);
    const looked = plan.when.reduce((sum, { behind }) => sum + 48 + 32 * (behind?.through.length ?? 0), 0);
    const noted = (plan.inside?.taken.length ?? 0) + (plan.inside?.noted.length ?? 0);
    return 384 + 24 * fields + 32 * hops + 128 * noted + looked + 512 * Math.max(0, ...ends.map((way) => way.length));
  };
  return sites.reduce((sum, site) => sum + roomOf(site), 4096);
}

/** Bytes of a counter. */
export const counterBytes = 8;

/**
 * What lies before the ring: the control block, its lists, the counters, and a pending record. Offsets from the
 * control block.
 */
export function controlRoom(
  sites: readonly Site[],
  { pendingBytes = 0, noteBytes = 0 }: { readonly pendingBytes?: number | undefined; readonly noteBytes?: number } = {},
): { readonly counters: number; readonly notes: number; readonly record: number; readonly size: number } {
  const cacheLines = (bytes: number): number => Math.ceil(bytes / 64) * 64;
  const lists = sites.reduce((sum, { plan }) => sum + (plan.outer ? 128 : 0), 0);
  const counters = cacheLines(controlBlock.size + lists);
  const bytes = sites.reduce((sum, site) => sum + Math.ceil((counterBytes * site.counters) / alignment) * alignment, 0);
  const notes = counters + cacheLines(bytes);
  const record = notes + cacheLines(noteBytes);
  return { counters, notes, record, size: record + pendingBytes };
}
