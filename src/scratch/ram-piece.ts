import type { AddressSpace, Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { Session } from '../rsp/index.js';
import { currentAddressSpace, type GuestRam } from '../target/index.js';
import { freeNear, OwnPages } from './own-pages.js';
import { accessTo, checkMapped, keepContents, physicalOf, plantGuards } from './region-access.js';
import {
  alignUp,
  LARGE_PAGE,
  type MapRefusal,
  mostForCode,
  PAGE,
  partOf,
  type Region,
  type Scratch,
  type SharedMemory,
} from './scratch.js';

/** What the target's program says about its paging. */
export interface PagingFacts {
  /** A runtime address of its code that the trampolines must be near. It includes the slide of a relocated kernel. */
  readonly text: Addr;
  /** Whether it turns paging on at some time (see `turnsPagingOn`). */
  readonly pages: boolean;
  /**
   * Bytes of code that the trampolines may need. The code gets that many bytes in large pages, but not more than
   * {@link mostForCode}.
   */
  readonly codeSize?: number | undefined;
  /** Part of it never pages (see `hasOwnFirmware`), and sees the trampolines only at their physical addresses. */
  readonly ownFirmware?: boolean;
}

/** Why memory is not mapped elsewhere. */
const neverPages = 'part of the program is firmware, which does not page and could not reach it';

const REACH = 2n ** 31n;
const GIB = 2n ** 30n;
/** Pages for page tables of ours: enough for eight tables of a kernel that share nothing. */
const TABLES = 16;

interface RamPieceOptions {
  /** Physical; both are multiples of 2 MiB, and there are two of them at least. */
  readonly start: Addr;
  readonly size: number;
  /** See {@link Scratch}. */
  readonly owned: boolean;
  /** For the user: `hidden RAM`, and a note that follows its address. */
  readonly what: string;
  readonly note: string;
  /** A piece of it that this process can read itself. */
  readonly shared?: (piece: Required<Region>) => SharedMemory | undefined;
  /** See {@link Scratch.isWatched}. */
  readonly isWatched?: boolean;
  /** Why the kernel uses the RAM. Asked once it can be mapped, because the answer takes long. */
  readonly unused?: () => Promise<Refusal | undefined>;
  /** The machine's RAM, if it can be read past the wire. */
  readonly ram?: GuestRam | undefined;
}

/** Where the memory is mapped. */
interface Placed {
  readonly address: Addr;
  /** Bytes of the code's pages, guards included. */
  readonly split: number;
  /** For the user. */
  readonly where: string;
  readonly pages: OwnPages;
  readonly follow: NonNullable<Scratch['follow']>;
}

/**
 * RAM that the guest does not know about. A kernel can use it after {@link map}: at once if the kernel does not page,
 * else when its final page table is in use.
 *
 *      start                                                                              start + size
 *      | guard page | code ...                | guard page || data ...   | page tables | guard page |
 *      |<------------ a multiple of 2 MiB ---------------->||<------- a multiple of 2 MiB ------->|
 */
export class RamPiece {
  readonly #session: Session;
  readonly #options: RamPieceOptions;

  constructor(session: Session, options: RamPieceOptions) {
    this.#session = session;
    this.#options = options;
  }

  /**
   * Makes the RAM usable for the kernel. The target is stopped in the kernel's own code, or at its reset if the
   * kernel does not page.
   */
  async map(arch: Architecture, facts: PagingFacts): Promise<Scratch | MapRefusal> {
    const { text, codeSize = 0 } = facts;
    const space = await currentAddressSpace(this.#session, arch);
    if (isRefusal(space)) return { ...space, later: false };
    if (space.user) return { refused: 'the target stands in user mode', later: true };
    if (space.scheme === 'off' && facts.pages)
      return { refused: 'the kernel has not turned its paging on', later: true };
    const textAt = await physicalOf(space, text);
    if (textAt === undefined) return { refused: `the kernel's text at ${hex(text)} is not mapped`, later: true };
    const used = await this.#options.unused?.();
    if (used) return { ...used, later: false };

    const linear = addr(this.#options.start + (text - textAt));
    const far = BigInt.asIntN(64, linear - text);
    // Jumps and pc-relative addresses have 32 bits.
    const isInReach = far >= -REACH && far + BigInt(this.#options.size) < REACH;
    const whole = { address: linear, physical: this.#options.start, size: this.#options.size };
    const split = Math.min(alignUp(codeSize + 2 * PAGE, LARGE_PAGE), mostForCode(this.#options.size));
    const [code, data] = [partOf(whole, 0, split), partOf(whole, split, whole.size - split)];
    const notThere = (await checkMapped(space, code, 'code')) ?? (await checkMapped(space, data, 'data'));
    if (notThere === undefined) {
      if (isInReach) {
        const pages = this.#ownPages(arch, linear, split);
        return this.#scratch({ address: linear, split, where: '', pages, follow: follower(pages, text, textAt) });
      }
      return {
        refused: `the ${this.#options.what} at ${hex(linear)} is out of reach of the text at ${hex(text)}: give the guest less RAM`,
        later: false,
      };
    }

    const placed =
      (isInReach && linear === this.#options.start && (await this.#atItself(arch, space, split))) ||
      (facts.ownFirmware ? { refused: neverPages } : await this.#nearText(arch, space, text, split));
    if (isRefusal(placed)) return { ...placed, later: false };
    const { address, pages } = placed;
    const where = `, mapped at ${hex(address)}`;
    return this.#scratch({ ...placed, split, where, follow: follower(pages, text, textAt) });
  }

  /**
   * Maps the memory at its physical address, where that is free. There it is also for code of the same program that
   * never pages: firmware in machine mode.
   */
  async #atItself(
    arch: Architecture,
    space: AddressSpace,
    split: number,
  ): Promise<Pick<Placed, 'address' | 'pages'> | undefined> {
    const pages = this.#ownPages(arch, this.#options.start, split);
    if (!(await pages.enter(space))) return { address: this.#options.start, pages };
    await pages.remove();
    return undefined;
  }

  /**
   * Maps the memory into the table that maps the text, which all address spaces of the kernel share. If the text lies
   * in larger pages there is none: then into the GiB next to it.
   */
  async #nearText(
    arch: Architecture,
    space: AddressSpace,
    text: Addr,
    split: number,
  ): Promise<Pick<Placed, 'address' | 'pages'> | Refusal> {
    const table = await space.largePageTable(text);
    const count = this.#options.size / LARGE_PAGE;
    const free = table && freeNear(text, table, count);
    if (table && free === undefined)
      return { refused: `the table that maps ${hex(text)} has no ${count} free entries in a row` };
    const middle = (text & -GIB) + GIB / 2n;
    let why: Refusal = { refused: `there is no room beside the text at ${hex(text)}` };
    for (const address of free === undefined ? [middle + GIB, middle - GIB] : [free]) {
      if (address < 0n || address >= 2n ** 64n) continue;
      const pages = this.#ownPages(arch, addr(address), split);
      const wrong = await pages.enter(space);
      if (!wrong) return { address: addr(address), pages };
      await pages.remove();
      why = wrong;
    }
    return why;
  }

  #ownPages(arch: Architecture, address: Addr, split: number): OwnPages {
    const tables = {
      address,
      physical: addOffset(this.#options.start, this.#options.size - (TABLES + 1) * PAGE),
      size: TABLES * PAGE,
    };
    return new OwnPages({
      session: this.#session,
      arch,
      address,
      physical: this.#options.start,
      count: this.#options.size / LARGE_PAGE,
      code: split / LARGE_PAGE,
      tables,
    });
  }

  async #scratch({ address, split, where, pages, follow }: Placed): Promise<Scratch | MapRefusal> {
    const whole = { address, physical: this.#options.start, size: this.#options.size };
    const piece = (offset: number, size: number): Required<Region> => partOf(whole, offset, size);
    const { what, note, owned } = this.#options;
    const all = owned ? [] : [{ region: whole, isData: false }];
    const putBack = await keepContents(this.#session, all, this.#options.ram);
    if (putBack === undefined) {
      await pages.remove();
      return { refused: `the ${what} at ${hex(this.#options.start)} cannot be read`, later: false };
    }
    const release = async (): Promise<void> => {
      await pages.remove();
      await putBack();
    };
    const guard = async (where: string, offset: number): Promise<Parameters<typeof plantGuards>[0][number]> => {
      const page = piece(offset, PAGE);
      const { ram, shared } = this.#options;
      return {
        where,
        address: page.address,
        access: await accessTo(this.#session, page, { ram, shared: shared?.(page), isData: true }),
      };
    };
    const guards = await plantGuards([
      await guard('before the code', 0),
      await guard('behind the code', split - PAGE),
      await guard('behind the data', this.#options.size - PAGE),
    ]);
    if (isRefusal(guards)) {
      await release();
      return { ...guards, later: false };
    }
    const data = piece(split, this.#options.size - split - (TABLES + 1) * PAGE);
    return {
      source: `${what} ${hex(this.#options.start)}..${hex(addOffset(this.#options.start, this.#options.size))}${where}${note}`,
      owned,
      isWatched: this.#options.isWatched ?? false,
      code: piece(PAGE, split - 2 * PAGE),
      data,
      shared: this.#options.shared?.(data),
      verifyGuards: guards,
      follow,
      release,
    };
  }
}

/** See {@link Scratch.follow}. */
function follower(pages: OwnPages, text: Addr, textAt: Addr): NonNullable<Scratch['follow']> {
  return async (space) => {
    // A process's table, or one of a hart that does not page yet.
    const isKernel = space.pages !== undefined && (await physicalOf(space, text)) === textAt;
    if (!isKernel || (await pages.isIn(space))) return { entered: false };
    return (await pages.enter(space, true)) ?? { entered: true, isKnown: pages.isKnown };
  };
}
