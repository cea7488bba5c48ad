import type { FrameModel } from './frame-model.js';
import type { FrameState } from './frame-state.js';

/**
 * Counts which frame is the commonest of many. Two frames are the same if stack and frame pointer agree. States
 * without a frame do not count, because calls before the frame is set up are those of a tracer at the function's
 * entry.
 */
export class FrameTally {
  readonly #model: FrameModel;
  readonly #counts = new Map<string, { count: number; readonly state: FrameState }>();
  #best: { readonly count: number; readonly state: FrameState } | undefined;

  constructor(model: FrameModel) {
    this.#model = model;
  }

  add(state: FrameState): void {
    const { stackPointer, framePointer } = this.#model;
    const [sp, top] = [state.values[stackPointer], state.values[framePointer]];
    if (sp?.offset === 0) return;
    const key = `${sp?.offset} ${top?.base} ${top?.offset}`;
    const counted = this.#counts.get(key) ?? { count: 0, state };
    counted.count++;
    this.#counts.set(key, counted);
    // Of two equally common frames the later one: the body comes behind the prologue.
    if (this.#best === undefined || counted.count >= this.#best.count) this.#best = counted;
  }

  /** The first state that had the commonest frame. */
  get commonest(): FrameState | undefined {
    return this.#best?.state;
  }
}
