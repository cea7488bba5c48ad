/**
 * Open calls, matched to their returns by return address and stack pointer, so that recursion, tail calls, interrupts and tasks
 * that interleave come out right.
 *
 * A call is entered with return address R and is over when R is reached with the stack pointer that a return leaves (S). Two
 * calls with the same R and S are a tail call: the second replaced the first, and one return ends both.
 *
 *      entry outer   R=a S=100         open: outer
 *      entry inner   R=b S=60          open: outer, inner
 *      entry tail    R=b S=60          open: outer, inner, tail      (inner jumped to tail)
 *      at b, sp=60                     ends tail, inner
 *      at a, sp=100                    ends outer
 */
export interface OpenCall<T> {
  readonly payload: T;
  readonly returnAddress: bigint;
  /** The stack pointer when the call has returned, see {@link stackNumber}. */
  readonly stackPointer: number;
  readonly parent: OpenCall<T> | undefined;
  /** Open calls around this one, 0 for the outermost. */
  readonly depth: number;
  /** Which hart made it. */
  readonly hart: number;
  /** Its return is a stop; else a trampoline tells of it. */
  readonly stops: boolean;
}

/** Calls further apart than this are not on one stack. */
const stackReach = 1 << 20;
/** Outermost calls on one stack begin within so many bytes. Stacks of different harts may lie side by side. */
const baseSpread = 2048;

/** A stack pointer as a signed number: exact, since it is a multiple of 8 and canonical addresses have 57 bits at most. */
export function stackNumber(stackPointer: bigint): number {
  return Number(BigInt.asIntN(64, stackPointer));
}

export class CallStacks<T> {
  /** One list a stack in use, innermost call last. A thread that waits in the middle of a call keeps its list. */
  readonly #stacks: OpenCall<T>[][] = [];
  readonly #lastOfHart: (OpenCall<T>[] | undefined)[] = [];
  /** Where the outermost call was on the stack that a hart has left empty. */
  readonly #baseOfHart: (number | undefined)[] = [];
  readonly #stackBytes: number | undefined;

  /** `stackBytes`: every stack is so many bytes at a multiple of them. Without, what is near an open call is on its stack. */
  constructor(stackBytes?: number) {
    this.#stackBytes = stackBytes;
  }

  /** True when an open call waits for a stop at this return address. */
  awaits(returnAddress: bigint): boolean {
    return this.#stacks.some((stack) => stack.some((call) => call.stops && call.returnAddress === returnAddress));
  }

  /** The innermost open call on the stack where a new call with this stack pointer would lie. */
  enclosing(hart: number, stackPointer: number): OpenCall<T> | undefined {
    const stack = this.#stackFor(hart, stackPointer);
    if (!stack) return undefined;
    for (let i = stack.length - 1; i >= 0; i--) {
      const call = stack[i] as OpenCall<T>;
      if (call.stackPointer >= stackPointer) return call;
    }
    return undefined;
  }

  /**
   * A call begins. `lost` are calls whose stack it has overwritten: their return was never seen. So are those for which `isAgain`, where
   * they lie in the same place: a function that never returns is called again on a stack that is used again.
   */
  enter(
    hart: number,
    returnAddress: bigint,
    stackPointer: number,
    payload: T,
    isAgain: (payload: T) => boolean = () => false,
    stops = true,
  ): { readonly call: OpenCall<T>; readonly lost: readonly OpenCall<T>[] } {
    let stack = this.#stackFor(hart, stackPointer);
    let lost: OpenCall<T>[] | undefined;
    let others: OpenCall<T>[] | undefined;
    if (!stack) {
      stack = [];
      this.#stacks.push(stack);
    }
    let parent = innermost(stack);
    while (parent) {
      const over = parent.stackPointer < stackPointer;
      const replaced =
        parent.stackPointer === stackPointer && (parent.returnAddress !== returnAddress || isAgain(parent.payload));
      if (!over && !replaced) break;
      stack.pop();
      if (this.#isOthers(parent, hart, stack)) {
        others ??= [];
        others.push(parent);
      } else {
        lost ??= [];
        lost.push(parent);
      }
      parent = innermost(stack);
    }
    const call = { payload, returnAddress, stackPointer, parent, depth: parent ? parent.depth + 1 : 0, hart, stops };
    stack.push(call);
    this.#lastOfHart[hart] = stack;
    if (others) this.#setAside(others);
    return { call, lost: lost ?? none };
  }

  /**
   * The target stands at `returnAddress`: which calls has that ended, innermost first? None, when the stack pointer belongs to a
   * call that is not traced. Calls inside them that are still open have lost their return.
   */
  leave(
    hart: number,
    returnAddress: bigint,
    stackPointer: number,
  ): { readonly ended: readonly OpenCall<T>[]; readonly lost: readonly OpenCall<T>[] } {
    const stack = this.#stackEndingAt(hart, returnAddress, stackPointer);
    if (!stack) return { ended: none, lost: none };
    const ended: OpenCall<T>[] = [];
    let lost: OpenCall<T>[] | undefined;
    let others: OpenCall<T>[] | undefined;
    for (let first = firstEnding(stack, returnAddress, stackPointer); stack.length > first; ) {
      const call = stack.pop() as OpenCall<T>;
      if (ends(call, returnAddress, stackPointer)) ended.push(call);
      else if (this.#isOthers(call, hart, stack)) {
        others ??= [];
        others.push(call);
      } else {
        lost ??= [];
        lost.push(call);
      }
    }
    if (stack.length === 0) this.#drop(stack, stackPointer);
    else this.#lastOfHart[hart] = stack;
    if (others) this.#setAside(others);
    return { ended, lost: lost ?? none };
  }

  /** The calls that {@link leave} would end, in the same order, without ending them. */
  endingAt(hart: number, returnAddress: bigint, stackPointer: number): OpenCall<T>[] {
    const stack = this.#stackEndingAt(hart, returnAddress, stackPointer) ?? [];
    return stack.filter((call) => ends(call, returnAddress, stackPointer)).reverse();
  }

  /** Takes out every open call, innermost first: the trace ends here. */
  clear(): OpenCall<T>[] {
    const open = this.#stacks.flatMap((stack) => stack.toReversed());
    this.#stacks.length = 0;
    this.#lastOfHart.length = 0;
    this.#baseOfHart.length = 0;
    return open;
  }

  /** Nearly always the hart's own. */
  #stackEndingAt(hart: number, returnAddress: bigint, stackPointer: number): OpenCall<T>[] | undefined {
    const own = this.#lastOfHart[hart];
    if (own && firstEnding(own, returnAddress, stackPointer) < own.length) return own;
    return this.#stacks.find((stack) => firstEnding(stack, returnAddress, stackPointer) < stack.length);
  }

  /** The hart's own stack if the call can lie on it, else the stack with the nearest call above. */
  #stackFor(hart: number, stackPointer: number): OpenCall<T>[] | undefined {
    const own = this.#lastOfHart[hart];
    const size = this.#stackBytes;
    if (size !== undefined) {
      // The end of a stack is its own, and the begin of the next is nobody's: nothing has been pushed there.
      const number = Math.floor((stackPointer - 8) / size);
      const isOn = (stack: OpenCall<T>[]): boolean => Math.floor(((stack[0]?.stackPointer ?? 0) - 8) / size) === number;
      return own && isOn(own) ? own : this.#stacks.find(isOn);
    }
    if (own && reaches(own, stackPointer)) return own;
    let best: OpenCall<T>[] | undefined;
    let bestDistance = stackReach;
    for (const stack of this.#stacks) {
      const distance = (stack[0]?.stackPointer ?? Number.NEGATIVE_INFINITY) - stackPointer;
      if (distance >= 0 && distance < bestDistance) {
        best = stack;
        bestDistance = distance;
      }
    }
    const base = own ? undefined : this.#baseOfHart[hart];
    // Nobody is on the stack that this hart was on, and the nearest call lies on the next one.
    const isBehind =
      base !== undefined && isOnStack(base - stackPointer) && stackPointer + bestDistance >= base + baseSpread;
    return isBehind ? undefined : best;
  }

  /** A call of a hart that was last seen on this stack, and which another hart seems to have overwritten: it was taken for one of this stack. */
  #isOthers(call: OpenCall<T>, hart: number, stack: readonly OpenCall<T>[]): boolean {
    return call.hart !== hart && this.#lastOfHart[call.hart] === stack;
  }

  /** Gives calls, innermost first, stacks of their own. */
  #setAside(calls: readonly OpenCall<T>[]): void {
    const stacks = new Map<number, OpenCall<T>[]>();
    for (const call of calls.toReversed()) {
      const stack = stacks.get(call.hart);
      if (stack) {
        stack.push(call);
        continue;
      }
      const own = [call];
      stacks.set(call.hart, own);
      this.#stacks.push(own);
      this.#lastOfHart[call.hart] = own;
    }
  }

  #drop(stack: OpenCall<T>[], base: number): void {
    this.#stacks.splice(this.#stacks.indexOf(stack), 1);
    for (const [hart, last] of this.#lastOfHart.entries()) {
      if (last !== stack) continue;
      this.#lastOfHart[hart] = undefined;
      this.#baseOfHart[hart] = base;
    }
  }
}

/** Element -1 of an empty list would be looked up as a property by name, which costs as much as a call. */
function innermost<T>(stack: readonly OpenCall<T>[]): OpenCall<T> | undefined {
  return stack.length === 0 ? undefined : stack[stack.length - 1];
}

const none: readonly never[] = [];

function reaches(stack: readonly OpenCall<unknown>[], stackPointer: number): boolean {
  const outermost = stack[0];
  if (!outermost) return false;
  return isOnStack(outermost.stackPointer - stackPointer);
}

/** A little above the outermost call still means its stack, popped without our seeing the return. */
function isOnStack(below: number): boolean {
  return below >= -4096 && below < stackReach;
}

function ends(call: OpenCall<unknown>, returnAddress: bigint, stackPointer: number): boolean {
  return call.stackPointer === stackPointer && call.returnAddress === returnAddress;
}

/** Where in a stack the outermost call is that ends there; its length where none does. Stack pointers fall inwards. */
function firstEnding(stack: readonly OpenCall<unknown>[], returnAddress: bigint, stackPointer: number): number {
  let first = stack.length;
  for (let i = stack.length - 1; i >= 0; i--) {
    const call = stack[i] as OpenCall<unknown>;
    if (call.stackPointer > stackPointer) break;
    if (ends(call, returnAddress, stackPointer)) first = i;
  }
  return first;
}
