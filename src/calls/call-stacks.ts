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
import { AddressMap } from '../base/address-map.js';
import type { SpaceNumbers } from '../target/index.js';
import type { ThreadRef } from '../trace/index.js';
import { AsideCalls } from './aside-calls.js';
import { FixedBounds, LearnedBounds, locationOf } from './stack-bounds.js';
import { callsBelow, innermostOf, type Stack, StackSet, surelyNear } from './stack-set.js';
import { ThreadsByStack } from './threads-by-stack.js';

export interface OpenCall<T> {
  readonly payload: T;
  readonly returnAddress: bigint;
  /** The stack pointer when the call has returned, see {@link stackNumber}. */
  readonly stackPointer: number;
  /** The call around it, as far as is known. */
  readonly parent: OpenCall<T> | undefined;
  /** Open calls around this one when it began, 0 for the outermost. */
  readonly depth: number;
  /** The hart that made it. */
  readonly hart: number;
  /** The owner of its stack, once stack switches are known. */
  readonly thread: ThreadRef | undefined;
  /** Its return is a stop; else a trampoline records it. */
  readonly stops: boolean;
  /** It was reported as lost, and has returned now. */
  readonly wasLost: boolean;
}

/** The hart and the address space of something that happens: 0, or nothing, if there is one only. */
export interface Where {
  readonly hart: number;
  readonly space?: number | undefined;
}

/** Where a call returns to. */
export interface ReturnPlace {
  readonly returnAddress: bigint;
  readonly stackPointer: number;
  /** A trampoline records the return; without one, a stop does. */
  readonly isCall: boolean;
}

interface Kept<T> extends OpenCall<T> {
  parent: Kept<T> | undefined;
  wasLost: boolean;
  /** How many calls began before it. */
  readonly number: number;
  /** The lowest stack pointer above it at which something was seen that would have overwritten it on the same stack. */
  passed: number;
}

interface Space<T> {
  readonly number: number;
  readonly stacks: StackSet<Kept<T>>;
  readonly aside: AsideCalls<Kept<T>>;
}

/** The last place of a hart. */
interface Place<T> {
  readonly space: Space<T>;
  stack: Stack<Kept<T>>;
}

/**
 * A stack pointer as a signed number: exact, since it is a multiple of 8 and canonical addresses have 57 bits at
 * most.
 */
export function stackNumber(stackPointer: bigint): number {
  return Number(BigInt.asIntN(64, stackPointer));
}

export class CallStacks<T> {
  readonly #spaces: Space<T>[] = [];
  /** The result of the last request. */
  #last: Space<T> | undefined;
  readonly #places: (Place<T> | undefined)[] = [];
  readonly #threads: ThreadsByStack;
  readonly #stackBytes: number | undefined;
  /** How many open calls wait for a stop at an address. */
  readonly #awaited = new AddressMap<number>(64);
  /** The sum of these numbers. */
  #awaiting = 0;
  #begun = 0;
  /** Calls belong to stacks: a hart has left one in the middle of a call, and later resumed it or another's. */
  #byStack: boolean;

  /**
   * `stackBytes`: every stack has this size and lies at a multiple of it. Without it the ends of stacks are learned.
   */
  constructor(stackBytes?: number, spaces?: SpaceNumbers) {
    this.#threads = new ThreadsByStack(spaces);
    this.#stackBytes = stackBytes;
    this.#byStack = stackBytes !== undefined;
  }

  /** True when an open call waits for a stop at this return address. */
  awaits(returnAddress: bigint): boolean {
    return (this.#awaited.get(returnAddress) ?? 0) > 0;
  }

  /** True when any does. */
  get awaitsAny(): boolean {
    return this.#awaiting > 0;
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
   * the same place for which `isAgain` is true: a noreturn function is called again on a reused stack.
   */
  enter(
    where: Where,
    { returnAddress, stackPointer, isCall }: ReturnPlace,
    payload: T,
    isAgain: (payload: T) => boolean = never,
  ): { readonly call: OpenCall<T>; readonly lost: readonly OpenCall<T>[] } {
    const { hart } = where;
    const stops = !isCall;
    const space = this.#space(where);
    let lost: OpenCall<T>[] | undefined;
    if (space.aside.size > 0) {
      lost = this.#overwritten(space, hart, stackPointer, (call) => isGone(call, returnAddress, isAgain));
    }
    const stack = this.#find(space, hart, stackPointer) ?? space.stacks.add(stackPointer);
    if (stackPointer > stack.top) space.stacks.raise(stack, stackPointer);
    let parent = innermostOf(stack);
    if (parent && parent.stackPointer < stackPointer) {
      const gone = this.#pass(space, stack, hart, callsBelow(stack, stackPointer), stackPointer);
      lost = lost ? [...lost, ...gone] : gone;
      parent = innermostOf(stack);
    }
    while (parent && parent.stackPointer === stackPointer && isGone(parent, returnAddress, isAgain)) {
      stack.calls.pop();
      this.#unawait(parent);
      if (!parent.wasLost) {
        parent.wasLost = true;
        lost ??= [];
        lost.push(parent);
      }
      parent = innermostOf(stack);
    }
    if (this.#places[hart]?.stack !== stack) this.#arrive(hart, space, stack);
    if (this.#byStack || space.number > 0) stack.thread ??= this.#threadOf(space, stack);
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
    if (stops) {
      this.#awaiting++;
      this.#awaited.set(returnAddress, (this.#awaited.get(returnAddress) ?? 0) + 1);
    }
    stack.calls.push(call);
    return { call, lost: lost ?? none };
  }

  /** A call begins whose return nothing observes. It is not kept, and proves nothing about others: its stack may be any. */
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
  leave(
    where: Where,
    returnAddress: bigint,
    stackPointer: number,
  ): { readonly ended: readonly OpenCall<T>[]; readonly lost: readonly OpenCall<T>[] } {
    const { hart } = where;
    const space = this.#space(where);
    const stack =
      this.#stackEndingAt(space, hart, returnAddress, stackPointer) ??
      this.#comesBack(space, hart, space.aside.endingAt(returnAddress, stackPointer)[0]);
    if (!stack) return { ended: none, lost: none };
    let lost: OpenCall<T>[] | undefined;
    let inner = innermostOf(stack);
    if (inner && inner.stackPointer < stackPointer) {
      lost = this.#pass(space, stack, hart, callsBelow(stack, stackPointer), stackPointer);
      inner = innermostOf(stack);
    }
    const ended: Kept<T>[] = [];
    while (inner && ends(inner, returnAddress, stackPointer)) {
      stack.calls.pop();
      ended.push(inner);
      this.#unawait(inner);
      if (inner.hart !== hart) this.#byStack = true;
      inner = innermostOf(stack);
    }
    if (this.#places[hart]?.stack !== stack) {
      this.#noteSwitch(hart, ended);
      this.#arrive(hart, space, stack);
    }
    return { ended, lost: lost ?? none };
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
    for (const call of gone) this.#unawait(call);
    this.#arrive(where.hart, space, stack);
    return gone;
  }

  /** The calls that {@link leave} would end, in the same order, without ending them. */
  endingAt(where: Where, returnAddress: bigint, stackPointer: number): readonly OpenCall<T>[] {
    const space = this.#space(where);
    const stack = this.#stackEndingAt(space, where.hart, returnAddress, stackPointer);
    if (!stack) return space.aside.size > 0 ? space.aside.endingAt(returnAddress, stackPointer) : none;
    return stack.calls.filter((call) => ends(call, returnAddress, stackPointer)).reverse();
  }

  /** Whether {@link leave} would end any. */
  isOpen(where: Where, returnAddress: bigint, stackPointer: number): boolean {
    const space = this.#space(where);
    if (this.#stackEndingAt(space, where.hart, returnAddress, stackPointer)) return true;
    return space.aside.size > 0 && space.aside.endingAt(returnAddress, stackPointer).length > 0;
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
    const open = this.#spaces.flatMap(({ stacks, aside }) => [
      ...stacks.all
        .filter(({ calls }) => calls.length > 0)
        .sort(byAge)
        .flatMap(({ calls }) => calls.toReversed()),
      ...aside.clear().filter(({ wasLost }) => !wasLost),
    ]);
    this.#spaces.length = 0;
    this.#last = undefined;
    this.#places.length = 0;
    this.#awaited.clear();
    this.#awaiting = 0;
    return open;
  }

  #space(where: Where): Space<T> {
    const number = where.space ?? 0;
    if (this.#last?.number === number) return this.#last;
    this.#last = this.#spaces.find((space) => space.number === number) ?? this.#newSpace(number);
    return this.#last;
  }

  #newSpace(number: number): Space<T> {
    const bounds = this.#stackBytes === undefined ? new LearnedBounds() : new FixedBounds(this.#stackBytes);
    const space: Space<T> = { number, stacks: new StackSet(bounds), aside: new AsideCalls() };
    this.#spaces.push(space);
    return space;
  }

  #own(space: Space<T>, hart: number): Stack<Kept<T>> | undefined {
    const place = this.#places[hart];
    return place?.space === space ? place.stack : undefined;
  }

  #find(space: Space<T>, hart: number, stackPointer: number): Stack<Kept<T>> | undefined {
    const own = this.#own(space, hart);
    if (own && locationOf(stackPointer) >= own.floor) {
      const height = (innermostOf(own)?.stackPointer ?? own.top) - stackPointer;
      if (height >= 0 && height < surelyNear) return own;
    }
    return space.stacks.find(stackPointer, own, (stack) => this.#isTaken(stack, hart));
  }

  /**
   * A hart comes back to a stack. If it leaves another one in the middle of a later call, calls do not nest in time.
   */
  #noteSwitch(hart: number, ended: readonly Kept<T>[]): void {
    const place = this.#places[hart];
    const left = place && innermostOf(place.stack);
    const outermost = ended.at(-1);
    if (left && outermost && left.hart === hart && left.number > outermost.number) this.#byStack = true;
  }

  #isTaken(stack: Stack<Kept<T>>, hart: number): boolean {
    return this.#places.some((place, other) => other !== hart && place?.stack === stack);
  }

  #arrive(hart: number, space: Space<T>, stack: Stack<Kept<T>>): void {
    const place = this.#places[hart];
    if (place?.stack === stack) return;
    const { space: before, stack: left } = place ?? {};
    if (place && before === space) place.stack = stack;
    else this.#places[hart] = { space, stack };
    if (before && left?.calls.length === 0) this.#drop(before, left);
  }

  #drop(space: Space<T>, stack: Stack<Kept<T>>): void {
    if (!this.#places.some((place) => place?.stack === stack)) space.stacks.drop(stack);
  }

  /** Nearly always the hart's own. */
  #stackEndingAt(
    space: Space<T>,
    hart: number,
    returnAddress: bigint,
    stackPointer: number,
  ): Stack<Kept<T>> | undefined {
    const own = this.#own(space, hart);
    const last = own && innermostOf(own);
    if (last && ends(last, returnAddress, stackPointer)) return own;
    if (own && firstEnding(own.calls, returnAddress, stackPointer) < own.calls.length) return own;
    const endsThere = ({ calls }: Stack<Kept<T>>): boolean =>
      firstEnding(calls, returnAddress, stackPointer) < calls.length;
    const there = space.stacks.holding(stackPointer);
    if (there && endsThere(there)) return there;
    // A call that came back to a stack may lie near it, if calls of one stack were taken for those of two.
    return space.stacks.all.find(endsThere);
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
        above - call.stackPointer < surelyNear && !(call.hart !== hart && this.#places[call.hart]?.stack === stack);
      call.passed = Math.min(call.passed, above);
      if (bounds.isGiven || isNear) {
        if (!call.wasLost) lost.push(call);
        call.wasLost = true;
        above = call.stackPointer;
      }
      if (bounds.isGiven) this.#unawait(call);
      else lost.push(...this.#setAside(space, call));
    }
    return lost.reverse();
  }

  #setAside(space: Space<T>, call: Kept<T>): readonly Kept<T>[] {
    const tooOld = space.aside.add(call);
    for (const old of tooOld) this.#unawait(old);
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
        this.#unawait(call);
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
    if (stacks.bounds.learn(call.stackPointer, call.passed)) this.#split(space);
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
    this.#arrive(hart, space, stack);
    return stack;
  }

  #split(space: Space<T>): void {
    const lasts = this.#places.map((place, hart) => place?.stack.calls.findLast((call) => call.hart === hart));
    for (const { calls } of space.stacks.split()) {
      const [outermost] = calls;
      if (outermost) outermost.parent = undefined;
    }
    for (const [hart, place] of this.#places.entries()) {
      const last = lasts[hart];
      const stack = last && place?.space === space ? space.stacks.holding(last.stackPointer) : undefined;
      if (place && stack) place.stack = stack;
    }
  }

  #threadOf(space: Space<T>, stack: Stack<Kept<T>>): ThreadRef {
    const location = locationOf(stack.top);
    const bound = space.stacks.bounds.below(location);
    if (Number.isFinite(bound)) {
      const thread = this.#threads.at(space.number, bound);
      if (!space.stacks.all.some((other) => other.thread === thread)) return thread;
    }
    return this.#threads.at(space.number, Math.floor(location / surelyNear) * surelyNear);
  }

  /** For a call that is neither open nor set aside any more. Until then its return may come and identify its stack. */
  #unawait({ stops, returnAddress }: Kept<T>): void {
    if (!stops) return;
    this.#awaiting--;
    const others = (this.#awaited.get(returnAddress) ?? 0) - 1;
    if (others > 0) this.#awaited.set(returnAddress, others);
    else this.#awaited.delete(returnAddress);
  }
}

const none: readonly never[] = [];
const never = (): boolean => false;

function isApart(stacks: StackSet<Kept<unknown>>, lower: number, upper: number): boolean {
  return stacks.bounds.below(locationOf(upper)) > locationOf(lower);
}

/** The one with the oldest call first. */
function byAge(a: Stack<Kept<unknown>>, b: Stack<Kept<unknown>>): number {
  return (a.calls[0]?.number ?? 0) - (b.calls[0]?.number ?? 0);
}

/** Something else is in its place, and is no tail call of it. */
function isGone<T>(call: OpenCall<T>, returnAddress: bigint, isAgain: (payload: T) => boolean): boolean {
  return call.returnAddress !== returnAddress || isAgain(call.payload);
}

function ends(call: OpenCall<unknown>, returnAddress: bigint, stackPointer: number): boolean {
  return call.stackPointer === stackPointer && call.returnAddress === returnAddress;
}

/**
 * The index of the outermost call that ends there; the number of calls if none does. Stack pointers decrease inwards.
 */
function firstEnding(calls: readonly OpenCall<unknown>[], returnAddress: bigint, stackPointer: number): number {
  let first = calls.length;
  for (let i = calls.length - 1; i >= 0; i--) {
    const call = calls[i] as OpenCall<unknown>;
    if (call.stackPointer > stackPointer) break;
    if (ends(call, returnAddress, stackPointer)) first = i;
  }
  return first;
}
