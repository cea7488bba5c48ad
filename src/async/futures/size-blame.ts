import type { FutureState, FutureType, StateLocal } from './types.js';

/** The reason for a Future's size. */
export interface Blame {
  /** The state that needs most bytes; undefined for a Future written by hand. */
  readonly state: FutureState | undefined;
  /** Its largest member. */
  readonly member: StateLocal;
  readonly next: StateLocal | undefined;
  /** The largest Future in that member; undefined if it holds none in place. */
  readonly future: FutureType | undefined;
}

/** The members of a state, including what it awaits. */
function membersOf(state: FutureState): StateLocal[] {
  const { awaitee } = state;
  if (awaitee === undefined) return [...state.locals];
  const { offset, size, typeName } = awaitee;
  return [{ name: '__awaitee', type: typeName, offset, size }, ...state.locals];
}

/** Bytes that the state's members take up together. States overlap: the one that needs most makes the size. */
export function bytesOf(state: FutureState): number {
  let bytes = 0;
  let end = 0;
  for (const { offset, size } of membersOf(state).sort((a, b) => a.offset - b.offset)) {
    bytes += Math.max(0, offset + size - Math.max(offset, end));
    end = Math.max(end, offset + size);
  }
  return bytes;
}

/** The state and the member that determine a Future's size; undefined for one that has no members. */
export function blameOf(future: FutureType): Blame | undefined {
  if (future.kind === 'impl') return blame(undefined, future.fields, future);
  let worst: FutureState | undefined;
  for (const state of future.states) {
    if (state.name === 'Returned' || state.name === 'Panicked') continue;
    if (worst === undefined || bytesOf(state) > bytesOf(worst)) worst = state;
  }
  return worst === undefined ? undefined : blame(worst, membersOf(worst), future);
}

function blame(state: FutureState | undefined, members: readonly StateLocal[], of: FutureType): Blame | undefined {
  const member = largest(members);
  if (member === undefined) return undefined;
  const inside = (state ?? of).holds.filter(
    ({ hops, offset, size }) =>
      hops.length === 0 && offset >= member.offset && offset + size <= member.offset + member.size,
  );
  const next = largest(members.filter((other) => other !== member));
  return { state, member, next, future: largest(inside)?.future };
}

/**
 * The Futures that determine the size, one inside the other: from the one in `future` down to one that holds no other
 * in place.
 */
export function blameChain(future: FutureType): FutureType[] {
  const chain: FutureType[] = [];
  const seen = new Set([future]);
  for (let at = blameOf(future)?.future; at !== undefined && !seen.has(at); at = blameOf(at)?.future) {
    chain.push(at);
    seen.add(at);
  }
  return chain;
}

function largest<T extends { readonly size: number }>(items: readonly T[]): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || item.size > best.size ? item : best),
    undefined,
  );
}
