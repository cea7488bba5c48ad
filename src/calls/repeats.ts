import type { Addr } from '../base/addr.js';
import type { ThreadRef } from '../trace/index.js';
import type { Here } from './kinds.js';

/** A hart that is inside no call, on a stack that is known. */
export interface IdleHart {
  readonly hart: number;
  readonly stack: object;
  readonly thread: ThreadRef | undefined;
  /** How often the stacks and the harts' places on them have changed so far. */
  readonly changes: number;
}

/** Whether calls of both would lie and be named alike. */
export function isAlike(one: IdleHart, other: IdleHart): boolean {
  return (
    one.stack === other.stack && one.changes === other.changes && one.thread === other.thread && one.hart === other.hart
  );
}

/** An outermost call with all that was inside it. */
export interface Repeat {
  /** The object that it was called with. */
  readonly self: Addr;
  /** Bytes of it. */
  readonly size: number;
  /** Whether the same records mean the same now, of an object at `self`. */
  isSame(self: Addr, hart: IdleHart): boolean;
  /** Emits what they mean, if that {@link isSame}. `times`: of each record, in guest nanoseconds. */
  emit(self: Addr, times: Float64Array): void;
}

/**
 * Outermost calls that come again, with records that differ in nothing but their times and the place of their object.
 * The calls are noted once, and repeated from then on.
 */
export interface Repeats {
  /** What is emitted from now on is one call, until {@link noted}. */
  note(hart: IdleHart): void;
  /** A place of that call. */
  reaches(here: Here): void;
  /** A record of it was understood. */
  understood(): void;
  /** Some probes are left out from now on: what was noted does not hold any more. */
  forget(): void;
  /** It is over: undefined if it is none that can be repeated. */
  noted(hart: IdleHart | undefined): Repeat | undefined;
}

/** The most bytes in front of an object that belong to it: the header of a task. */
const mostBefore = 256;

/** Whether an address moves with an object, given how far behind the object's begin it is. */
export function movesWith(offset: number, size: number): boolean {
  return offset >= -mostBefore && offset < size;
}
