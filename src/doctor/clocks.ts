import type { Architecture } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import { type ClockName, clockNames, findClock } from '../clock/index.js';
import type { Session } from '../rsp/index.js';
import type { ClockInfo } from '../trace/index.js';

/** A clock that can be read now. */
export interface UsableClock extends ClockInfo {
  /** Its name for `--clock`. */
  readonly option: ClockName;
  /** The one that `--clock auto` would take now. */
  readonly chosen: boolean;
}

/**
 * The clocks that answer at this stop, the best one first. On x86 the firmware or the kernel has to start some of them
 * first.
 */
export async function usableClocks(session: Session, arch: Architecture, timebaseHz: number): Promise<UsableClock[]> {
  const found: UsableClock[] = [];
  for (const option of clockNames) {
    if (option === 'auto') continue;
    try {
      const { info } = await findClock(session, arch, () => 0, option, timebaseHz);
      found.push({ ...info, option, chosen: found.length === 0 });
    } catch (error) {
      if (!(error instanceof RsptraceError && error.code === 'CLOCK_UNAVAILABLE')) throw error;
    }
  }
  return found;
}
