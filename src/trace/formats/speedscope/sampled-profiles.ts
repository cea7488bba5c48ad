import type { Sample, SampledFrame } from '../../events/events.js';
import type { Spool, SpoolList } from './spool.js';

/** Samples of one hart, or all waits of an off-CPU profile. */
export interface SampledProfile {
  readonly name: string;
  /** Of each sample the number of its stack, and what it weighs in nanoseconds. */
  readonly samples: SpoolList;
  /** Nanoseconds. */
  weight: number;
}

/** Samples by hart. Memory grows with the number of different stacks. */
export class SampledProfiles {
  readonly #spool: Spool;
  readonly #frameOf: (frame: SampledFrame) => number;
  readonly #profiles = new Map<string, SampledProfile>();
  readonly #stacks = new Map<string, number>();
  /** Numbers of frames, the outermost first, by the stack's number. */
  readonly stacks: (readonly number[])[] = [];

  constructor(spool: Spool, frameOf: (frame: SampledFrame) => number) {
    this.#spool = spool;
    this.#frameOf = frameOf;
  }

  get all(): readonly SampledProfile[] {
    return [...this.#profiles.values()];
  }

  /** `hart`: its name. Throws `TRACE_WRITE_FAILED`. */
  add({ stack, periodNs, isWait }: Sample, hart: string): void {
    const name = isWait ? 'waits of tasks' : `${hart}: samples`;
    let profile = this.#profiles.get(name);
    if (profile === undefined) {
      profile = { name, samples: this.#spool.list(), weight: 0 };
      this.#profiles.set(name, profile);
    }
    profile.samples.push(this.#stackOf(stack), periodNs);
    profile.weight += periodNs;
  }

  #stackOf(stack: readonly SampledFrame[]): number {
    const frames = stack.map((frame) => this.#frameOf(frame)).reverse();
    const key = frames.join();
    let number = this.#stacks.get(key);
    if (number === undefined) {
      number = this.stacks.push(frames) - 1;
      this.#stacks.set(key, number);
    }
    return number;
  }
}
