import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { type Breakpoint, type MemoryRegion, regionOf, type Session } from '../rsp/index.js';

/**
 * Chooses between software and hardware breakpoints, address by address. Hardware breakpoints are few (two to eight
 * on real chips), so they are used only where a software one cannot work. That is where the stub's memory map says
 * ROM or flash, and where a written trap instruction does not stick. A stub that takes no software breakpoints gets
 * hardware ones everywhere.
 */
export class BreakpointTypes {
  readonly #session: Session;
  #hardwareOnly: boolean;
  #regions: readonly MemoryRegion[] | undefined;

  /** `hardwareOnly`: the user's option. */
  constructor(session: Session, hardwareOnly: boolean) {
    this.#session = session;
    this.#hardwareOnly = hardwareOnly;
  }

  /** The breakpoint for an address; `kind` as the architecture defines it. */
  async choose(address: Addr, kind: number): Promise<Breakpoint> {
    const software: Breakpoint = { type: 0, address, kind };
    const hardware: Breakpoint = { type: 1, address, kind };
    if (this.#hardwareOnly) return hardware;
    this.#regions ??= await this.#session.memoryRegions();
    const region = regionOf(this.#regions, address);
    if (region !== undefined && region.type !== 'ram') return hardware;
    const { name } = await this.#session.stub();
    return name === 'openocd' && !(await this.#sticks(software)) ? hardware : software;
  }

  /**
   * Replaces refused software breakpoints by hardware ones; false if there were none. From here on only hardware ones
   * are used.
   */
  fallBack(refused: readonly { breakpoint: Breakpoint }[]): boolean {
    if (refused.length === 0 || refused.some(({ breakpoint }) => breakpoint.type === 1)) return false;
    this.#hardwareOnly = true;
    for (const each of refused) each.breakpoint = { ...each.breakpoint, type: 1 };
    return true;
  }

  /**
   * OpenOCD answers OK whether or not the trap instruction arrives in memory, and shows it when memory is read. If
   * the read fails, there is nothing to compare.
   */
  async #sticks(breakpoint: Breakpoint): Promise<boolean> {
    const batch = this.#session.batch();
    const before = batch.readMemory(breakpoint.address, breakpoint.kind);
    const inserted = batch.insertBreakpoint(breakpoint);
    const after = batch.readMemory(breakpoint.address, breakpoint.kind);
    batch.removeBreakpoint(breakpoint);
    await batch.send();
    const was = before.value;
    if (was === undefined || after.value === undefined) return inserted.value;
    return inserted.value && after.value.some((byte, index) => byte !== was[index]);
  }
}

/** The error for breakpoints that the target refused, after it took `taken` others. */
export function breakpointsRefused(
  refused: readonly Breakpoint[],
  taken: readonly Breakpoint[],
  place: 'a probe' | 'a return address',
): RsptraceError {
  const [first] = refused;
  const where = `0x${first?.address.toString(16)}`;
  if (first?.type !== 1) {
    return new RsptraceError('RSP_BREAKPOINT_REFUSED', `the stub refused a breakpoint on ${place} at ${where}`, {
      hint: 'narrow --probe, or try --hw where the code is not in RAM yet',
    });
  }
  const count = taken.filter(({ type }) => type === 1).length;
  const had = count === 0 ? 'it took none' : `all ${count} that it took are in use`;
  return new RsptraceError(
    'RSP_BREAKPOINT_REFUSED',
    `the target has no hardware breakpoint for ${place} at ${where}: ${had}`,
    {
      hint: 'each probed function needs one, and another for each return that is awaited: probe fewer. Code in RAM needs none, but with --hw',
    },
  );
}
