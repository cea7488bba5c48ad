import { firstWhere } from '../../base/sorted.js';
import type { FrameState } from './frame-state.js';

/** A way to an instruction, and the state in which control comes there. */
export interface Edge {
  readonly at: number;
  readonly state: FrameState;
  /** The return of a call. */
  readonly call: boolean;
}

/** The ways that are still to be followed. Returns of calls come last. */
export class Worklist {
  readonly #strong: Edge[] = [];
  readonly #weak: Edge[] = [];
  #taken = 0;

  /** How many ways were taken. */
  get taken(): number {
    return this.#taken;
  }

  /** A jump, or the next instruction. */
  add(at: number, state: FrameState): void {
    this.#strong.push({ at, state, call: false });
  }

  /**
   * The return of a call. These come in the order of memory: code that returns comes before the cold calls that do
   * not.
   */
  addReturn(at: number, state: FrameState): void {
    const place = firstWhere(this.#weak.length, (index) => (this.#weak[index] as Edge).at <= at);
    this.#weak.splice(place, 0, { at, state, call: true });
  }

  take(): Edge | undefined {
    const edge = this.#strong.pop() ?? this.#weak.pop();
    if (edge !== undefined) this.#taken++;
    return edge;
  }
}
