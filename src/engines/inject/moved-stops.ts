import type { Architecture, Displaced, ProbeCode } from '../../arch/index.js';
import { type Addr, addOffset } from '../../base/addr.js';
import type { Logger } from '../../base/logger.js';
import type { ElfFile } from '../../elf/index.js';
import type { ReadPlan } from '../../probes/index.js';
import type { Session } from '../../rsp/index.js';
import type { Breakpoints } from '../stop/breakpoints.js';
import { type Allocator, allocator, mark, markBytes, within } from './code-allocator.js';
import { redirect } from './leave-patches.js';
import { Patches } from './patches.js';
import type { Patch, Patched, Placement } from './placement.js';
import type { Piece, Write } from './ring.js';
import { writeChecked } from './transfers.js';

/** The entry of a function at which the target is to stop. `scratchIsFree`: see {@link ReadPlan}. */
export interface EndPlace extends Pick<ReadPlan, 'address' | 'scratchIsFree'> {}

/** A place where the target is to stop, and the copy of its first instructions. */
interface Copy {
  readonly at: Addr;
  readonly writes: readonly Write[];
  readonly patch: Patch<Patched>;
}

export interface MovedStopsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly code: ProbeCode;
  readonly elf: ElfFile;
  /** Where the copies go. */
  readonly room: Piece;
  readonly points: Breakpoints;
  /** What is patched already. */
  readonly placement: Placement;
  readonly logger: Logger;
}

/** Bytes that are enough for the copies of so many places. */
export function movedStopsRoom(places: number): number {
  return 128 * places;
}

/**
 * Stops at functions that hardly ever run (those that panic), moved out of the program's pages. QEMU runs a page that
 * has a breakpoint instruction by instruction (`check_for_breakpoints`, accel/tcg/cpu-exec.c), with all functions in
 * it. Here each place jumps to a copy of its first instructions, in a page where nothing else runs. The breakpoint is
 * at the copy.
 */
export class MovedStops {
  readonly #options: MovedStopsOptions;
  readonly #patches: Patches<Patched>;
  /** Copies, with their places. */
  readonly #places: ReadonlyMap<bigint, Addr>;

  private constructor(options: MovedStopsOptions, patches: Patches<Patched>, places: ReadonlyMap<bigint, Addr>) {
    this.#options = options;
    this.#patches = patches;
    this.#places = places;
  }

  /** Moves the stops that can be moved at this moment. The others stay where they are. */
  static async move(places: readonly EndPlace[], options: MovedStopsOptions): Promise<MovedStops> {
    const { session, arch, points, logger } = options;
    const take = allocator(options.room);
    const here = places.filter(({ address }) => points.isPause(address));
    const copies = here.flatMap((place) => copyOf(place, take, options) ?? []);
    const writes = copies.flatMap((copy) => copy.writes);
    const all = (await writeChecked(session, writes)) === undefined ? copies : [];
    const wanted = all.map(({ patch }) => patch);
    const patches = new Patches<Patched>(session, arch, wanted, logger);
    const planted = new Set(await patches.plant((piece) => points.areIn(piece)));
    const moved = all.filter(({ patch: { site } }) => planted.has(site));
    await points.movePauses(new Map(moved.map(({ at, patch }) => [patch.address, at])));
    return new MovedStops(options, patches, new Map(moved.map(({ at, patch }) => [at, patch.address])));
  }

  /** At a stop: gives the places their own code back. A hart that stands at a copy stands at its place then. */
  async remove(): Promise<void> {
    const { session, arch } = this.#options;
    if (session.state.kind !== 'idle') return;
    await this.#patches.remove();
    if (session.state.kind === 'idle') await redirect(session, arch, this.#places);
  }
}

/** Undefined if the place cannot be patched, or if there is no room. */
function copyOf(end: EndPlace, take: Allocator, options: MovedStopsOptions): Copy | undefined {
  const { code, elf } = options;
  const place = end.address;
  const symbol = elf.symbols.allAt(place).find(({ type, address }) => type === 'function' && address === place);
  const bytes = symbol && elf.bytesAt(place, symbol.size);
  const displaced = bytes && displace(end, bytes, options);
  if (!displaced) return undefined;
  const at = addOffset(take.next, markBytes);
  const own = displaced.relocate(at);
  const markAt = take(markBytes + own.length);
  if (markAt === undefined) return undefined;
  return {
    at,
    writes: [
      { address: markAt, bytes: mark(place) },
      { address: at, bytes: own },
    ],
    patch: {
      site: { plan: { name: symbol.name, address: place } },
      address: place,
      part: 'entry',
      bytes: code.patch(displaced, at),
      original: bytes.subarray(0, displaced.patchLength),
    },
  };
}

/** The instructions that a jump to the copies replaces, if nothing else is patched or stops there. */
function displace(
  { address: place, scratchIsFree }: EndPlace,
  bytes: Uint8Array,
  { code, room, points, placement }: MovedStopsOptions,
): Displaced | undefined {
  for (const { kind, reach } of code.patches) {
    if (!within(place, room, reach) || (kind === 'far' && !scratchIsFree)) continue;
    const displaced = code.displace(bytes, place, kind);
    if ('refused' in displaced) continue;
    const behind = { address: addOffset(place, 1), length: displaced.length - 1 };
    if (!points.areIn(behind) && !isPatched(placement, place, displaced.length)) return displaced;
  }
  return undefined;
}

function isPatched({ patches, trampolines }: Placement, place: Addr, length: number): boolean {
  const meets = (address: Addr, bytes: number): boolean =>
    address < addOffset(place, length) && addOffset(address, bytes) > place;
  return (
    patches.some(({ address, bytes }) => meets(address, bytes.length)) ||
    trampolines.some(({ displaced }) => meets(displaced.start, displaced.length))
  );
}
