// Limits as budget files spell them: times (`1.5ms`), counts (`3`, `{ "min": 1, "max": 5 }`), and head room on both.

import { nanos, timeOf } from '../base/time.js';
import type { ClockInfo } from '../trace/index.js';
import { below, countAt, invalid, type Json, type JsonObject, objectAt, textAt } from './json.js';
import type { HeadRoom } from './section.js';

const units = ['s', 'ms', 'us', 'ns'] as const;

/** A length of time, in nanoseconds. */
export function timeAt(value: Json, at: string): number {
  const time = timeOf(textAt(value, at), units);
  if (time === undefined) throw invalid(at, `is to be a time, not '${value}'`, 'write 500ns, 10us, 1.5ms or 2s');
  return Math.round(time);
}

/** As {@link timeAt} reads it: in the largest unit that keeps it exact to a hundredth. */
export function timeJson(time: number): string {
  const unit = units.find((one) => time >= nanos[one] && (time * 100) % nanos[one] === 0) ?? 'ns';
  return `${time / nanos[unit]}${unit}`;
}

/** Bounds of a count, both included. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** `3`, `{ "min": 1 }`, `{ "max": 5 }`, `{ "min": 1, "max": 5 }`. */
export function boundsAt(value: Json, at: string): Bounds {
  if (typeof value === 'number') {
    const exact = countAt(value, at);
    return { min: exact, max: exact };
  }
  const { min, max } = objectAt(value, at, ['min', 'max']) as Partial<JsonObject>;
  if (min === undefined && max === undefined) throw invalid(at, 'has neither min nor max');
  const bounds = {
    min: min === undefined ? 0 : countAt(min, below(at, 'min')),
    max: max === undefined ? Number.POSITIVE_INFINITY : countAt(max, below(at, 'max')),
  };
  if (bounds.min > bounds.max) throw invalid(at, `has a min of ${bounds.min} above its max of ${bounds.max}`);
  return bounds;
}

export function boundsText({ min, max }: Bounds): string {
  if (min === max) return String(min);
  if (max === Number.POSITIVE_INFINITY) return `at least ${min}`;
  return min === 0 ? `at most ${max}` : `${min} to ${max}`;
}

/** The bound that a count is past, or the upper one. */
export function nearBound({ min, max }: Bounds, count: number): number | undefined {
  const bound = count < min ? min : max;
  return Number.isFinite(bound) ? bound : undefined;
}

/** What was measured, with head room, and not more digits than it is worth. */
export function roomy(measured: number, headRoom: HeadRoom): number {
  if (headRoom === 0) return measured;
  const wanted = measured * (1 + headRoom);
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, wanted))) - 1);
  return Math.ceil(wanted / step) * step;
}

export function roomyBounds(measured: number, headRoom: HeadRoom): Json {
  if (headRoom === 0 || measured <= 1) return measured;
  return { min: Math.floor(measured * (1 - Math.min(1, headRoom))), max: Math.ceil(measured * (1 + headRoom)) };
}

/** A time with head room, of which a tick of the clock is the least. */
export function roomyTime(nanos: number, headRoom: HeadRoom, { resolutionNs }: ClockInfo): string {
  return timeJson(roomy(nanos + (headRoom === 0 ? 0 : Math.ceil(resolutionNs)), headRoom));
}
