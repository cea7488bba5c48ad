import type { Architecture } from '../../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../../base/addr.js';
import { isRefusal } from '../../base/refusal.js';
import type { GuestRam } from '../../facts/index.js';
import type { Session } from '../../rsp/index.js';
import { mapBesideText } from './large-page-slots.js';
import {
  accessTo,
  checkMapped,
  currentAddressSpace,
  type GuardPage,
  physicalOf,
  plantGuards,
  restore,
} from './region-access.js';
import {
  alignDown,
  alignUp,
  LARGE_PAGE,
  type MapRefusal,
  PAGE,
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
   * Bytes of code that the trampolines may need. The code gets that many bytes in large pages, but at most half of
   * the memory.
   */
  readonly codeSize?: number | undefined;
}

const REACH = 2n ** 31n;

export interface RamPieceOptions {
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
  /** The machine's RAM, if it can be read past the wire. */
  readonly ram?: GuestRam | undefined;
}

/**
 * RAM that the guest does not know about. A kernel can use it after {@link map}: at once if the kernel does not page,
 * else when its final page table is in use.
 *
 *      start                                                                              start + size
 *      | guard page | code ...                | guard page || data ...             | guard page |
 *      |<------------ a multiple of 2 MiB ---------------->||<------ a multiple of 2 MiB ------>|
 */
export class RamPiece {
  readonly start: Addr;
  readonly size: number;
  readonly #session: Session;
  readonly #options: RamPieceOptions;

  constructor(session: Session, options: RamPieceOptions) {
    this.#session = session;
    this.#options = options;
    this.start = options.start;
    this.size = options.size;
  }

  /**
   * Makes the RAM usable for the kernel. The target is stopped in the kernel's own code, or at its reset if the
   * kernel does not page.
   */
  async map(arch: Architecture, { text, pages, codeSize = 0 }: PagingFacts): Promise<Scratch | MapRefusal> {
    const space = await currentAddressSpace(this.#session, arch);
    if (isRefusal(space)) return { ...space, later: false };
    if (space.user) return { refused: 'the target stands in user mode', later: true };
    if (space.scheme === 'off' && pages) return { refused: 'the kernel has not turned its paging on', later: true };
    const textAt = await physicalOf(space, text);
    if (textAt === undefined) return { refused: `the kernel's text at ${hex(text)} is not mapped`, later: true };

    const linear = addr(this.start + (text - textAt));
    const far = BigInt.asIntN(64, linear - text);
    const whole = { address: linear, physical: this.start, size: this.size };
    const most = Math.max(alignDown(this.size / 2, LARGE_PAGE), LARGE_PAGE);
    const split = Math.min(alignUp(codeSize + 2 * PAGE, LARGE_PAGE), most);
    const code = { ...whole, size: split };
    const data = {
      address: addOffset(linear, split),
      physical: addOffset(this.start, split),
      size: this.size - split,
    };
    const notThere = (await checkMapped(space, code, 'code')) ?? (await checkMapped(space, data, 'data'));
    if (notThere === undefined) {
      // Jumps and pc-relative addresses have 32 bits.
      if (far >= -REACH && far + BigInt(this.size) < REACH) return this.#scratch(linear, split, '', async () => {});
      return {
        refused: `the ${this.#options.what} at ${hex(linear)} is out of reach of the text at ${hex(text)}: give the guest less RAM`,
        later: false,
      };
    }

    const count = this.size / LARGE_PAGE;
    const large = { physical: this.start, count, code: split / LARGE_PAGE };
    const slots = await mapBesideText(this.#session, arch, space, text, large);
    if (isRefusal(slots)) return { ...slots, later: false };
    const where = `, mapped at ${hex(slots.address)}`;
    return this.#scratch(slots.address, split, where, async () => void (await slots.unmap()));
  }

  /** `split`: bytes of the code's pages, guards included. */
  async #scratch(
    address: Addr,
    split: number,
    where: string,
    unmap: () => Promise<void>,
  ): Promise<Scratch | MapRefusal> {
    const piece = (offset: number, size: number): Required<Region> => ({
      address: addOffset(address, offset),
      physical: addOffset(this.start, offset),
      size,
    });
    const { what, note, owned } = this.#options;
    const putBack = owned ? async () => {} : await this.#kept(piece(0, this.size));
    if (putBack === undefined) {
      await unmap();
      return { refused: `the ${what} at ${hex(this.start)} cannot be read`, later: false };
    }
    const release = async (): Promise<void> => {
      await putBack();
      await unmap();
    };
    const guards = await plantGuards([
      await this.#guard('before the code', piece(0, PAGE)),
      await this.#guard('behind the code', piece(split - PAGE, PAGE)),
      await this.#guard('behind the data', piece(this.size - PAGE, PAGE)),
    ]);
    if (isRefusal(guards)) {
      await release();
      return { ...guards, later: false };
    }
    const data = piece(split, this.size - split - PAGE);
    return {
      source: `${what} ${hex(this.start)}..${hex(addOffset(this.start, this.size))}${where}${note}`,
      owned,
      isWatched: this.#options.isWatched ?? false,
      code: piece(PAGE, split - 2 * PAGE),
      data,
      shared: this.#shared(data),
      verifyGuards: guards,
      release,
    };
  }

  /** A function that restores the contents, once; undefined if they cannot be read. */
  async #kept(whole: Required<Region>): Promise<(() => Promise<void>) | undefined> {
    const access = await accessTo(this.#session, whole, { ram: this.#options.ram, isData: false });
    let bytes = await access.read(0, whole.size);
    if (bytes === undefined) return undefined;
    return async () => {
      if (bytes !== undefined) await restore(access, bytes);
      bytes = undefined;
    };
  }

  async #guard(where: string, page: Required<Region>): Promise<GuardPage> {
    const shared = this.#shared(page);
    const access = await accessTo(this.#session, page, { ram: this.#options.ram, isData: true });
    return {
      where,
      address: page.address,
      read: () => {
        if (shared === undefined) return access.read(0, PAGE);
        const bytes = new Uint8Array(PAGE);
        shared.read(0, bytes);
        return bytes;
      },
      write: (bytes) => access.write(0, bytes),
    };
  }

  #shared(piece: Required<Region>): SharedMemory | undefined {
    return this.#options.shared?.(piece);
  }
}
