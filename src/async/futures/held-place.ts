import type { FutureType, HeldFuture, Hop, HopTarget, Place } from './types.js';

/** Futures found in a type, with places counted from its start. The type's holder decides their role. */
export interface Found extends Omit<HeldFuture, 'role'> {
  /** Behind a `&mut`: polled through it, but owned elsewhere. */
  readonly borrowed: boolean;
}

/** At the start of its block, alone and always present. */
export const HERE: Place = { offset: 0, repeats: [], guards: [] };

/** DWARF names a tuple's fields `__0`, `__1`. */
export function fieldName(name: string | undefined): string {
  return name === undefined ? '?' : /^__\d+$/.test(name) ? name.slice(2) : name;
}

export function named(name: string, found: Found): Found {
  const dot = found.path === '' || found.path.startsWith('[') ? '' : '.';
  return { ...found, path: `${name}${dot}${found.path}` };
}

/** Changes the place that lies in the first block: the first pointer's, or the Future's own. */
export function atFirst(found: Found, change: <P extends Place>(place: P) => P): Found {
  const [first, ...rest] = found.hops;
  if (first === undefined) return change(found);
  return { ...found, hops: [change(first), ...rest] };
}

export function shifted<P extends Place>(place: P, by: number): P {
  return {
    ...place,
    offset: place.offset + by,
    guards: place.guards.map((guard) => ({ ...guard, offset: guard.offset + by })),
  };
}

export function repeated<P extends Place>(place: P, count: number, stride: number): P {
  return {
    ...place,
    repeats: [{ count, stride }, ...place.repeats],
    guards: place.guards.map((guard) => ({ ...guard, repeats: guard.repeats + 1 })),
  };
}

export function hopped(found: readonly Found[], pointer: number, to: HopTarget, borrowed = false): Found[] {
  const hop: Hop = { ...HERE, offset: pointer, to };
  return found.map((one) => ({ ...one, hops: [hop, ...one.hops], borrowed: borrowed || one.borrowed }));
}

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

/** All that a Future holds, in any of its states. */
export function allHeld({ holds, states }: FutureType): HeldFuture[] {
  return [...holds, ...states.flatMap((state) => state.holds)];
}
