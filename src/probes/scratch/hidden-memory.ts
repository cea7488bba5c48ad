import type { Architecture } from '../../arch/index.js';
import { type Addr, addr } from '../../base/addr.js';
import { ANY_HART, type Breakpoint, type Session } from '../../rsp/index.js';
import { hideInDeviceTree, riscvReset } from './hide-in-device-tree.js';
import { hideInMemoryMap, x86Reset } from './hide-in-memory-map.js';
import type { HiddenMemoryPlan } from './plan-hidden-memory.js';
import { type PagingFacts, RamPiece } from './ram-piece.js';
import { alignDown, alignUp, isRefusal, LARGE_PAGE, type MapRefusal, type Refusal, type Scratch } from './scratch.js';

/**
 * RAM that the guest was not told of. It is there from the machine's start; {@link map} makes it usable for a kernel, at once where
 * the kernel does not page, else when its final page table is in use.
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

  /**
   * Whether the machine has stopped at {@link resetBreakpoint} because it was reset. Programs may have code of their own at that (virtual)
   * address: over that the hart has been stepped then.
   */
  async atReset(pc: bigint, hart: string | undefined): Promise<'reset' | 'passed' | 'elsewhere'> {
    const isRiscv = this.#plan.machine.kind === 'riscv-virt';
    const { address } = this.resetBreakpoint;
    // x86 counts from a segment whose base is ffff0000 then; riscv begins in M-mode.
    if (pc !== (isRiscv ? address : address & 0xffffn) && pc !== address) return 'elsewhere';
    const [name, wanted] = isRiscv ? ['priv', 3n] : ['cs', 0xf000n];
    const batch = this.#session.batch(hart);
    const mode = batch.readRegister(name);
    await batch.send();
    if (mode.value === undefined || mode.value === wanted) return 'reset';
    if (pc !== address) return 'elsewhere';
    await this.#session.removeBreakpoint(this.resetBreakpoint);
    await this.#session.resume({ kind: 'step', hart: hart ?? ANY_HART });
    await this.#session.insertBreakpoint(this.resetBreakpoint);
    return 'passed';
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

  /** Makes the RAM usable for the kernel, see {@link RamPiece.map}. */
  map(arch: Architecture, facts: PagingFacts): Promise<Scratch | MapRefusal> {
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
