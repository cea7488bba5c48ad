/**
 * The number of ticks below which a call surely lasts less than a threshold, as the client counts: it rounds both times to nanoseconds.
 * Undefined where there is none.
 */
export function ticksBelow(thresholdNs: number, nanosPerTick: number): bigint | undefined {
  const ticks = Number.isInteger(nanosPerTick)
    ? Math.ceil(thresholdNs / nanosPerTick)
    : Math.floor((thresholdNs - 1) / nanosPerTick);
  return ticks > 0 && Number.isSafeInteger(ticks) ? BigInt(ticks) : undefined;
}
