import type { FrameNotes, HookFrame, ProbeCode, RingGeometry } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { alignment, allocator } from './code-allocator.js';
import { refuseUntilAgreed } from './inner-places.js';
import { pieceBefore } from './interrupted.js';
import { type Patch, type PlacedSite, type Places, placeSite, type Trampoline } from './place-site.js';
import { inOrder, type Piece, type Write } from './ring.js';
import { bytesReplaced, type Site } from './sites.js';

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
  /** Their code, in the order of memory. */
  readonly served: readonly ServedCode[];
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
  const wait = code.wait(waitAt, options.geometry, areTimed(sites));
  const codeFree = { address: room.code.address, length: Number(waitAt - room.code.address) };
  const take = allocator(codeFree);
  const geometry = { ...options.geometry, wait: waitAt };
  const memory: Places['memory'] = {
    ...{ code, geometry, take, notes, takeHop: allocator(near), takeList: allocator(options.lists) },
    takeCounters: allocator(options.counters),
    nests: options.nests,
  };
  const places = { memory, near, room: room.code };
  const refused = new Map<number, string>();
  const all: PlacedSite[] = [];
  for (const site of sites) {
    const placed = placeSite(site, places);
    if (typeof placed === 'string') refused.set(site.index, placed);
    else all.push(placed);
  }
  refuseDisagreeing(sites, refused);
  const kept = all.filter(({ trampoline }) => !refused.has(trampoline.site.index));
  const written = [{ address: waitAt, bytes: wait.code }, ...all.flatMap(({ writes }) => writes)];
  const trampolines = kept.map(({ trampoline }) => trampoline);
  return {
    code: written,
    patches: kept.flatMap(({ patches }) => patches),
    trampolines,
    served: servedCode(trampolines),
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
  const { length } = code.wait(room.code.address, geometry, areTimed(sites)).code;
  const offset = Math.floor((room.code.length - length) / alignment) * alignment;
  if (offset < 0) throw new RangeError('no room for the wait routine');
  return addOffset(room.code.address, offset);
}

/** Whether records have times. */
function areTimed(sites: readonly Site[]): boolean {
  return sites.some(({ entry, exit }) => [...entry.fields, ...exit.fields].some(({ from }) => from.kind === 'time'));
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

// Whose trampolines lie where.

/** Code of a trampoline, and the probe that it serves. */
export interface ServedCode extends Piece {
  readonly site: { readonly index: number; readonly plan: { readonly name: string; readonly address: Addr } };
}

/** In the order of memory: also the jumps on the way there. */
function servedCode(trampolines: readonly Trampoline[]): readonly ServedCode[] {
  return inOrder(
    trampolines.flatMap(({ site, entry, exit, ends, hop }) =>
      [entry, ...(exit ? [exit] : []), ...(hop ? [hop] : []), ...ends].map(({ address, bytes }) => ({
        site,
        address,
        length: bytes.length,
      })),
    ),
  );
}

/** The code at an address. `sorted`: as {@link servedCode} gives it. */
export function servedAt(sorted: readonly ServedCode[], pc: bigint): ServedCode | undefined {
  const last = pieceBefore(sorted, pc + 1n);
  return last && pc < addOffset(last.address, last.length) ? last : undefined;
}
