import { madeOnce } from '../base/made-once.js';
import type { ThreadRef } from '../trace/index.js';
import { AsideCalls } from './aside-calls.js';
import type { SpaceNumbers } from './hit.js';
import { byAge, type Kept, type OpenCall, type Space, stackPointerOf } from './open-call.js';
import { FixedBounds, LearnedBounds, locationOf } from './stack-bounds.js';
import { innermostOf, type Stack, StackSet, surelyNear } from './stack-set.js';

/** The last place of a hart. */
interface Place<T> {
  readonly space: Space<T>;
  stack: Stack<Kept<T>>;
}

/** Where each hart was last, and when no stack is needed any more. */
export class HartPlaces<T> {
  readonly #places: (Place<T> | undefined)[] = [];

  /** The stack that a hart was on last, in this space. */
  own(space: Space<T>, hart: number): Stack<Kept<T>> | undefined {
    const place = this.#places[hart];
    return place?.space === space ? place.stack : undefined;
  }

  /** The same in any space. */
  stack(hart: number): Stack<Kept<T>> | undefined {
    return this.#places[hart]?.stack;
  }

  /** Whether another hart than this one is there. Made apart: what has a closure pays for it on every way through. */
  takenBut(hart: number): (stack: Stack<Kept<T>>) => boolean {
    return (stack) => this.#places.some((place, other) => other !== hart && place?.stack === stack);
  }

  arrive(hart: number, space: Space<T>, stack: Stack<Kept<T>>): void {
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

  /** A space's stacks are divided: each hart is where its last call is. */
  divide(space: Space<T>): void {
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

  /**
   * Whether a hart that comes back to a stack leaves another one in the middle of a later call: then calls do not nest
   * in time.
   */
  leavesInside(hart: number, ended: readonly Kept<T>[]): boolean {
    const stack = this.stack(hart);
    const left = stack && innermostOf(stack);
    const outermost = ended.at(-1);
    return left !== undefined && outermost !== undefined && left.hart === hart && left.number > outermost.number;
  }

  clear(): void {
    this.#places.length = 0;
  }
}

/** The address spaces that calls were seen in. */
export class Spaces<T> {
  readonly #byNumber = new Map<number, Space<T>>();
  readonly #stackBytes: number | undefined;
  /** The result of the last request. */
  #last: Space<T> | undefined;

  constructor(stackBytes: number | undefined) {
    this.#stackBytes = stackBytes;
  }

  at(number: number): Space<T> {
    if (this.#last?.number === number) return this.#last;
    this.#last = madeOnce(this.#byNumber, number, () => {
      const bounds = this.#stackBytes === undefined ? new LearnedBounds() : new FixedBounds(this.#stackBytes);
      return { number, stacks: new StackSet(bounds), aside: new AsideCalls() };
    });
    return this.#last;
  }

  /** Removes and returns every open call that was not reported as lost, innermost first. */
  clear(): OpenCall<T>[] {
    const open = [...this.#byNumber.values()].flatMap(({ stacks, aside }) => [
      ...stacks.all
        .filter(({ calls }) => calls.length > 0)
        .sort(byAge)
        .flatMap(({ calls }) => calls.toReversed()),
      ...aside.clear(),
    ]);
    this.#byNumber.clear();
    this.#last = undefined;
    return open.filter(({ wasLost }) => !wasLost);
  }
}

/** The threads of a target, each known by its stack: one that is used again is the same. */
export class ThreadsByStack {
  readonly #threads = new Map<string, ThreadRef>();
  readonly #spaces: SpaceNumbers | undefined;

  constructor(spaces?: SpaceNumbers) {
    this.#spaces = spaces;
  }

  /** Whose stack this is. */
  of<T>({ number, stacks: { bounds, all } }: Space<T>, stack: Stack<Kept<T>>): ThreadRef {
    const location = locationOf(stack.top);
    const bound = bounds.below(location);
    if (Number.isFinite(bound)) {
      const thread = this.#at(number, bound);
      if (!all.some((other) => other.thread === thread)) return thread;
    }
    return this.#at(number, Math.floor(location / surelyNear) * surelyNear);
  }

  /** Whose stack begins at an address of an address space. */
  #at(space: number, lowest: number): ThreadRef {
    const name = `${space} ${lowest}`;
    return madeOnce(this.#threads, name, () => ({
      key: this.#threads.size,
      stack: stackPointerOf(lowest),
      space: this.#spaces?.root(space),
    }));
  }
}
