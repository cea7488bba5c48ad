import {
  bucketCount,
  controlBlock,
  type Displaced,
  type Hop,
  type ProbeCode,
  type RingGeometry,
} from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import type { ReadPlan } from '../../probes/index.js';
import type { HookFrame } from '../../unwind/index.js';
import { alignment, allocator, mark, markBytes, within } from './code-allocator.js';
import { chooseExits, placeEnds } from './exit-patches.js';
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

/** A probe that is carried out by trampolines. */
export interface Site extends PatchableCode {
  readonly plan: ReadPlan;
  /** Index in what was planned; its records carry `2 * index`, plus 1 at the exit. */
  readonly index: number;
  readonly entry: RecordFormat;
  readonly exit: RecordFormat;
  /** Counters in the target, where they do instead of records; 0: records. */
  readonly counters: number;
}

export interface SitePlan {
  readonly sites: readonly Site[];
  /** Why a probe needs a stop, by its index among the candidates. */
  readonly refused: ReadonlyMap<number, string>;
  /** log2 of the bytes that the longest record takes. */
  readonly slotShift: number;
}

/** Longer records would leave a small ring no slots. */
const mostRecordBytes = 256;
const leastSlotShift = 6;

/** Decides for every probe whether its reads can be compiled too; touches nothing. `looks` are those of {@link lookAtCode}. */
export function planSites(
  plans: readonly ReadPlan[],
  looks: readonly PatchVerdict[],
  sources: RecordSources,
): SitePlan {
  const sites: Site[] = [];
  const refused = new Map<number, string>();
  let longest = 1 << leastSlotShift;
  const room = outerRoom(plans);
  for (const [index, plan] of plans.entries()) {
    const look = looks[index] ?? 'its code is not in the ELF';
    const site = typeof look === 'string' ? look : planSite(plan, look, index, sources, room);
    if (typeof site === 'string') refused.set(index, site);
    else {
      sites.push(site);
      longest = Math.max(longest, site.entry.size, site.exit.size);
    }
  }
  return { sites, refused, slotShift: Math.ceil(Math.log2(longest)) };
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

/** A patch as it is to be written, and what it replaces. */
export interface Patch {
  readonly site: Site;
  readonly address: Addr;
  /** At one of the function's ends, not at its start. */
  readonly isEnd: boolean;
  readonly bytes: Uint8Array;
  readonly original: Uint8Array;
}

/** What was laid out for one probe. */
export interface Trampoline {
  readonly site: Site;
  readonly displaced: Displaced;
  /** The jump that its patch leads to, where the trampoline itself is out of the patch's reach. */
  readonly hop: Write | undefined;
  readonly entry: Write;
  /** Where the return is hooked. */
  readonly exit: Write | undefined;
  /** Code for the function's ends, where these are patched. */
  readonly ends: readonly Write[];
}

export interface CodeRoom {
  /** Where trampolines go. */
  readonly code: Piece;
  /** Small pieces near the program's text, for hops; zero bytes that are executable. */
  readonly near: readonly Piece[];
}

/** All that is written to arm the sites: first the code, then, when that has been read back, the patches. */
export interface Placement {
  readonly code: readonly Write[];
  readonly patches: readonly Patch[];
  readonly trampolines: readonly Trampoline[];
  /** Where code of ours lies. */
  readonly ranges: readonly Piece[];
  readonly breakpoint: Addr;
  readonly geometry: RingGeometry;
  /** Exit trampolines by the index of their sites. */
  readonly exits: ReadonlyMap<number, Addr>;
  /** What stands behind each exit trampoline's address, where it is a return address. */
  readonly hooks: ReadonlyMap<bigint, HookFrame>;
  /** Sites for which there was no room or no jump that reaches. */
  readonly refused: ReadonlyMap<number, string>;
  /** Where the counters of sites lie that have some: by index, offsets from the first one's place. */
  readonly counters: ReadonlyMap<number, number>;
}

export interface PlaceOptions {
  readonly sites: readonly Site[];
  readonly code: ProbeCode;
  readonly room: CodeRoom;
  readonly geometry: Omit<RingGeometry, 'wait'>;
  /** Where lists for `controlBlock.outerPlan` go. */
  readonly lists: Piece;
  /** Where the counters of sites without records go. */
  readonly counters: Piece;
  readonly nests: boolean;
  /** Calls that last less than so many ticks, and in which nothing is noted, are left out; their entries pend in this memory. */
  readonly brief?: Brief | undefined;
}

export interface Brief {
  readonly below: bigint;
  readonly record: Addr;
}

/**
 * Lays trampolines out and builds every byte of them. The order in memory is the order of the sites.
 */
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

  // Emulators carry a page with a breakpoint out instruction by instruction: it lies as far from the trampolines as can be.
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
    patches.push({ site, address: plan.address, isEnd: false, bytes: code.patch(displaced, hopAt ?? start), original });
    if (placed) {
      writes.push(...placed.writes);
      patches.push(...placed.patches);
    }
  }
  const ranges = [room.code, ...room.near.slice(0, 1)];
  return {
    code: writes,
    patches,
    trampolines,
    ranges,
    breakpoint: wait.breakpoint,
    geometry,
    exits,
    hooks,
    refused,
    lists,
    counters,
  };
}

/** Adds the routine that calls need to pend. */
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

/** The first way whose jump reaches the trampolines, else the first whose jump reaches a hop. */
function chooseWay(
  site: Site,
  { code, room }: PlaceOptions,
  near: Piece,
): { readonly displaced: Displaced; readonly hop: Hop | undefined } | undefined {
  const reach = ({ kind }: Displaced): number => code.patches.find((patch) => patch.kind === kind)?.reach ?? 0;
  const { address: start } = site.plan;
  const direct = site.ways.find((displaced) => within(start, room.code, reach(displaced)));
  if (direct) return { displaced: direct, hop: undefined };
  const { hop } = code;
  const hopped = site.ways.find((displaced) => displaced.kind === 'near' && within(start, near, reach(displaced)));
  return hop && hopped && near.length > 0 ? { displaced: hopped, hop } : undefined;
}

/** Bytes of code that are enough for these sites' trampolines, where memory is to be divided before they are laid out. */
export function codeRoom(sites: readonly Site[]): number {
  const roomOf = ({ entry, exit, ends = [] }: Site): number => {
    const fields = entry.fields.length + exit.fields.length;
    return 384 + 24 * fields + 512 * Math.max(0, ...ends.map((way) => way.length));
  };
  return sites.reduce((sum, site) => sum + roomOf(site), 4096);
}

/** Bytes of a counter. */
export const counterBytes = 8;

/** What lies before the ring: the control block, lists behind it, counters, and a record that pends. Offsets from the control block. */
export function controlRoom(
  sites: readonly Site[],
  pendingBytes = 0,
): { readonly counters: number; readonly record: number; readonly size: number } {
  const cacheLines = (bytes: number): number => Math.ceil(bytes / 64) * 64;
  const lists = sites.reduce((sum, { plan }) => sum + (plan.outer ? 128 : 0), 0);
  const counters = cacheLines(controlBlock.size + lists);
  const bytes = sites.reduce((sum, site) => sum + Math.ceil((counterBytes * site.counters) / alignment) * alignment, 0);
  const record = counters + cacheLines(bytes);
  return { counters, record, size: record + pendingBytes };
}
