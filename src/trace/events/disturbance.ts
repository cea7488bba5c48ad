import type { TraceFacts } from './events.js';

/** Where tracing itself took time that is in durations, though no probe is made to stop the target. */
export interface Disturbance {
  /**
   * When the target stood all the same, at first hits and for trampolines, and when its next event was: nothing says
   * how much slower it was meanwhile.
   */
  readonly stoppedAt?: readonly number[] | undefined;
  /** How long it waited for room in the ring, all together. */
  readonly ringWaitedNs?: number | undefined;
}

/** Something that lasted, from when on. */
export interface Span {
  readonly from: number;
  readonly ns: number;
}

/** Of a saved trace; undefined if probes were made to stop the target, so that no time in it is its own. */
export function disturbanceOf(facts: TraceFacts | undefined): Disturbance | undefined {
  const { stoppedAt, ringWaitedNs } = facts?.recording ?? {};
  if (facts?.probes?.some(({ engine }) => engine === 'stop')) return undefined;
  return { stoppedAt: stoppedAt?.map(Number), ringWaitedNs };
}

/** Those in which the target did not stand, and how long each surely was without waits for room in the ring. */
export function ownSpans<T extends Span>(
  spans: readonly T[],
  { stoppedAt = [], ringWaitedNs = 0 }: Disturbance,
): readonly T[] {
  return spans
    .filter(({ from, ns }) => !stoppedAt.some((at) => at >= from && at <= from + ns))
    .map((span) => ({ ...span, ns: span.ns - ringWaitedNs }));
}
