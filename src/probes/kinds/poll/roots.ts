import { AddressMap, inSpace } from '../../../base/address-map.js';
import type { FutureRef, RootRef } from '../../../trace/index.js';
import type { Opened, Probed } from './traced-poll.js';
import type { TaskBook } from './wakes.js';

/** The roots that are alive: a Future that nobody polls from inside another one. */
export class Roots {
  readonly #ofType = new Map<FutureRef, AddressMap<RootRef>>();
  readonly #tasks: TaskBook | undefined;
  #count = 0;

  /** `tasks` gets each. */
  constructor(tasks: TaskBook | undefined) {
    this.#tasks = tasks;
  }

  /** Those of one type, by address and space. */
  ofType(future: FutureRef): AddressMap<RootRef> {
    const roots = this.#ofType.get(future) ?? new AddressMap(64);
    this.#ofType.set(future, roots);
    return roots;
  }

  /**
   * The root at an address, new if none is known there. `outer`: the task's own Future and where that lies, if the root
   * is a part of it. What was a task once stays one.
   */
  at(
    { roots, ref, future }: Pick<Probed, 'future' | 'ref' | 'roots'>,
    { self, made, space }: Pick<Opened, 'self' | 'made'> & Pick<RootRef, 'space'>,
    outer = { future, self },
  ): RootRef {
    const place = inSpace(self, space);
    let root = roots.get(place);
    const { runtime, isPart = false } = made ?? {};
    if (!root && isPart) {
      root = { key: ++this.#count, future: ref, address: self, space, isPart };
      roots.set(place, root);
    } else if (!root || (root.isPart && !isPart)) {
      const header = this.#tasks?.headerOf(outer.future, outer.self, space);
      // Without a header its wakes cannot be said, so nothing is said of it.
      const known = runtime === undefined || header === undefined ? undefined : { runtime };
      const about = (header === undefined ? undefined : this.#tasks?.about(header)) ?? known;
      root = { key: ++this.#count, future: ref, address: self, space, about };
      roots.set(place, root);
      this.#tasks?.add(root, header);
    }
    return root;
  }

  /** A poll of a root has ended. */
  polled(root: RootRef, result: 'pending' | 'unknown'): void {
    this.#tasks?.polled(root, result);
  }

  /** It is no more. */
  over(root: RootRef): void {
    this.#ofType.get(root.future)?.delete(inSpace(root.address, root.space));
    this.#tasks?.polled(root, 'over');
  }

  clear(): void {
    for (const roots of this.#ofType.values()) roots.clear();
    this.#tasks?.forget();
  }
}
