import type { Architecture } from '../../arch/index.js';
import { type Addr, addr, hex } from '../../base/addr.js';
import { isRefusal, type Refusal } from '../../base/refusal.js';
import type { Session } from '../../rsp/index.js';
import type { HiddenRam } from './machines/machine.js';
import type { HiddenMemoryPlan } from './plan-hidden-memory.js';
import { type PagingFacts, RamPiece } from './ram-piece.js';
import { alignDown, alignUp, LARGE_PAGE, type MapRefusal, type Scratch } from './scratch.js';

/**
 * RAM that the guest was not told about. It exists from the machine's start. A kernel can use it after {@link map}:
 * at once if the kernel does not page, else when its final page table is in use.
 */
export class HiddenMemory {
  /** Physical; both are multiples of 2 MiB. */
  readonly start: Addr;
  readonly size: number;
  readonly #session: Session;
  readonly #plan: HiddenMemoryPlan;
  /** What lies at offset 0 of the file. */
  readonly #fileBase: Addr;
  readonly #first: HiddenRam;
  /** Why it could not be hidden after a reset. */
  #lost: Refusal | undefined;

  private constructor(session: Session, plan: HiddenMemoryPlan, found: HiddenRam) {
    const start = alignUp(Number(found.start), LARGE_PAGE);
    this.start = addr(start);
    this.size = alignDown(Number(found.start) + found.size, LARGE_PAGE) - start;
    this.#session = session;
    this.#plan = plan;
    this.#fileBase = found.fileBase;
    this.#first = found;
  }

  /**
   * Removes the RAM that the plan has added from what the guest will read. The machine is at its reset vector. A PC
   * runs its firmware first; then it is at the kernel's entry, before the first instruction.
   */
  static async reserve(session: Session, plan: HiddenMemoryPlan): Promise<HiddenMemory | Refusal> {
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

  /** Makes the RAM usable for the kernel, see {@link RamPiece.map}. */
  async map(arch: Architecture, facts: PagingFacts): Promise<Scratch | MapRefusal> {
    if (this.#lost) return { ...this.#lost, later: false };
    const { file, notShared } = this.#plan;
    const piece = new RamPiece(this.#session, {
      start: this.start,
      size: this.size,
      owned: true,
      what: 'hidden RAM',
      note: file === undefined ? `; not shared: ${notShared}` : ', shared through a file',
      shared: ({ physical, size }) => file?.piece(Number(physical - this.#fileBase), size),
    });
    return piece.map(arch, facts);
  }
}

function asRefusal(found: HiddenRam | Refusal): Refusal | undefined {
  return isRefusal(found) ? found : undefined;
}
