// What roots are: tasks, or parts of tasks that are not known.

import { AddressMap, inSpace } from '../../base/address-map.js';
import type { Cancelled, RootRef, TraceEvent } from './events.js';

/** The key of a root's place. A part of a task that is not known may lie where another task does. */
export function placeOf({ address, space, isPart }: Pick<RootRef, 'address' | 'space' | 'isPart'>): bigint {
  const place = inSpace(address, space);
  return isPart ? ~place : place;
}

/** Whether it is of a part of a task that is not known. */
export function isOfPart(event: TraceEvent): boolean {
  // `'root' in event` takes as long as all else that most sinks do.
  return (event as Partial<Pick<Cancelled, 'root'>>).root?.isPart === true;
}

/** Roots whose entries are found by their keys: a power of two. */
const recentRoots = 256;

/**
 * What is kept of the newest root at each place: memory grows with places, not with roots. Most events are of a root
 * that had others before, which is found without its place.
 */
export class NewestRoots<T extends { readonly root: RootRef }> {
  readonly #all = new AddressMap<T>();
  readonly #recent: (T | undefined)[] = new Array(recentRoots).fill(undefined);

  /** The newest where this root lies, which may be another one. */
  get(root: RootRef): T | undefined {
    const slot = root.key & (recentRoots - 1);
    const recent = this.#recent[slot];
    if (recent?.root === root) return recent;
    const newest = this.#all.get(placeOf(root));
    if (newest?.root === root) this.#recent[slot] = newest;
    return newest;
  }

  /** It is the newest of its root's place from now on. */
  set(newest: T): void {
    const place = placeOf(newest.root);
    this.#forget(this.#all.get(place));
    this.#all.set(place, newest);
  }

  /** Nothing is known of what lies where this root does. */
  delete(root: RootRef): void {
    const place = placeOf(root);
    this.#forget(this.#all.get(place));
    this.#all.delete(place);
  }

  values(): IterableIterator<T> {
    return this.#all.values();
  }

  /** Nothing is known of any place: the machine was reset, or events are missing. */
  clear(): void {
    this.#all.clear();
    this.#recent.fill(undefined);
  }

  #forget(before: T | undefined): void {
    if (before) this.#recent[before.root.key & (recentRoots - 1)] = undefined;
  }
}

/** Whether a Future is a task's own: with it the task is over. */
export function isOfTask({ root, future, address }: Pick<Cancelled, 'root' | 'future' | 'address'>): boolean {
  return root !== undefined && !root.isPart && root.address === address && root.future.key === future.key;
}
