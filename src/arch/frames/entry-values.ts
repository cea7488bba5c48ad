import type { Addr } from '../../base/addr.js';
import type { FrameDecoder } from './frame-analysis.js';
import type { CodeRange, ControlFlow, EntryValues, FrameModel, Held } from './frame-model.js';
import { ALIGNED, type FrameState } from './frame-state.js';
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
  readonly #model: FrameModel;
  readonly #states = new Map<number, FrameState>();
  /** The node of each instruction, by its offset in the function. */
  readonly #nodes: ReadonlyMap<number, number>;
  /** What all calls agree on: an exception comes back into the function with it. */
  #thrown: FrameState | undefined;

  constructor(model: FrameModel, decoder: FrameDecoder<I>, ranges: readonly CodeRange[], flow: ControlFlow) {
    this.#code = new FunctionCode(model, decoder, ranges);
    this.#flow = flow;
    this.#model = model;
    this.#nodes = new Map(flow.steps.map(({ address }, node) => [this.#code.offsetOf(address), node]));
    if (!this.#follow()) this.#states.clear();
  }

  at(pc: Addr, register: number): readonly Held[] {
    const state = this.#states.get(this.#nodes.get(this.#code.offsetOf(pc)) ?? -1);
    const found: Held[] = [];
    for (let index = 0; index < this.#model.registerCount; index++) {
      const value = state?.values[index];
      if (value?.base === register) found.push({ register: index, offset: 0 - value.offset });
    }
    return state ? [...found, ...this.#spilled(state, register)] : found;
  }

  /** Words of the frame that hold a register's entry value. */
  #spilled(state: FrameState, register: number): Held[] {
    const { stackPointer, framePointer } = this.#model;
    return [...state.saved()].flatMap((word) => {
      const pointer = [stackPointer, framePointer].find((index) => state.values[index]?.base === word.address.base);
      const value = pointer === undefined ? undefined : state.values[pointer];
      if (word.register !== register || pointer === undefined || !value) return [];
      return [{ register: pointer, offset: 0, through: word.address.offset - value.offset }];
    });
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

  /**
   * An aligned stack pointer is no known distance from what it was at the entry. It is a value of its own, from which
   * the words of the frame are at known distances. Aligned twice by one instruction it has one value.
   */
  #aligned(node: number, before: FrameState, behind: FrameState): FrameState {
    const { stackPointer } = this.#model;
    const isAligned = before.values[stackPointer]?.base === stackPointer && behind.values[stackPointer] === undefined;
    return isAligned ? behind.with(stackPointer, { base: ALIGNED - node, offset: 0 }) : behind;
  }

  /** Hands on the state behind an instruction. Returns what an exception comes back with, if that has changed. */
  #leave(node: number, reach: (node: number, state: FrameState) => void): FrameState | undefined {
    const state = this.#states.get(node) as FrameState;
    const offset = this.#offset(node);
    const instruction = this.#instruction(node);
    if (!instruction) return undefined;
    const { next: behind, target, kind } = this.#code.execute(instruction, state, offset);
    const next = behind && this.#aligned(node, state, behind);
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
