import type { ThreadRef } from '../trace/index.js';
import { locationOf, type StackBounds } from './stack-bounds.js';

/** An open call, as far as it matters where it lies. */
interface Lying {
  /** The stack pointer when the call has returned. */
  readonly stackPointer: number;
}

/** Calls less than this apart are on one stack, unless it is proven otherwise. */
export const surelyNear = 1024;
/** Calls further apart than this are not on one stack. */
const stackReach = 1 << 20;
/** A hart's next outermost call may lie so far above those before. */
const baseSpread = 4096;

/** A stack: what lies from its floor up to its top. */
export interface Stack<C extends Lying> {
  /** The open calls on it, innermost last. */
  calls: C[];
  /** The highest stack pointer that was seen on it. */
  top: number;
  /** No location below this one is its own. */
  floor: number;
  /** Undefined until its calls are kept by stack. */
  thread: ThreadRef | undefined;
}

/** The stacks of one address space, side by side: their ranges never overlap. */
export class StackSet<C extends Lying> {
  readonly bounds: StackBounds;
  /** By their tops, the lowest first. */
  readonly #stacks: Stack<C>[] = [];

  constructor(bounds: StackBounds) {
    this.bounds = bounds;
  }

  get all(): readonly Stack<C>[] {
    return this.#stacks;
  }

  /** In whose range a stack pointer is. */
  holding(stackPointer: number): Stack<C> | undefined {
    const upper = this.#stacks[this.#firstUpTo(stackPointer)];
    return upper && locationOf(stackPointer) >= upper.floor ? upper : undefined;
  }

  /**
   * The stack on which a new call lies, as far as it is known. `own`: where its hart was last; `isTaken`: where
   * another hart was last, and may still be.
   */
  find(stackPointer: number, own: Stack<C> | undefined, isTaken: (stack: Stack<C>) => boolean): Stack<C> | undefined {
    const at = this.#firstUpTo(stackPointer);
    const upper = this.#holds(this.#stacks[at], stackPointer);
    const lower = this.#grows(this.#stacks[at - 1], stackPointer, own);
    if (!upper || !lower) {
      const only = upper ?? lower;
      if (!only || only === own || this.bounds.isExact(locationOf(stackPointer))) return only;
      const isSure = isInside(only, stackPointer) || heightAbove(only, stackPointer) < surelyNear;
      return isSure || !isTaken(only) ? only : undefined;
    }
    if (isInside(upper, stackPointer)) return upper;
    const [below, above] = [stackPointer - lower.top, heightAbove(upper, stackPointer)];
    if (upper === own) return below < above && !isTaken(lower) ? lower : upper;
    if (lower === own) return above < surelyNear && above < below && !isTaken(upper) ? upper : lower;
    return isTaken(upper) && above >= surelyNear ? lower : upper;
  }

  /**
   * A stack that nobody has seen before. Calls that lie on it and were taken for those of the stack above are its
   * own.
   */
  add(stackPointer: number): Stack<C> {
    const at = this.#firstUpTo(stackPointer);
    const above = this.#stacks[at];
    const calls = above ? callsBelow(above, stackPointer + 1) : [];
    const stack: Stack<C> = { calls, top: stackPointer, floor: 0, thread: undefined };
    this.#stacks.splice(at, 0, stack);
    this.#settle(at);
    return stack;
  }

  /** Something on it lies higher than anything before. */
  raise(stack: Stack<C>, stackPointer: number): void {
    const at = this.#stacks.indexOf(stack);
    stack.top = stackPointer;
    this.#settle(at);
  }

  /** Forgets an empty stack, unless it is known to be one. */
  drop(stack: Stack<C>): void {
    const at = this.#stacks.indexOf(stack);
    const above = this.#stacks[at + 1];
    if (at < 0 || (above && this.#isApart(stack, above))) return;
    this.#stacks.splice(at, 1);
    this.#settle(at);
  }

  /** New bounds: a stack that has one inside is two. Gives the lower parts. */
  split(): Stack<C>[] {
    const parts: Stack<C>[] = [];
    const left = [...this.#stacks];
    for (let stack = left.pop(); stack; stack = left.pop()) {
      const bound = this.bounds.below(locationOf(stack.top));
      const outermost = stack.calls.find((call) => locationOf(call.stackPointer) < bound);
      if (!outermost) continue;
      const lower = this.add(outermost.stackPointer);
      parts.push(lower);
      left.push(lower);
    }
    for (const at of this.#stacks.keys()) this.#settle(at);
    return parts;
  }

  #isApart(lower: Stack<C>, upper: Stack<C>): boolean {
    return this.bounds.below(locationOf(upper.top)) >= lower.top;
  }

  #holds(stack: Stack<C> | undefined, stackPointer: number): Stack<C> | undefined {
    if (!stack || locationOf(stackPointer) < stack.floor) return undefined;
    return heightAbove(stack, stackPointer) < stackReach ? stack : undefined;
  }

  #grows(stack: Stack<C> | undefined, stackPointer: number, own: Stack<C> | undefined): Stack<C> | undefined {
    if (!stack) return undefined;
    const location = locationOf(stackPointer);
    if (this.bounds.below(location) > locationOf(stack.top)) return undefined;
    const spread = stack === own ? baseSpread : surelyNear;
    return stackPointer - stack.top <= spread || this.bounds.isExact(location) ? stack : undefined;
  }

  /** Where the first stack is whose top is not below. */
  #firstUpTo(stackPointer: number): number {
    let [low, high] = [0, this.#stacks.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#stacks[middle] as Stack<C>).top < stackPointer) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Works out the floors of a stack and of the one above it. */
  #settle(at: number): void {
    for (const index of [at, at + 1]) {
      const stack = this.#stacks[index];
      const below = this.#stacks[index - 1]?.top ?? Number.NEGATIVE_INFINITY;
      if (stack) stack.floor = Math.max(below, this.bounds.below(locationOf(stack.top)));
    }
  }
}

/** Element -1 of an empty list would be looked up as a property by name, which costs as much as a call. */
export function innermostOf<C extends Lying>({ calls }: { readonly calls: readonly C[] }): C | undefined {
  return calls.length === 0 ? undefined : calls[calls.length - 1];
}

/** Takes out the calls that are further in. */
export function callsBelow<C extends Lying>({ calls }: Stack<C>, stackPointer: number): C[] {
  let from = calls.length;
  while (from > 0 && (calls[from - 1] as C).stackPointer < stackPointer) from--;
  return calls.splice(from);
}

/** A call is open at it, as one that makes a tail call, or calls are open on both sides of it. */
function isInside<C extends Lying>(stack: Stack<C>, stackPointer: number): boolean {
  return (innermostOf(stack)?.stackPointer ?? Number.POSITIVE_INFINITY) <= stackPointer;
}

/** From a place on a stack up to the nearest that is known to be on it. */
function heightAbove<C extends Lying>({ calls, top }: Stack<C>, stackPointer: number): number {
  for (let i = calls.length - 1; i >= 0; i--) {
    const height = (calls[i] as C).stackPointer - stackPointer;
    if (height >= 0) return height;
  }
  return Math.max(0, top - stackPointer);
}
