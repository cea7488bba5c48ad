import type { EntryTrampoline, PendingCall, RecordField, RingGeometry } from './probe-code.js';

/** What trampolines of calls that pend ({@link PendingCall}) need on every architecture. */
export type TimeField = RecordField & { readonly from: { readonly kind: 'time' } };

/** A record's time. Throws RangeError if it is not in one place. */
export function timeField(fields: readonly RecordField[]): TimeField {
  const times = fields.filter((field): field is TimeField => field.from.kind === 'time');
  const [time] = times;
  if (time === undefined || times.length > 1 || time.size !== 8)
    throw new RangeError('A call that pends has one time in its record');
  return time;
}

/** Throws RangeError if no call can pend in this ring. */
export function pendingOf({ pending }: Omit<RingGeometry, 'wait'>): PendingCall {
  if (pending === undefined) throw new RangeError('No call pends in this ring');
  return pending;
}

/** Throws RangeError if this call is to pend and cannot. */
export function checkPends({ pends, hook, nesting, outerCopy, counters }: EntryTrampoline): void {
  if (pends && (hook === undefined || nesting !== undefined || outerCopy !== undefined || counters.length > 0))
    throw new RangeError('A call that pends is hooked, has a record, and no poll begins or is looked at');
}
