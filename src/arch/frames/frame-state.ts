/**
 * A value that the analysis can describe: a register's value at the function's first instruction, plus an offset; or
 * a number.
 */
export interface Value {
  /** A register's index, or {@link CONSTANT}, {@link ADDRESS}, or {@link ALIGNED} and below. */
  readonly base: number;
  readonly offset: number;
}

/** `offset` itself. */
export const CONSTANT = -1;
/** The address `offset` bytes from the function's first instruction. */
export const ADDRESS = -2;
/** This and numbers below it are values that only stand for themselves. */
export const ALIGNED = -3;

const MAX_SLOTS = 256;
const RANGE = 2 ** 31;

/**
 * What registers and memory hold before one instruction, as far as it can be described. Immutable: most instructions
 * change nothing that can be described, and share the state.
 */
export class FrameState {
  readonly values: readonly (Value | undefined)[];
  /** Eight bytes of memory each, by {@link keyOf} their address. */
  readonly #slots: ReadonlyMap<number, Value>;

  constructor(values: readonly (Value | undefined)[], slots: ReadonlyMap<number, Value>) {
    this.values = values;
    this.#slots = slots;
  }

  /** Every register holds its entry value. */
  static entry(registers: number): FrameState {
    return new FrameState(
      Array.from({ length: registers }, (_, base) => ({ base, offset: 0 })),
      new Map(),
    );
  }

  /** True if `index` holds its entry value. */
  holdsOwn(index: number): boolean {
    const value = this.values[index];
    return value !== undefined && value.base === index && value.offset === 0;
  }

  with(index: number, value: Value | undefined): FrameState {
    const before = this.values[index];
    if (same(before, value)) return this;
    const values = this.values.slice();
    values[index] = value;
    return new FrameState(values, this.#slots);
  }

  without(indexes: readonly number[]): FrameState {
    if (indexes.every((index) => this.values[index] === undefined)) return this;
    const values = this.values.slice();
    for (const index of indexes) values[index] = undefined;
    return new FrameState(values, this.#slots);
  }

  load(address: Value | undefined): Value | undefined {
    return address === undefined ? undefined : this.#slots.get(keyOf(address));
  }

  /** A write through an unknown address is assumed not to hit a saved register. */
  store(address: Value | undefined, size: number, value: Value | undefined): FrameState {
    if (address === undefined || address.base === CONSTANT) return this;
    const key = keyOf(address);
    const kept = size === 8 && value !== undefined && value.base >= 0 ? value : undefined;
    if (kept === undefined && this.#slots.size === 0) return this;
    let slots: Map<number, Value> | undefined;
    for (let near = key - 7; near < key + size; near++) {
      if (!this.#slots.has(near) || (near === key && same(this.#slots.get(near), kept))) continue;
      slots ??= new Map(this.#slots);
      slots.delete(near);
    }
    if (kept !== undefined && !this.#slots.has(key) && this.#slots.size < MAX_SLOTS) {
      slots ??= new Map(this.#slots);
      slots.set(key, kept);
    } else if (kept !== undefined && slots !== undefined) slots.set(key, kept);
    return slots === undefined ? this : new FrameState(this.values, slots);
  }

  /** Slots that hold a register's entry value: the slot's address and the register. */
  *saved(): Generator<{ readonly address: Value; readonly register: number }> {
    for (const { address, value } of this.kept()) {
      if (value.offset === 0) yield { address, register: value.base };
    }
  }

  /** All slots. */
  *kept(): Generator<{ readonly address: Value; readonly value: Value }> {
    for (const [key, value] of this.#slots) yield { address: addressOf(key), value };
  }

  /** What both ways to an instruction agree on. */
  join(other: FrameState): FrameState {
    if (other === this) return this;
    let values: (Value | undefined)[] | undefined;
    for (let index = 0; index < this.values.length; index++) {
      const mine = this.values[index];
      if (mine === undefined || same(mine, other.values[index])) continue;
      values ??= this.values.slice();
      values[index] = undefined;
    }
    let slots: Map<number, Value> | undefined;
    if (other.#slots !== this.#slots) {
      for (const [key, value] of this.#slots) {
        if (same(other.#slots.get(key), value)) continue;
        slots ??= new Map(this.#slots);
        slots.delete(key);
      }
    }
    return values === undefined && slots === undefined
      ? this
      : new FrameState(values ?? this.values, slots ?? this.#slots);
  }
}

export function plus(value: Value | undefined, offset: number): Value | undefined {
  if (value === undefined || offset === 0) return value;
  const sum = value.offset + offset;
  return Math.abs(sum) < RANGE ? { base: value.base, offset: sum } : undefined;
}

/** a + b, or a - b, where one of them is a number, or where the difference is one. */
export function sum(a: Value | undefined, b: Value | undefined, isNegative = false): Value | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (b.base === CONSTANT) return plus(a, isNegative ? -b.offset : b.offset);
  if (!isNegative) return a.base === CONSTANT ? plus(b, a.offset) : undefined;
  return a.base === b.base ? { base: CONSTANT, offset: a.offset - b.offset } : undefined;
}

export function same(a: Value | undefined, b: Value | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.base === b.base && a.offset === b.offset);
}

// base + 2 above, offset + 2^31 below bit 32: exact in a double, and neighbours in memory are neighbours here.
function keyOf({ base, offset }: Value): number {
  return (base + 2) * 2 * RANGE + offset + RANGE;
}

function addressOf(key: number): Value {
  const base = Math.floor(key / (2 * RANGE));
  return { base: base - 2, offset: key - base * 2 * RANGE - RANGE };
}

/**
 * The state in which a trap enters a handler that returns in this one; undefined if that is `entry`. At a handler's
 * entry all registers are still those of the interrupted code. One that frees more stack than it has taken is the rest
 * of a handler. A vector has room for few instructions: it has taken the frame and jumped there.
 */
export function enteredBy(entry: FrameState, { values }: FrameState, stackPointer: number): FrameState | undefined {
  const stack = values[stackPointer];
  if (stack?.base !== stackPointer || stack.offset <= 0) return undefined;
  return entry.with(stackPointer, { base: stackPointer, offset: -stack.offset });
}
