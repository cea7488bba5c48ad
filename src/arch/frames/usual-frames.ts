import type { FrameModel } from './frame-model.js';
import type { FrameState } from './frame-state.js';

/** The frames that are usual in one function, for code to which no way is known. */
export class UsualFrames {
  readonly #model: FrameModel;
  /** States at jumps to unknown places. */
  readonly #indirect: FrameState[] = [];
  readonly #calls: FrameTally;
  #body: FrameTally | undefined;

  constructor(model: FrameModel) {
    this.#model = model;
    this.#calls = new FrameTally(model);
  }

  /** A jump to an unknown place is made in this state. */
  addJump(state: FrameState): void {
    this.#indirect.push(state);
  }

  /** A call comes back in this state. */
  addCall(state: FrameState): void {
    this.#calls.add(state);
  }

  /** The first state with a frame at a jump to an unknown place. */
  get atJump(): FrameState | undefined {
    return this.#indirect.find((state) => hasFrame(this.#model, state));
  }

  /** The commonest frame behind calls. */
  get behindCalls(): FrameState | undefined {
    return this.#calls.commonest;
  }

  /** The commonest frame of `states`: those at all instructions to which a way is known, at the first request. */
  inBody(states: () => Iterable<{ readonly state: FrameState }>): FrameState | undefined {
    if (this.#body === undefined) {
      this.#body = new FrameTally(this.#model);
      for (const { state } of states()) this.#body.add(state);
    }
    return this.#body.commonest;
  }
}

/** Not a tail call, because a tail call leaves when the frame is gone. */
export function hasFrame({ stackPointer }: FrameModel, state: FrameState): boolean {
  return state.values[stackPointer]?.offset !== 0;
}

/**
 * Counts which frame is the commonest of many. Two frames are the same if stack and frame pointer agree. States
 * without a frame do not count, because calls before the frame is set up are those of a tracer at the function's
 * entry.
 */
class FrameTally {
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
