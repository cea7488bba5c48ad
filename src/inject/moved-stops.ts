import type { Architecture, Displaced, DisplacedInside, ProbeCode } from '../arch/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import { CodeEntries, codeOf, type PlannedStop, type ReadPlan } from '../probes/index.js';
import type { Session } from '../rsp/index.js';
import { type Allocator, allocator, mark, markBytes, within } from './code-allocator.js';
import { redirect } from './leave-patches.js';
import { isObjection, lookAtCode } from './patchable-code.js';
import { Patches } from './patches.js';
import type { Patch, Patched } from './place-site.js';
import type { Placement } from './placement.js';
import type { Piece, Write } from './ring.js';
import { writeChecked } from './transfers.js';

/** Instructions that were copied, so that the target stops at the copy instead. */
interface Copy {
  /** The place where it would have stopped. */
  readonly place: Addr;
  /** The instruction that is run in its stead: this one, or one before it. */
  readonly original: Addr;
  /** The copy of that instruction. */
  readonly at: Addr;
  /** The code that the jump to it replaces. */
  readonly replaces: Piece;
  readonly writes: readonly Write[];
  readonly patch: Patch<Patched>;
}

interface MovedStopsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly code: ProbeCode;
  readonly elf: ElfFile;
  /** Where the copies go. */
  readonly room: Piece;
  /** Whether a breakpoint is in these bytes. */
  readonly holdsStop: (piece: Piece) => boolean;
  /** What is patched already. */
  readonly placement: Placement;
  readonly logger: Logger;
}

/** Bytes that are enough for the copies of so many places. */
export function movedStopsRoom(places: number): number {
  return 256 * places;
}

/**
 * Stops at places that hardly ever run (functions that panic, code that powers the machine off), moved out of the
 * program's pages. QEMU runs a page that has a breakpoint instruction by instruction (`check_for_breakpoints`,
 * accel/tcg/cpu-exec.c), with all functions in it. Here a jump leads from each place to a copy of its instructions,
 * in a page where nothing else runs. The breakpoint is to be at the copy.
 */
export class MovedStops {
  readonly #options: MovedStopsOptions;
  readonly #patches: Patches<Patched>;
  readonly #copies: readonly Copy[];

  private constructor(options: MovedStopsOptions, patches: Patches<Patched>, copies: readonly Copy[]) {
    this.#options = options;
    this.#patches = patches;
    this.#copies = copies;
  }

  /** Moves the places that can be moved at this moment. */
  static async move(stops: readonly PlannedStop[], options: MovedStopsOptions): Promise<MovedStops> {
    const { session, arch, holdsStop, logger } = options;
    const take = allocator(options.room);
    const copies: Copy[] = [];
    for (const stop of stops) {
      const copy = copyOf(stop, take, options, copies);
      if (copy) copies.push(copy);
    }
    const writes = copies.flatMap((copy) => copy.writes);
    const all = (await writeChecked(session, writes)) === undefined ? copies : [];
    const wanted = [...new Set(all.map(({ patch }) => patch))];
    const patches = new Patches<Patched>(session, arch, wanted, logger);
    const planted = new Set(await patches.plant(holdsStop).catch(refused));
    return new MovedStops(
      options,
      patches,
      all.filter(({ patch: { site } }) => planted.has(site)),
    );
  }

  /** Where the target comes by instead of a place; undefined if that was not moved. */
  copyAt(place: Addr): Addr | undefined {
    return this.#copies.find((copy) => copy.place === place)?.at;
  }

  /** At a stop: gives the places their own code back. A hart that stands at a copy stands at its place then. */
  async remove(): Promise<void> {
    const { session, arch } = this.#options;
    if (session.state.kind !== 'idle') return;
    await this.#patches.remove();
    if (session.state.kind !== 'idle') return;
    await redirect(session, arch, new Map(this.#copies.map(({ at, original }) => [at, original])));
  }
}

/** Then all places stay where they are. */
function refused(thrown: unknown): readonly Patched[] {
  if (thrown instanceof RsptraceError && thrown.code === 'PATCH_REFUSED') return [];
  throw thrown;
}

/** Undefined if the place cannot be patched, or if there is no room. Two places may have one copy. */
function copyOf(
  { place, plans }: PlannedStop,
  take: Allocator,
  options: MovedStopsOptions,
  others: readonly Copy[],
): Copy | undefined {
  for (const plan of plans) {
    const shared = others.find(({ original }) => original === plan.address);
    if (shared) return { ...shared, place };
    const { address, length } = codeOf(plan);
    const bytes = options.elf.bytesAt(address, length);
    const displaced = bytes && displace(plan, bytes, options);
    if (displaced && !others.some(({ replaces }) => meets(replaces, displaced)))
      return copyAt(place, plan, { bytes, displaced, take, code: options.code });
  }
  return undefined;
}

interface Displacement {
  readonly bytes: Uint8Array;
  readonly displaced: Displaced | DisplacedInside;
  readonly take: Allocator;
  readonly code: ProbeCode;
}

function copyAt(place: Addr, plan: ReadPlan, { bytes, displaced, take, code }: Displacement): Copy | undefined {
  const start = addOffset(take.next, markBytes);
  const before = 'before' in displaced ? displaced.before(start) : new Uint8Array(0);
  const at = addOffset(start, before.length);
  const own = displaced.relocate(at);
  const markAt = take(markBytes + before.length + own.length);
  if (markAt === undefined) return undefined;
  const from = Number(displaced.start - codeOf(plan).address);
  return {
    place,
    original: plan.address,
    at,
    replaces: { address: displaced.start, length: displaced.length },
    writes: [mark(markAt, displaced.start), { address: start, bytes: Buffer.concat([before, own]) }],
    patch: {
      site: { plan },
      address: displaced.start,
      part: plan.inside ? 'inside' : 'entry',
      ...(plan.inside && { goesOn: at }),
      bytes: code.patch(displaced, start),
      original: bytes.subarray(from, from + displaced.patchLength),
    },
  };
}

/** The instructions that a jump to the copies replaces, if nothing else is patched or stops there. */
function displace(
  plan: ReadPlan,
  bytes: Uint8Array,
  { arch, elf, code, room, holdsStop, placement }: MovedStopsOptions,
): Displaced | DisplacedInside | undefined {
  const [look] = lookAtCode([plan], () => bytes, code, { facts: undefined, entries: CodeEntries.of(elf, arch) });
  if (look === undefined || isObjection(look)) return undefined;
  return (look.inside ?? look.ways).find((way) => {
    const { kind, start, length, signs } = way;
    const reach = code.patches.find((patch) => patch.kind === kind)?.reach ?? 0;
    const behind = addOffset(plan.address, 1);
    const isFree =
      !holdsStop({ address: start, length: Number(plan.address - start) }) &&
      !holdsStop({ address: behind, length: Number(addOffset(start, length) - behind) });
    // A copy would sign the return address once more.
    return isFree && signs === undefined && within(start, room, reach) && !isPatched(placement, way);
  });
}

function isPatched({ patches, trampolines }: Placement, code: Code): boolean {
  return (
    patches.some(({ address, bytes }) => meets({ address, length: bytes.length }, code)) ||
    trampolines.some(({ displaced: { start, length } }) => meets({ address: start, length }, code))
  );
}

type Code = Pick<Displaced, 'start' | 'length'>;

function meets({ address, length }: Piece, code: Code): boolean {
  return address < addOffset(code.start, code.length) && addOffset(address, length) > code.start;
}
