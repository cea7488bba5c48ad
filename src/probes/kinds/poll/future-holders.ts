import type { FutureSet, FutureType, HeldFuture } from '../../../async/futures/index.js';

/** All Futures that can hold one of these at any depth, in place or through pointers; without these themselves. */
export function holdersOf(futures: FutureSet, held: ReadonlySet<FutureType>): Set<FutureType> {
  const holders = new Map<FutureType, Set<FutureType>>();
  for (const holder of futures.all) {
    for (const inner of heldBy(futures, holder)) {
      const known = holders.get(inner);
      if (known) known.add(holder);
      else holders.set(inner, new Set([holder]));
    }
  }
  const found = new Set<FutureType>();
  const todo = [...held];
  for (let next = todo.pop(); next; next = todo.pop()) {
    for (const holder of holders.get(next) ?? []) {
      if (held.has(holder) || found.has(holder)) continue;
      found.add(holder);
      todo.push(holder);
    }
  }
  return found;
}

function* heldBy(futures: FutureSet, future: FutureType): Generator<FutureType> {
  const holds: HeldFuture[] = [...future.holds, ...future.states.flatMap((state) => state.holds)];
  for (const one of holds) {
    if (one.future) yield one.future;
    // A `dyn Future` may be any Future with a vtable and the same output.
    else if (one.vtable !== undefined) yield* futures.behindDyn(one.typeName);
  }
}
