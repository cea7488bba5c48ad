import type { Addr } from '../../base/addr.js';
import type { Displaced, DisplacedInside, PatchKind } from './displaced.js';

/** Whole instructions that can be run elsewhere: those in the first `length` bytes of `code`, which lies at `start`. */
export interface TakenCode {
  readonly code: Uint8Array;
  readonly start: Addr;
  readonly length: number;
  readonly kind: PatchKind;
  readonly patchLength: number;
  /** See {@link DisplacedInside}. */
  readonly through?: string | undefined;
  readonly hookRefused?: string | undefined;
  readonly signs?: Displaced['signs'];
}

/** What an architecture does with taken instructions. */
export interface Moving<P> {
  decode(code: Uint8Array, start: Addr): readonly P[];
  text(place: P, start: Addr): string;
  /** Some of the instructions as code at `at`; `goesOn`: with a jump to what follows on the last one. */
  encode(taken: TakenCode, places: readonly P[], at: Addr, goesOn: boolean): Uint8Array;
}

/**
 * Tens of thousands are made, and few are asked for their instructions: these are decoded again where they are. It is a
 * class, because an object with functions of its own costs several times as much.
 */
export class Taken<P> implements DisplacedInside, TakenCode {
  readonly code: Uint8Array;
  readonly start: Addr;
  readonly length: number;
  readonly kind: PatchKind;
  readonly patchLength: number;
  readonly through: string | undefined;
  readonly hookRefused: string | undefined;
  readonly signs: Displaced['signs'];
  readonly #moving: Moving<P>;
  readonly #head: number;

  /** The first `head` instructions come before the place that is probed. */
  constructor(moving: Moving<P>, taken: TakenCode, head = 0) {
    this.#moving = moving;
    this.#head = head;
    this.code = taken.code;
    this.start = taken.start;
    this.length = taken.length;
    this.kind = taken.kind;
    this.patchLength = taken.patchLength;
    this.through = taken.through;
    this.hookRefused = taken.hookRefused;
    this.signs = taken.signs;
  }

  get #places(): readonly P[] {
    return this.#moving.decode(this.code.subarray(0, this.length), this.start);
  }

  get text(): string[] {
    return this.#places.map((place) => this.#moving.text(place, this.start));
  }

  get textBefore(): string[] {
    return this.text.slice(0, this.#head);
  }

  relocate(at: Addr): Uint8Array {
    return this.#moving.encode(this, this.#places.slice(this.#head), at, true);
  }

  before(at: Addr): Uint8Array {
    return this.#moving.encode(this, this.#places.slice(0, this.#head), at, false);
  }
}
