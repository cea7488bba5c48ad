// Methods that have the name of a lock's, and of which nothing is locked when they return.
import { findFutures } from '../../../async/futures/index.js';
import { type DebugInfo, type Die, parametersOf, typeOf } from '../../../dwarf/index.js';
import type { Shape, Shapes } from '../../../values/index.js';

/** Of an async mutex. */
export const takenByPolls = "it makes a Future, whose polls take the lock: -p 'poll:**' shows who waits for it";
/** `RawMutex::lock(f)`: the lock is held while `f` runs. */
export const hasOthers = 'it has other arguments besides the lock, so that it may do more than take it';

/** Whether an argument is more than a mark: a closure may have no size. */
export function isMore(argument: Shape | undefined): boolean {
  return argument?.size !== 0 || argument.name.includes('{closure_env');
}

/** Whether what returns such a type has taken nothing: it is a Future. Few are looked for, because that is dear. */
export type IsFuture = (type: Shape | undefined) => boolean;

export function futureTypes(debug: DebugInfo | undefined): IsFuture {
  let instances: ReadonlySet<string> | undefined;
  return (type) => {
    if (/\{async_/.test(type?.name ?? '')) return true;
    if (!debug || type?.kind !== 'struct' || /Guard/.test(type.name)) return false;
    instances ??= new Set(findFutures(debug).all.map(({ instance }) => instance));
    return instances.has(type.name);
  };
}

/** Why a method that is inlined takes nothing; undefined if it does. */
export function whyUntaken(method: Die, shapes: Shapes, isFuture: IsFuture): string | undefined {
  const type = typeOf(method);
  if (type && isFuture(shapes.of(type))) return takenByPolls;
  const [, ...others] = parametersOf(method);
  return others.some((other) => isMore(shapes.of(typeOf(other)))) ? hasOthers : undefined;
}
