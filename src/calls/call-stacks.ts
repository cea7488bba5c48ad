import { HartPlaces, Spaces, ThreadsByStack } from './hart-places.js';
import type { SpaceNumbers } from './hit.js';
import {
  AwaitedReturns,
  endingThere,
  ends,
  firstEnding,
  goneBy,
  isApart,
  isGone,
  type Kept,
  type Left,
  type OpenCall,
  type ReturnPlace,
  type Space,
  type Where,
} from './open-call.js';
import { locationOf } from './stack-bounds.js';
import { callsBelow, innermostOf, type Stack, surelyNear } from './stack-set.js';

/**
 * Open calls, matched to their returns by return address and stack pointer. So recursion, tail calls, interrupts, and
 * threads that run on any hart come out right.
 *
 * A call is entered with return address R. It is over when any hart reaches R with the stack pointer that a return
 * leaves (S). Two calls with the same R and S are a tail call: the second replaced the first, and one return ends
 * both.
 *
 *      entry outer   R=a S=100         open: outer
 *      entry inner   R=b S=60          open: outer, inner
 *      entry tail    R=b S=60          open: outer, inner, tail      (inner jumped to tail)
 *      at b, sp=60                     ends tail, inner
 *      at a, sp=100                    ends outer
 *
 * An entry with another R at the S of an open call proves that the open call is gone. An entry at a higher S proves
 * it only on the same stack, and the ends of stacks are not known. So the older call is set aside, unless it is near.
 * It may lie on another stack, to which a hart comes back. If it returns, it did lie there, and the bounds between
 * the two stacks are known a little better.
 */

export class CallStacks<T> {
  readonly #spaces: Spaces<T>;
  readonly #places = new HartPlaces<T>();
  readonly #threads: ThreadsByStack;
  readonly #awaited = new AwaitedReturns();
  #begun = 0;
  /** Calls belong to stacks: a hart has left one in the middle of a call, and later resumed it or another's. */
  #byStack: boolean;

  /**
   * `stackBytes`: every stack has this size and lies at a multiple of it. Without it the ends of stacks are learned.
   * `switches`: harts are known to change their stacks in the middle of calls.
   */
  constructor(stackBytes?: number, spaces?: SpaceNumbers, switches = false) {
    this.#threads = new ThreadsByStack(spaces);
    this.#spaces = new Spaces(stackBytes);
    this.#byStack = switches || stackBytes !== undefined;
  }

  /** True when an open call waits for a stop at this return address. */
  awaits(returnAddress: bigint): boolean {
    return this.#awaited.has(returnAddress);
  }

  get awaitsAny(): boolean {
    return this.#awaited.hasAny;
  }

  /** The innermost open call on the stack that a new call with this stack pointer would be on. */
  enclosing(where: Where, stackPointer: number): OpenCall<T> | undefined {
    const calls = this.#find(this.#space(where), where.hart, stackPointer)?.calls;
    if (!calls) return undefined;
    for (let i = calls.length - 1; i >= 0; i--) {
      const call = calls[i] as Kept<T>;
      if (call.stackPointer >= stackPointer) return call;
    }
    return undefined;
  }

  /**
   * A call begins. `lost` are calls that it has overwritten: their return was never seen. `lost` also has calls at
   * the same place for which `isAgain` is true of their payload and the new one. So a noreturn function is called again
   * on a reused stack.
   */
  enter(
    where: Where,
    { returnAddress, stackPointer, isCall }: ReturnPlace,
    payload: T,
    isAgain: (before: T, payload: T) => boolean = never,
  ): { readonly call: OpenCall<T>; readonly lost: readonly OpenCall<T>[] } {
    const { hart } = where;
    const stops = !isCall;
    const space = this.#space(where);
    let lost: OpenCall<T>[] | undefined;
    if (space.aside.size > 0)
      lost = this.#overwritten(space, hart, stackPointer, goneBy({ returnAddress, payload, isAgain }));
    const stack = this.#find(space, hart, stackPointer) ?? space.stacks.add(stackPointer);
    if (stackPointer > stack.top) space.stacks.raise(stack, stackPointer);
    let parent = innermostOf(stack);
    if (parent && parent.stackPointer < stackPointer) {
      const gone = this.#pass(space, stack, hart, callsBelow(stack, stackPointer), stackPointer);
      lost = lost ? [...lost, ...gone] : gone;
      parent = innermostOf(stack);
    }
    while (parent && parent.stackPointer === stackPointer && isGone(parent, returnAddress, payload, isAgain)) {
      stack.calls.pop();
      this.#awaited.remove(parent);
      if (!parent.wasLost) {
        parent.wasLost = true;
        lost ??= [];
        lost.push(parent);
      }
      parent = innermostOf(stack);
    }
    if (this.#places.stack(hart) !== stack) this.#places.arrive(hart, space, stack);
    if (this.#byStack || space.number > 0) stack.thread ??= this.#threads.of(space, stack);
    const call: Kept<T> = {
      payload,
      returnAddress,
      stackPointer,
      parent,
      depth: parent ? parent.depth + 1 : 0,
      hart,
      thread: stack.thread,
      stops,
      wasLost: false,
      number: ++this.#begun,
      passed: Number.POSITIVE_INFINITY,
    };
    if (stops) this.#awaited.add(returnAddress);
    stack.calls.push(call);
    return { call, lost: lost ?? none };
  }

  /**
   * A call begins whose return nothing observes. It is not kept, and proves nothing about others: its stack may be any.
   */
  passing(where: Where, { returnAddress, stackPointer }: ReturnPlace, payload: T): OpenCall<T> {
    const parent = this.enclosing(where, stackPointer);
    const thread = parent?.thread ?? this.#find(this.#space(where), where.hart, stackPointer)?.thread;
    const depth = parent ? parent.depth + 1 : 0;
    const { hart } = where;
    return { payload, returnAddress, stackPointer, parent, depth, hart, thread, stops: false, wasLost: false };
  }

  /**
   * The target is at `returnAddress`: returns the calls that this ends, innermost first. There are none if the stack
   * pointer belongs to a call that is not traced. Calls inside them that are still open have lost their return, or
   * were never inside.
   */
  leave(where: Where, returnAddress: bigint, stackPointer: number): Left<T> {
    const { hart } = where;
    const space = this.#space(where);
    const stack =
      this.#stackEndingAt(space, hart, returnAddress, stackPointer) ??
      this.#comesBack(space, hart, space.aside.endingAt(returnAddress, stackPointer)[0]);
    if (!stack) return nothingLeft;
    let lost: OpenCall<T>[] | undefined;
    let inner = innermostOf(stack);
    if (inner && inner.stackPointer < stackPointer) {
      lost = this.#pass(space, stack, hart, callsBelow(stack, stackPointer), stackPointer);
      inner = innermostOf(stack);
    }
    let ended: Kept<T>[] | undefined;
    while (inner && ends(inner, returnAddress, stackPointer)) {
      stack.calls.pop();
      if (ended) ended.push(inner);
      else ended = [inner];
      this.#awaited.remove(inner);
      if (inner.hart !== hart) this.#byStack = true;
      inner = innermostOf(stack);
    }
    if (this.#places.stack(hart) !== stack) {
      if (ended && this.#places.leavesInside(hart, ended)) this.#byStack = true;
      this.#places.arrive(hart, space, stack);
    }
    return { ended: ended ?? none, lost: lost ?? none };
  }

  /**
   * A panic was caught by the function whose own callees return to this stack pointer. Returns the calls in it that
   * are gone, innermost first.
   */
  unwind(where: Where, stackPointer: number): readonly OpenCall<T>[] {
    const space = this.#space(where);
    const stack = this.#find(space, where.hart, stackPointer);
    const first = stack?.calls.findIndex((call) => call.stackPointer <= stackPointer) ?? -1;
    if (!stack || first < 0) return none;
    const gone = stack.calls.splice(first).reverse();
    for (const call of gone) this.#awaited.remove(call);
    this.#places.arrive(where.hart, space, stack);
    return gone;
  }

  /** The calls that {@link leave} would end, in the same order, without ending them. */
  endingAt(where: Where, returnAddress: bigint, stackPointer: number): readonly OpenCall<T>[] {
    const space = this.#space(where);
    const stack = this.#stackEndingAt(space, where.hart, returnAddress, stackPointer);
    if (!stack) return space.aside.size > 0 ? space.aside.endingAt(returnAddress, stackPointer) : none;
    return stack.calls.filter((call) => ends(call, returnAddress, stackPointer)).reverse();
  }

  /** Whether {@link leave} would end any that was not reported as lost: its frame may be a later call's. */
  isOpen(where: Where, returnAddress: bigint, stackPointer: number): boolean {
    const space = this.#space(where);
    if (this.#stackEndingAt(space, where.hart, returnAddress, stackPointer)) return true;
    return space.aside.size > 0 && space.aside.endingAt(returnAddress, stackPointer).some(({ wasLost }) => !wasLost);
  }

  /**
   * A call begins that is not traced: calls that wait for a return to the same place end. Returns those that were not
   * reported yet.
   */
  overwrite(where: Where, stackPointer: number): readonly OpenCall<T>[] {
    const space = this.#space(where);
    return space.aside.size > 0 ? this.#overwritten(space, where.hart, stackPointer, () => true) : none;
  }

  /** Removes and returns every open call, innermost first: the trace ends here. */
  clear(): OpenCall<T>[] {
    const open = this.#spaces.clear();
    this.#places.clear();
    this.#awaited.clear();
    return open;
  }

  #space({ space = 0 }: Where): Space<T> {
    return this.#spaces.at(space);
  }

  #find(space: Space<T>, hart: number, stackPointer: number): Stack<Kept<T>> | undefined {
    const own = this.#places.own(space, hart);
    if (own && locationOf(stackPointer) >= own.floor) {
      const height = (innermostOf(own)?.stackPointer ?? own.top) - stackPointer;
      if (height >= 0 && height < surelyNear) return own;
    }
    return space.stacks.find(stackPointer, own, this.#places.takenBut(hart));
  }

  /** Nearly always the hart's own. */
  #stackEndingAt(
    space: Space<T>,
    hart: number,
    returnAddress: bigint,
    stackPointer: number,
  ): Stack<Kept<T>> | undefined {
    const own = this.#places.own(space, hart);
    const last = own && innermostOf(own);
    if (last && ends(last, returnAddress, stackPointer)) return own;
    if (own && firstEnding(own.calls, returnAddress, stackPointer) < own.calls.length) return own;
    return endingThere(space.stacks, returnAddress, stackPointer);
  }

  /**
   * A hart is above calls that seemed to be on its stack (outermost first). Those near it are lost, and so are those
   * near these. Others may be on another stack, and are set aside. So are those of a hart that may still be there.
   */
  #pass(
    space: Space<T>,
    stack: Stack<Kept<T>>,
    hart: number,
    passed: readonly Kept<T>[],
    stackPointer: number,
  ): OpenCall<T>[] {
    const lost: Kept<T>[] = [];
    const { bounds } = space.stacks;
    let above = stackPointer;
    let isNear = true;
    for (const call of passed) {
      isNear &&=
        above - call.stackPointer < surelyNear && !(call.hart !== hart && this.#places.stack(call.hart) === stack);
      call.passed = Math.min(call.passed, above);
      if (bounds.isGiven || isNear) {
        if (!call.wasLost) lost.push(call);
        call.wasLost = true;
        above = call.stackPointer;
      }
      if (bounds.isGiven) this.#awaited.remove(call);
      else lost.push(...this.#setAside(space, call));
    }
    return lost.reverse();
  }

  #setAside(space: Space<T>, call: Kept<T>): readonly Kept<T>[] {
    const tooOld = space.aside.add(call);
    for (const old of tooOld) this.#awaited.remove(old);
    const lost = tooOld.filter(({ wasLost }) => !wasLost);
    for (const old of lost) old.wasLost = true;
    return lost;
  }

  /** Those calls set aside that are proven to be gone by something at this place. */
  #overwritten(space: Space<T>, hart: number, stackPointer: number, isGone: (call: Kept<T>) => boolean): OpenCall<T>[] {
    const { aside, stacks } = space;
    const lost: Kept<T>[] = [];
    for (const call of aside.between(stackPointer - surelyNear + 1, stackPointer + 1)) {
      const isHere = call.stackPointer === stackPointer;
      if (isHere && !isGone(call) && !call.wasLost) {
        this.#comesBack(space, hart, call);
        continue;
      }
      if (isHere) {
        aside.remove(call);
        this.#awaited.remove(call);
      } else if (call.hart !== hart || isApart(stacks, call.stackPointer, stackPointer)) continue;
      if (call.wasLost) continue;
      call.wasLost = true;
      lost.push(call);
    }
    return lost;
  }

  /**
   * A call that was set aside goes on: it and the calls around it are on another stack than the entry that passed it.
   */
  #comesBack(space: Space<T>, hart: number, call: Kept<T> | undefined): Stack<Kept<T>> | undefined {
    if (!call) return undefined;
    const { stacks, aside } = space;
    this.#byStack = true;
    if (stacks.bounds.learn(call.stackPointer, call.passed)) this.#places.divide(space);
    const chain: Kept<T>[] = [];
    let around: Kept<T> | undefined = call;
    while (around && !isApart(stacks, call.stackPointer, around.stackPointer) && aside.remove(around)) {
      chain.unshift(around);
      around = around.parent;
    }
    const outermost = chain[0];
    if (!outermost) return undefined;
    outermost.parent = undefined;
    const { stackPointer } = outermost;
    const stack = stacks.holding(stackPointer) ?? stacks.add(stackPointer);
    for (const other of callsBelow(stack, stackPointer)) {
      other.passed = Math.min(other.passed, stackPointer);
      // There is room, because others have just been removed.
      aside.add(other);
    }
    stack.calls.push(...chain);
    this.#places.arrive(hart, space, stack);
    return stack;
  }
}

const none: readonly never[] = [];
const nothingLeft: Left<never> = { ended: none, lost: none };
const never = (): boolean => false;
