import { type FutureSet, type FutureType, onlyHeld, type TaskPlaces } from '../../../futures/index.js';

/** A selected Future inside a task's own one. */
export interface Wrapped {
  readonly future: FutureType;
  /** From the task's Future. */
  readonly offset: number;
}

/**
 * The Futures of tasks that are not selected and hold selected ones in place: a runtime's or a library's wrappers.
 * Their polls show what is polled as a task. The task is named by what the wrapper consists of; undefined if it
 * holds several, as a join does.
 */
export function taskWrappers(
  futures: FutureSet,
  { tasks }: Pick<TaskPlaces, 'tasks'>,
  allowed: ReadonlySet<FutureType>,
): Map<FutureType, Wrapped | undefined> {
  const found = new Map<FutureType, Wrapped | undefined>();
  for (const future of futures.all) {
    if (!tasks.has(future.typeOffset) || allowed.has(future)) continue;
    const wrapped = onlyHeld(future).find((held) => allowed.has(held.future));
    // Of one that was inlined, what it consists of shows as much.
    if (future.polls.length === 0 && (wrapped || future.inlined.length === 0)) continue;
    if (wrapped || holds(future, allowed)) found.set(future, wrapped);
  }
  return found;
}

/** Whether one of these lies in a Future, or in a box of its, at any depth. */
function holds(future: FutureType, wanted: ReadonlySet<FutureType>): boolean {
  const seen = new Set([future]);
  for (const { holds, states } of seen) {
    for (const { future: held } of [...holds, ...states.flatMap((state) => state.holds)]) {
      if (held === undefined) continue;
      if (wanted.has(held)) return true;
      seen.add(held);
    }
  }
  return false;
}
