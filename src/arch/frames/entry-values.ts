import type { Addr } from '../../base/addr.js';
import type { FrameDecoder } from './frame-analysis.js';
import type { CodeRange, ControlFlow, EntryValues, Held } from './frame-model.js';
import type { FrameState } from './frame-state.js';
import { FunctionCode } from './function-code.js';

/** Each instruction is looked at this often at most; a function of which that is too little is left alone. */
const mostVisits = 64;

/**
 * Follows what registers and stack slots hold along the ways of a function that are known. Debug info may lose a
 * parameter that the code still needs; the code itself cannot.
 */
export class FollowedValues<I extends { readonly length: number }> implements EntryValues {
  readonly #code: FunctionCode<I>;
  readonly #flow: ControlFlow;
  readonly #registers: number;
  readonly #states = new Map<number, FrameState>();
  /** The node of each instruction, by its offset in the function. */
  readonly #nodes: ReadonlyMap<number, number>;
  /** What all calls agree on: an exception comes back into the function with it. */
  #thrown: FrameState | undefined;

  constructor(decoder: FrameDecoder<I>, ranges: readonly CodeRange[], flow: ControlFlow, registers: number) {
    this.#code = new FunctionCode(decoder, ranges);
    this.#flow = flow;
    this.#registers = registers;
    this.#nodes = new Map(flow.steps.map(({ address }, node) => [this.#code.offsetOf(address), node]));
    if (!this.#follow()) this.#states.clear();
  }

  at(pc: Addr, register: number): readonly Held[] {
    const state = this.#states.get(this.#nodes.get(this.#code.offsetOf(pc)) ?? -1);
    const found: Held[] = [];
    for (let index = 0; index < this.#registers; index++) {
      const value = state?.values[index];
      if (value?.base === register) found.push({ register: index, offset: value.offset });
    }
    return found;
  }

  /** False if it takes too long. */
  #follow(): boolean {
    const pads = this.#flow.steps.flatMap((_, node) => (this.#mayCatch(node) ? [node] : []));
    const open: number[] = [];
    const reach = (node: number, state: FrameState): void => {
      const before = this.#states.get(node);
      const now = before?.join(state) ?? state;
      if (now === before) return;
      this.#states.set(node, now);
      open.push(node);
    };
    reach(0, this.#code.entryState);
    let left = mostVisits * this.#flow.steps.length;
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (left-- === 0) return false;
      const thrown = this.#leave(node, reach);
      if (thrown) for (const pad of pads) reach(pad, thrown);
    }
    return true;
  }

  /** Whether an exception may come back to an instruction. What fills gaps runs on into code, but nothing runs it. */
  #mayCatch(node: number): boolean {
    const instruction = this.#instruction(node);
    return instruction !== undefined && !this.#flow.isReached(node) && !this.#code.isPadding(instruction);
  }

  #instruction(node: number): I | undefined {
    return this.#code.at(this.#offset(node));
  }

  #offset(node: number): number {
    return this.#code.offsetOf(this.#flow.steps[node]?.address as Addr);
  }

  /** Hands on the state behind an instruction. Returns what an exception comes back with, if that has changed. */
  #leave(node: number, reach: (node: number, state: FrameState) => void): FrameState | undefined {
    const state = this.#states.get(node) as FrameState;
    const offset = this.#offset(node);
    const instruction = this.#instruction(node);
    if (!instruction) return undefined;
    const { next, target, kind } = this.#code.execute(instruction, state, offset);
    for (const to of this.#flow.next[node] ?? []) {
      const isTarget = target !== undefined && this.#nodes.get(target.offset) === to;
      reach(to, (isTarget ? target.state : next) ?? state);
    }
    if (kind !== 'call' || !next) return undefined;
    const before = this.#thrown;
    this.#thrown = before?.join(next) ?? next;
    return this.#thrown === before ? undefined : this.#thrown;
  }
}
