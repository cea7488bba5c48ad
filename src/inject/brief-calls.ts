import type { RecordCounter, TimeScale } from './record-dispatcher.js';

/** Calls that the target drops itself, if nothing happens inside them. */
export interface BriefCalls {
  /** They last less than this number of ticks. */
  readonly below: bigint;
  /** What the control block's word `ended` means. */
  readonly time: TimeScale;
}

/** Calls that surely last less than the threshold. Undefined if no call does, or if there is no threshold. */
export function briefCalls(
  thresholdNs: number | undefined,
  { time, nanosPerTick }: RecordCounter,
): BriefCalls | undefined {
  const below = thresholdNs === undefined ? undefined : ticksBelow(thresholdNs, nanosPerTick);
  return below === undefined ? undefined : { below, time };
}

/**
 * The number of ticks below which a call surely lasts less than the threshold. The client's own check rounds both
 * times to nanoseconds, and the number allows for that. Undefined if there is none.
 */
function ticksBelow(thresholdNs: number, nanosPerTick: number): bigint | undefined {
  const ticks = Number.isInteger(nanosPerTick)
    ? Math.ceil(thresholdNs / nanosPerTick)
    : Math.floor((thresholdNs - 1) / nanosPerTick);
  return ticks > 0 && Number.isSafeInteger(ticks) ? BigInt(ticks) : undefined;
}
