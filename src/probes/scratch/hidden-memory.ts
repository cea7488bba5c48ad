import type { Architecture } from '../../arch/index.js';
import { type Addr, addOffset, addr, hex } from '../../base/addr.js';
import type { Breakpoint, Session } from '../../rsp/index.js';
import { accessTo, checkMapped, currentAddressSpace, type GuardPage, physicalOf, plantGuards } from './access.js';
import { hideInDeviceTree, riscvReset } from './hide-in-device-tree.js';
import { hideInMemoryMap, x86Reset } from './hide-in-memory-map.js';
import { mapBesideText } from './large-page-slots.js';
import type { HiddenMemoryPlan } from './plan-hidden-memory.js';
import {
  alignDown,
  alignUp,
  isRefusal,
  LARGE_PAGE,
  type MapRefusal,
  PAGE,
  type Refusal,
  type Region,
  type Scratch,
  type SharedMemory,
} from './scratch.js';

/** What the target's program tells of its paging. */
export interface PagingFacts {
  /** An address of its code as it runs (with the slide of a kernel that was moved), which the trampolines must be near. */
  readonly text: Addr;
  /** Whether it turns paging on at some time (see `turnsPagingOn`). */
  readonly pages: boolean;
}

const REACH = 2n ** 31n;

/**
 * RAM that the guest was not told of. It is there from the machine's start; {@link map} makes it usable for a kernel, at once where
 * the kernel does not page, else when its final page table is in use.
 *
 *      start                                                                              start + size
 *      | guard page | code ...                | guard page || data ...             | guard page |
 *      |<------------ 2 MiB ------------------------------>||<------ a multiple of 2 MiB ------>|
 */
export class HiddenMemory {
  /** Physical; both are multiples of 2 MiB. */
  readonly start: Addr;
  readonly size: number;
  readonly #session: Session;
  readonly #plan: HiddenMemoryPlan;
  /** What is at offset 0 of the file. */
  readonly #fileBase: Addr;
  readonly #first: Found;

  private constructor(session: Session, plan: HiddenMemoryPlan, found: Found) {
    const start = alignUp(Number(found.start), LARGE_PAGE);
    this.start = addr(start);
    this.size = alignDown(Number(found.start) + found.size, LARGE_PAGE) - start;
    this.#session = session;
    this.#plan = plan;
    this.#fileBase = found.fileBase;
    this.#first = found;
  }

  /**
   * Takes the RAM that the plan has added out of what the guest will read. The machine stands at its reset vector; an x86 one runs its firmware
   * and then stands at the kernel's entry, its first instruction not executed.
   */
  static async reserve(session: Session, plan: HiddenMemoryPlan): Promise<HiddenMemory | Refusal> {
    const found = await hide(session, plan, undefined);
    return isRefusal(found) ? found : new HiddenMemory(session, plan, found);
  }

  /** The machine starts again at this address; a breakpoint there stays through a reset. */
  get resetBreakpoint(): Breakpoint {
    return this.#plan.machine.kind === 'riscv-virt'
      ? { type: 0, address: riscvReset, kind: 4 }
      : { type: 1, address: x86Reset, kind: 1 };
  }

  /** Plants {@link resetBreakpoint}; harts that stand there make their first step. False where the stub does not take it. */
  async watchReset(): Promise<boolean> {
    const { address } = this.resetBreakpoint;
    const pc = this.#plan.machine.kind === 'riscv-virt' ? 'pc' : 'rip';
    for (const { id } of await this.#session.harts()) {
      const batch = this.#session.batch(id);
      const at = batch.readRegister(pc);
      await batch.send();
      if (at.value === address) await this.#session.resume({ kind: 'step', hart: id });
    }
    return this.#session.insertBreakpoint(this.resetBreakpoint);
  }

  /**
   * To be called when the target has stopped at {@link resetBreakpoint}: hides the RAM again, which keeps its contents. QEMU has loaded the
   * kernel anew, so nothing that was written to its code is left, and what {@link map} gave must be mapped again.
   */
  async hideAgain(): Promise<Refusal | undefined> {
    const watched = this.resetBreakpoint;
    await this.#session.removeBreakpoint(watched);
    const found = await hide(this.#session, this.#plan, this.#first);
    const planted = await this.watchReset();
    if (isRefusal(found)) return found;
    return planted ? undefined : { refused: 'the breakpoint at the reset vector is not taken again' };
  }

  /** Makes the RAM usable for the kernel. The target stands in the kernel's own code, or at its reset where it does not page. */
  async map(arch: Architecture, { text, pages }: PagingFacts): Promise<Scratch | MapRefusal> {
    const space = await currentAddressSpace(this.#session, arch);
    if (isRefusal(space)) return { ...space, later: false };
    if (space.user) return { refused: 'the target stands in user mode', later: true };
    if (space.scheme === 'off' && pages) return { refused: 'the kernel has not turned its paging on', later: true };
    const textAt = await physicalOf(space, text);
    if (textAt === undefined) return { refused: `the kernel's text at ${hex(text)} is not mapped`, later: true };

    const linear = addr(this.start + (text - textAt));
    const far = BigInt.asIntN(64, linear - text);
    const whole = { address: linear, physical: this.start, size: this.size };
    const code = { ...whole, size: LARGE_PAGE };
    const data = {
      address: addOffset(linear, LARGE_PAGE),
      physical: addOffset(this.start, LARGE_PAGE),
      size: this.size - LARGE_PAGE,
    };
    const notThere = (await checkMapped(space, code, 'code')) ?? (await checkMapped(space, data, 'data'));
    if (notThere === undefined) {
      // Jumps and pc-relative addresses have 32 bits.
      if (far >= -REACH && far + BigInt(this.size) < REACH) return this.#scratch(linear, '', async () => {});
      return {
        refused: `the hidden RAM at ${hex(linear)} is out of reach of the text at ${hex(text)}: give the guest less RAM`,
        later: false,
      };
    }

    const count = this.size / LARGE_PAGE;
    const slots = await mapBesideText(this.#session, arch, space, text, this.start, count);
    if (isRefusal(slots)) return { ...slots, later: false };
    const where = `, mapped at ${hex(slots.address)}`;
    return this.#scratch(slots.address, where, async () => void (await slots.unmap()));
  }

  async #scratch(address: Addr, where: string, release: () => Promise<void>): Promise<Scratch | MapRefusal> {
    const piece = (offset: number, size: number): Required<Region> => ({
      address: addOffset(address, offset),
      physical: addOffset(this.start, offset),
      size,
    });
    const guards = await plantGuards([
      await this.#guard('before the code', piece(0, PAGE)),
      await this.#guard('behind the code', piece(LARGE_PAGE - PAGE, PAGE)),
      await this.#guard('behind the data', piece(this.size - PAGE, PAGE)),
    ]);
    if (isRefusal(guards)) {
      await release();
      return { ...guards, later: false };
    }
    const data = piece(LARGE_PAGE, this.size - LARGE_PAGE - PAGE);
    const how = this.#plan.file === undefined ? `; not shared: ${this.#plan.notShared}` : ', shared through a file';
    return {
      source: `hidden RAM ${hex(this.start)}..${hex(addOffset(this.start, this.size))}${where}${how}`,
      owned: true,
      code: piece(PAGE, LARGE_PAGE - 2 * PAGE),
      data,
      shared: this.#shared(data),
      verifyGuards: guards,
      release,
    };
  }

  async #guard(where: string, page: Required<Region>): Promise<GuardPage> {
    const shared = this.#shared(page);
    const access = await accessTo(this.#session, page);
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

  #shared({ physical, size }: Required<Region>): SharedMemory | undefined {
    return this.#plan.file?.piece(Number(physical - this.#fileBase), size);
  }
}

interface Found {
  readonly start: Addr;
  readonly size: number;
  readonly fileBase: Addr;
  /** Where QEMU writes the device tree at a reset. */
  readonly original?: Addr;
  /** The memory map that was written. */
  readonly written?: Uint8Array;
}

/** `first` is what was found before the machine was reset. */
async function hide(session: Session, plan: HiddenMemoryPlan, first: Found | undefined): Promise<Found | Refusal> {
  const { machine, visible, hidden } = plan;
  if (machine.kind === 'riscv-virt') {
    const found = await hideInDeviceTree(session, visible, hidden, first?.original);
    return isRefusal(found) ? found : { ...found, fileBase: found.ramBase };
  }
  const found = await hideInMemoryMap(session, machine.image, hidden, first?.written);
  return isRefusal(found) ? found : { ...found, fileBase: addr(0) };
}
