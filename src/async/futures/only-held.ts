import type { FutureType } from './types.js';

/** Types cannot hold themselves: only a damaged file says so. */
const mostDepth = 16;

/**
 * What a Future written by hand consists of, if that is one Future in its own bytes. Then what that one consists of,
 * and so on. Offsets are from the first one's start.
 */
export function onlyHeld(future: FutureType): { readonly future: FutureType; readonly offset: number }[] {
  const found: { readonly future: FutureType; readonly offset: number }[] = [];
  for (let at = future, offset = 0; found.length < mostDepth; ) {
    const [held, ...others] = at.states.length > 0 ? [] : at.holds;
    if (held?.future === undefined || others.length > 0 || held.hops.length + held.repeats.length > 0) break;
    offset += held.offset;
    at = held.future;
    found.push({ future: at, offset });
  }
  return found;
}
