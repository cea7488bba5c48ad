// Who holds locks, and who waits for them.
import { madeOnce } from '../../base/made-once.js';
import type { ThreadRef } from './events.js';
import type { LockUse } from './lock-events.js';
import type { Contention, LockRow } from './lock-rows.js';

/** Whose a wait or a hold is: a thread's, where threads are known. */
export interface Owner {
  readonly hart: number;
  readonly thread: ThreadRef | undefined;
}

export interface Hold extends Owner {
  readonly lock: Lock;
  readonly use: LockUse;
  /** When the function that took it was entered. */
  readonly wanted: number;
  readonly since: number;
  /** Locks that its owner has taken meanwhile. */
  readonly inside: Hold[];
}

export interface Wait extends Owner {
  readonly lock: Lock;
  readonly use: LockUse;
  readonly since: number;
  /** Who released it meanwhile. */
  blocker: Hold | undefined;
  /** When it was lost. */
  lost: number | undefined;
}

export interface Lock {
  /** What came of it so far. */
  readonly row: Mutable<LockRow>;
  readonly holds: Hold[];
  readonly waits: Set<Wait>;
  readonly contention: Map<string, Mutable<Contention>>;
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };
/** Locks that one owner holds at a time, and more which only memory that is lost explains. */
const mostHeld = 64;

/** What is held, by who holds it: of each owner what it has taken last. */
export class HeldLocks {
  /** By thread, and by the number of the hart. */
  readonly #owners = new Map<ThreadRef | number, Set<Hold>>();

  add(hold: Hold): void {
    for (const owner of ownersOf(hold)) {
      const held = madeOnce(this.#owners, owner, () => new Set<Hold>());
      held.add(hold);
      const [oldest] = held;
      if (oldest && held.size > mostHeld) held.delete(oldest);
    }
  }

  delete(hold: Hold): void {
    for (const owner of ownersOf(hold)) {
      const held = this.#owners.get(owner);
      held?.delete(hold);
      if (held?.size === 0) this.#owners.delete(owner);
    }
  }

  /** What the same owner holds: its thread, or its hart where a thread is not known. */
  of({ thread, hart }: Owner): readonly Hold[] {
    const own = thread ? [...(this.#owners.get(thread) ?? [])] : [];
    const onHart = [...(this.#owners.get(hart) ?? [])];
    return [...own, ...(thread ? onHart.filter((hold) => !hold.thread) : onHart)];
  }

  clear(): void {
    this.#owners.clear();
  }
}

function ownersOf({ thread, hart }: Owner): readonly (ThreadRef | number)[] {
  return thread ? [thread, hart] : [hart];
}

export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.thread && other.thread ? one.thread === other.thread : one.hart === other.hart;
}
