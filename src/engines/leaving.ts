// What is done when trampolines leave a target: last records, counters, and whether calls still need code of ours.
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { TargetEngine } from '../inject/index.js';
import { retry } from '../rsp/index.js';
import type { Scratch } from '../scratch/index.js';
import { PacketRam } from '../target/index.js';
import type { EnginesOptions } from './engines-options.js';
import type { Placed } from './placing.js';

/** The longest of the moments in which open calls of a machine may end, in milliseconds; 63 ms in all. */
const longestWait = 32;
/** And where it matters little: 31 ms in all. A debugger that comes later sees the stack of no hook then. */
const briefWait = 16;

/** The most RAM that is searched by packets, in bytes. The target stands for up to 20 ms a MiB. */
const mostByPackets = 256 << 20;

/** The end of an installation. */
export class Leaving {
  readonly #options: EnginesOptions;
  readonly #placed: Placed;
  readonly #scratch: Scratch;
  /** The target has ended, and with it the records in a ring that only a stop could read. */
  tailLost = false;
  /** Calls were open at the end that return through trampolines. */
  trampolinesStay = false;
  #areNeeded = true;

  constructor(options: EnginesOptions, placed: Placed, scratch: Scratch) {
    this.#options = options;
    this.#placed = placed;
    this.#scratch = scratch;
  }

  /** Those calls need the trampolines: they could not be made to return past them. */
  get trampolinesNeeded(): boolean {
    return this.trampolinesStay && this.#areNeeded;
  }

  get #target(): TargetEngine {
    return this.#placed.target;
  }

  /** Reads the last records of a program that has ended. Returns how many are missing. */
  async readOut(isExiting: boolean): Promise<number> {
    const target = this.#target;
    const { shared } = this.#scratch;
    // First of all, because the memory of a QEMU that ends is there for a moment only.
    const isRead =
      shared !== undefined &&
      (await whileThere(async () => {
        while (target.drainLive({ all: true, last: true }));
      }));
    let dropped = 0;
    const isThere =
      isRead &&
      (await whileThere(async () => {
        dropped = await target.left.dropped();
        await this.reportCounts(true);
      }));
    this.tailLost = !isRead && !isExiting;
    if (!isThere) await this.reportCounts(false);
    return dropped + target.finish();
  }

  /**
   * What is left to do when the patches are removed; may be done twice. Returns how many records the target has
   * dropped.
   */
  async putAway(logger: Logger): Promise<number> {
    const { source: scratch } = this.#scratch;
    const dropped = await this.#target.left.dropped();
    const touched = await this.#scratch.verifyGuards();
    if (touched !== undefined) logger.warn({ scratch }, touched);
    const process = this.#scratch.calls && this.#options.arch.probeCode?.process;
    const isIdle = await this.#isIdle(process !== undefined);
    const stands = this.#options.session.state.kind === 'idle';
    // What a process maps for us is its own again, or is unmapped.
    if (!process && stands) await this.#target.left.erase(isIdle);
    if (isIdle) {
      await this.#release();
      return dropped;
    }
    this.trampolinesStay = true;
    if (!process) this.#areNeeded = this.#target.patches.stays || !(await this.#leadPast());
    // Whoever stays may record once more, and wants the same memory.
    if (!this.#areNeeded && this.#options.staysHere?.()) await this.#scratch.release();
    logger.info({ scratch, needed: this.#areNeeded }, 'calls are still open: their trampolines stay');
    if (process && stands && (await this.#target.left.mute())) await this.#scratch.releaseData?.();
    return dropped;
  }

  /** No code of ours can run any more, so that a process may run on between two steps. It may end meanwhile. */
  async #release(): Promise<void> {
    const { session, letRun } = this.#options;
    // Nobody answers a stop any more.
    await session.clearBreakpoints();
    for (const step of [() => this.#placed.unwinder?.remove(), () => this.#scratch.release()]) {
      await letRun?.().catch(() => {});
      if (session.state.kind === 'idle') await step();
    }
  }

  /** False if calls of a machine may still return through trampolines. */
  async #leadPast(): Promise<boolean> {
    const { session, elf, staysHere } = this.#options;
    if (session.state.kind !== 'idle') return true;
    const ram = this.#options.ram ?? (await this.#ramByPackets());
    const areLed = ram !== undefined && (await this.#target.left.leadPast(elf, ram, staysHere?.()));
    if (!(ram instanceof PacketRam) || ram.unread === 0) return areLed;
    const mebibytes = Math.ceil(ram.unread / 2 ** 20);
    this.#options.logger?.warn(
      { mebibytes },
      'the stub does not read all of the RAM: calls may still return through trampolines',
    );
    return false;
  }

  /** Only where a kernel's next page table may not have the trampolines, because it takes long. */
  async #ramByPackets(): Promise<PacketRam | undefined> {
    const { session, logger = silent } = this.#options;
    const ram = this.#scratch.follow && (await PacketRam.find(session, mostByPackets));
    if (ram) {
      const mebibytes = Math.ceil(ram.size / 2 ** 20);
      logger.warn({ mebibytes }, 'calls are open: the RAM is searched for their return addresses, by packets');
    }
    return ram;
  }

  /** Whether no code of ours can run any more. Open calls get time to end where it matters that they have. */
  async #isIdle(inProcess: boolean): Promise<boolean> {
    const { mustEnd, staysHere, endsSoon } = this.#options;
    if (inProcess)
      return (
        (await this.#target.left.becomesIdle(endsSoon?.() ? briefWait : undefined)) &&
        !(await this.#placed.unwinder?.isWalking())
      );
    const isIdle = await this.#target.left.idle();
    // A kernel that turns to another page table meanwhile would have no trampolines in it: nobody would see that.
    const mustStand = staysHere?.() || this.#scratch.follow !== undefined;
    if (isIdle || (mustStand && !mustEnd?.())) return isIdle;
    // Nobody answers a stop any more.
    await this.#options.session.clearBreakpoints();
    return await this.#target.left.becomesIdle(mustEnd?.() ? longestWait : briefWait);
  }

  async reportCounts(reachable: boolean): Promise<void> {
    const all = await retry(this.#options.session, () => this.#target.counted(reachable));
    for (const { probe, words } of all) this.#options.counted(probe, words);
  }
}

/** False if the shared memory has ended with its target. */
async function whileThere(read: () => Promise<void>): Promise<boolean> {
  try {
    await read();
    return true;
  } catch (thrown) {
    if (isClosed(thrown)) return false;
    throw thrown;
  }
}

export function isClosed(thrown: unknown): boolean {
  return thrown instanceof RsptraceError && thrown.code === 'SCRATCH_CLOSED';
}
