import {
  allHeld,
  type FutureSet,
  type FutureType,
  type HeldFuture,
  onlyHeld,
  type TaskPlaces,
} from '../../../async/futures/index.js';
import { addTo } from '../../../base/made-once.js';
import { reachedFrom } from '../../../base/search.js';

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
  let holders: ReadonlySet<FutureType> | undefined;
  // A server's connection has its handler behind a `dyn Future`.
  const mayHold = (future: FutureType): boolean => {
    if (future.states.length === 0) return false;
    holders ??= holdersOf(futures, allowed);
    return holders.has(future);
  };
  for (const future of futures.all) {
    if (!tasks.has(future.typeOffset) || allowed.has(future)) continue;
    const wrapped = onlyHeld(future).find((held) => allowed.has(held.future));
    // Of one that was inlined, what it consists of shows as much.
    if (future.polls.length === 0 && (wrapped || future.inlined.length === 0)) continue;
    if (wrapped || holds(future, allowed) || mayHold(future)) found.set(future, wrapped);
  }
  return found;
}

/** The wrappers around several selected Futures: their polls are the task's own. */
export function joinsAmong(wrappers: ReadonlyMap<FutureType, Wrapped | undefined> | undefined): Set<FutureType> {
  return new Set([...(wrappers ?? [])].flatMap(([future, wrapped]) => (wrapped ? [] : [future])));
}

/**
 * Whether one of these lies in a Future, at any depth, or several behind pointers of its. A single box is but another
 * place for what it holds, which is the task then.
 */
function holds(future: FutureType, wanted: ReadonlySet<FutureType>): boolean {
  return found(future, wanted, ({ hops }) => hops.length === 0) > 0 || found(future, wanted, () => true) > 1;
}

/** How many of these a Future holds in such ways, as its type says. `known`: of what was looked at already. */
function found(
  future: FutureType,
  wanted: ReadonlySet<FutureType>,
  isWay: (held: HeldFuture) => boolean,
  known = new Map<FutureType, number>(),
): number {
  // What holds its own kind adds nothing new.
  known.set(future, 0);
  let sum = 0;
  for (const held of allHeld(future)) {
    if (held.future === undefined || !isWay(held)) continue;
    sum += wanted.has(held.future) ? 1 : (known.get(held.future) ?? found(held.future, wanted, isWay, known));
  }
  known.set(future, sum);
  return sum;
}

/** All Futures that can hold one of these at any depth, in place or through pointers; without these themselves. */
export function holdersOf(futures: FutureSet, held: ReadonlySet<FutureType>): Set<FutureType> {
  const holders = new Map<FutureType, FutureType[]>();
  for (const holder of futures.all) for (const inner of heldBy(futures, holder)) addTo(holders, inner, holder);
  const found = reachedFrom(held, (inner) => holders.get(inner) ?? []);
  for (const one of held) found.delete(one);
  return found;
}

function* heldBy(futures: FutureSet, future: FutureType): Generator<FutureType> {
  for (const one of allHeld(future)) {
    if (one.future) yield one.future;
    // A `dyn Future` may be any Future with a vtable and the same output.
    else if (one.vtable !== undefined) yield* futures.behindDyn(one.typeName);
  }
}
