import { madeOnce } from '../../base/made-once.js';
import { isLibraryFile } from '../../text/index.js';
import { awaitPlace } from '../events/await-place.js';
import type { PollBegin, PollEnd, RootRef } from '../events/events.js';
import { isPointer, type Named } from '../events/future-names.js';

interface Inside {
  named: Named | undefined;
  /** The present poll has shown it. */
  isNew: boolean;
}

/**
 * What tasks are called: by their Future. A library's task, as a server's connection, by the outermost of the program's
 * own Futures in it: the handler.
 */
export class TaskNames {
  readonly #inside = new WeakMap<RootRef, Inside>();

  began({ root, future }: PollBegin, isOutermost: boolean): void {
    if (isOwn(root.future)) return;
    const inside = this.#of(root);
    if (isOutermost) inside.isNew = false;
    if (!inside.isNew && isOwn(future)) Object.assign(inside, { named: future, isNew: true });
  }

  ended(end: PollEnd): void {
    if (!isOwn(end.root.future)) this.#of(end.root).named = waitingName(end);
  }

  /** Of a task that is polled, or waits. */
  of(root: RootRef): Named {
    return this.#inside.get(root)?.named ?? root.future;
  }

  #of(root: RootRef): Inside {
    return madeOnce(this.#inside, root, () => ({ named: undefined, isNew: false }));
  }
}

/** Of a task that waits. Without one of the program's own the outermost that shows where it waits. */
export function waitingName(end: PollEnd): Named {
  const { root, future, state, chain } = end;
  if (isOwn(root.future)) return root.future;
  const outermost = awaitPlace(end)?.outermost;
  if (outermost !== undefined && outermost !== future.future) return { future: outermost, instance: outermost };
  const shown = state === undefined ? chain.find((link) => link.state?.file !== undefined) : undefined;
  // A trace that was read back has names alone.
  return shown === undefined ? root.future : (shown.future ?? { future: shown.typeName, instance: shown.typeName });
}

function isOwn(future: RootRef['future']): boolean {
  return future.file !== undefined && !isLibraryFile(future.file) && !isPointer(future);
}
