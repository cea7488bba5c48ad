import { addTo } from '../../base/made-once.js';
import type { FutureEntry } from './entry.js';
import type { PollFunction } from './types.js';

/** Futures of which there is no code, and the poll functions of those that look like them, which may be theirs too. */
export function likePolls(
  all: readonly FutureEntry[],
): { readonly future: FutureEntry; readonly poll: PollFunction }[] {
  const bare = all.filter(({ polled }) => polled.functions.length === 0 && polled.inlined.length === 0);
  const sizes = new Set(bare.map(({ size }) => size));
  const hosts = new Map<string, FutureEntry[]>();
  // What a Future looks like costs time.
  for (const host of all)
    if (host.polled.functions.length > 0 && sizes.has(host.size)) addTo(hosts, lookOf(host), host);
  return bare.flatMap((future) =>
    (hosts.get(lookOf(future)) ?? [])
      .filter(({ states }) => states.length === future.states.length)
      .flatMap(({ polled }) => polled.functions)
      .map((poll) => ({ future, poll })),
  );
}

/** If it is equal for two Futures, their poll functions may have the same code: one async fn, or the same members. */
function lookOf({ kind, size, future, instance, fields }: FutureEntry): string {
  if (kind !== 'impl') return `${kind} ${size} ${future}`;
  // Of those without a size only the name says anything.
  return size === 0 ? instance : `${size} ${fields.map(({ type, offset }) => `${offset}:${type}`).join()}`;
}
