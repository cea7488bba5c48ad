import { firstWhere } from '../base/search.js';

/** An open call that may be over: something else was at its supposed place on the stack. */
interface AsideCall {
  readonly returnAddress: bigint;
  readonly stackPointer: number;
  /** How many calls began before it. */
  readonly number: number;
  /** Reported as lost. It may return all the same, if that was too early. */
  wasLost: boolean;
}

/** The most calls that wait; beyond it the older half is given up. */
const most = 16_384;

/** Calls that may be over, or whose stack may come back: by stack pointer. */
export class AsideCalls<C extends AsideCall> {
  /** The lowest stack pointer first; of one, the innermost last. */
  #calls: C[] = [];

  get size(): number {
    return this.#calls.length;
  }

  /** Gives up the calls for which there is no more room, and returns them. */
  add(call: C): readonly C[] {
    this.#calls.splice(this.#firstFrom(call.stackPointer + 1), 0, call);
    if (this.#calls.length <= most) return none;
    const byAge = [...this.#calls].sort((a, b) => a.number - b.number);
    const old = new Set(byAge.slice(0, most / 2));
    this.#calls = this.#calls.filter((one) => !old.has(one));
    return [...old];
  }

  remove(call: C): boolean {
    const at = this.#calls.indexOf(call, this.#firstFrom(call.stackPointer));
    if (at >= 0) this.#calls.splice(at, 1);
    return at >= 0;
  }

  /** Those from one stack pointer up to another, without that. */
  between(from: number, to: number): readonly C[] {
    const first = this.#firstFrom(from);
    let end = first;
    while (end < this.#calls.length && (this.#calls[end] as C).stackPointer < to) end++;
    return first === end ? none : this.#calls.slice(first, end);
  }

  /** The calls that a return ends, innermost first. */
  endingAt(returnAddress: bigint, stackPointer: number): C[] {
    const there = this.between(stackPointer, stackPointer + 1);
    return there.filter((call) => call.returnAddress === returnAddress).reverse();
  }

  clear(): C[] {
    const all = this.#calls;
    this.#calls = [];
    return all;
  }

  #firstFrom(stackPointer: number): number {
    const calls = this.#calls;
    return firstWhere(calls.length, (index) => (calls[index] as C).stackPointer >= stackPointer);
  }
}

const none: readonly never[] = [];
