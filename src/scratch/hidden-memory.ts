import type { Architecture } from '../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../base/addr.js';
import { isRefusal, type Refusal } from '../base/errors.js';
import type { Session } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { HiddenRam } from './machines/machine.js';
import type { HidingPlan } from './plan-hidden-memory.js';
import { type PagingFacts, RamPiece } from './ram-piece.js';
import { accessTo, firstUsed } from './region-access.js';
import { alignDown, alignUp, LARGE_PAGE, type MapRefusal, type Scratch } from './scratch.js';
import type { HiddenSource } from './source.js';

/** Bytes that are looked at of each piece by packets. */
const SAMPLE = 64;

/**
 * RAM that the guest does not know of. It exists from the machine's start. A kernel can use it after {@link map}:
 * at once if the kernel does not page, else when its final page table is in use.
 */
export class HiddenMemory implements HiddenSource {
  /** Physical; both are multiples of 2 MiB. */
  readonly start: Addr;
  readonly size: number;
  readonly #session: Session;
  readonly #plan: HidingPlan;
  /** What lies at offset 0 of the file. */
  readonly #fileBase: Addr;
  readonly #first: HiddenRam;
  /** Our own bytes are in it. */
  #isMapped = false;
  /** Why it could not be hidden after a reset. */
  #lost: Refusal | undefined;

  private constructor(session: Session, plan: HidingPlan, found: HiddenRam) {
    const start = alignUp(Number(found.start), LARGE_PAGE);
    this.start = addr(start);
    this.size = alignDown(Number(found.start) + found.size, LARGE_PAGE) - start;
    this.#session = session;
    this.#plan = plan;
    this.#fileBase = found.fileBase;
    this.#first = found;
  }

  get isShared(): boolean {
    return this.#plan.file !== undefined;
  }

  /**
   * Removes the RAM that the plan has added from what the guest will read. The machine is at its reset vector. A PC
   * runs its firmware first; then it is at the kernel's entry, before the first instruction.
   */
  static async reserve(session: Session, plan: HidingPlan): Promise<HiddenMemory | Refusal> {
    const found = await plan.hide(session, plan.visible, plan.hidden);
    return isRefusal(found) ? found : new HiddenMemory(session, plan, found);
  }

  /**
   * To be called when the machine is at its reset vector once more, with no breakpoints inserted. Hides the RAM
   * again, which keeps its contents. QEMU has loaded the kernel anew, so no change of its code is left, and the
   * result of {@link map} must be mapped again. If the RAM cannot be hidden, {@link map} refuses from then on.
   */
  async hideAgain(): Promise<Refusal | undefined> {
    const { hide, visible, hidden } = this.#plan;
    const found = await hide(this.#session, visible, hidden);
    const moved = !isRefusal(found) && found.start !== this.#first.start;
    this.#lost = moved ? { refused: `the RAM to hide lies at ${hex(found.start)} now` } : asRefusal(found);
    return this.#lost;
  }

  /**
   * Makes the RAM usable for the kernel, see {@link RamPiece.map}. Refused if the kernel has used it: RAM of a machine
   * that was started elsewhere may be known to a kernel that does not ask.
   */
  async map(arch: Architecture, facts: PagingFacts, ram?: GuestRam): Promise<Scratch | MapRefusal> {
    if (this.#lost) return { ...this.#lost, later: false };
    const { file, notShared, isModule } = this.#plan;
    const isAdded = !isModule && (file !== undefined || notShared !== undefined);
    const piece = new RamPiece(this.#session, {
      start: this.start,
      size: this.size,
      owned: true,
      what: 'hidden RAM',
      note: file ? ', shared through a file' : notShared === undefined ? '' : `; not shared: ${notShared}`,
      shared: ({ physical, size }) => file?.piece(Number(physical - this.#fileBase), size),
      isWatched: !isAdded,
      unused: () => this.#unused(isAdded, ram),
      ram,
    });
    const mapped = await piece.map(arch, facts);
    this.#isMapped ||= !isRefusal(mapped);
    return mapped;
  }

  /** Why the RAM cannot be used. Reads all of it. */
  async #unused(isAdded: boolean, ram: GuestRam | undefined): Promise<Refusal | undefined> {
    const used = isAdded || this.#isMapped ? undefined : await this.#firstUsed(ram);
    if (used === undefined) return undefined;
    return { refused: `the kernel was told of less RAM than there is, and uses it nevertheless, at ${hex(used)}` };
  }

  /** What is not zero, as QEMU makes RAM; by packets only the beginning of some pieces is looked at. */
  async #firstUsed(ram: GuestRam | undefined): Promise<Addr | undefined> {
    const region = { address: this.start, physical: this.start, size: this.size };
    const piece = this.#plan.file?.piece(Number(this.start - this.#fileBase), region.size);
    const access = await accessTo(this.#session, region, { ram, shared: piece, isData: false });
    const isNear = piece !== undefined || ram?.holds(this.start, this.size);
    const used = await firstUsed(access, region.size, isNear ? undefined : SAMPLE);
    return used === undefined ? undefined : addOffset(this.start, used);
  }
}

function asRefusal(found: HiddenRam | Refusal): Refusal | undefined {
  return isRefusal(found) ? found : undefined;
}
