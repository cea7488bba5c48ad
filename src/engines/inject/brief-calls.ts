import type { RecordCounter, TimeScale } from './record-dispatcher.js';

/** Calls that are left out in the target, where nothing happens in them. */
export interface BriefCalls {
  /** They last less than so many ticks. */
  readonly below: bigint;
  /** What `ended` of the control block means. */
  readonly time: TimeScale;
}

/** What surely lasts less than a threshold. Undefined where that is nothing, or there is none. */
export function briefCalls(
  thresholdNs: number | undefined,
  { time, nanosPerTick }: RecordCounter,
): BriefCalls | undefined {
  const below = thresholdNs === undefined ? undefined : ticksBelow(thresholdNs, nanosPerTick);
  return below === undefined ? undefined : { below, time };
}

/**
 * The number of ticks below which a call surely lasts less than a threshold, as the client counts: it rounds both times to nanoseconds.
 * Undefined where there is none.
 */
function ticksBelow(thresholdNs: number, nanosPerTick: number): bigint | undefined {
  const ticks = Number.isInteger(nanosPerTick)
    ? Math.ceil(thresholdNs / nanosPerTick)
    : Math.floor((thresholdNs - 1) / nanosPerTick);
  return ticks > 0 && Number.isSafeInteger(ticks) ? BigInt(ticks) : undefined;
}
