import type { FloatPassing } from '../arch/index.js';
import type { Scalar } from './scalar-layout.js';

/** Where an argument is when a function's first instruction is about to run, or a result when it has returned. */
export type ValuePlace =
  /** No parts: a type without size. */
  | { readonly kind: 'registers'; readonly parts: readonly ValuePart[] }
  /** In memory, at the address that the register holds. */
  | { readonly kind: 'pointer'; readonly register: string }
  /** Not known, or not available from registers. `why`: what the debug info says of it. */
  | { readonly kind: 'unavailable'; readonly why?: string };

/** Some bytes of a value, `offset` bytes into it: those of a register, or always the same ones. */
export type ValuePart = {
  readonly offset: number;
  readonly size: number;
} /** `mask`: only these bits of the register count. */ & (
  | { readonly register: string; readonly mask?: bigint; readonly constant?: never }
  | { readonly constant: bigint; readonly register?: never }
);

export const unavailable: ValuePlace = { kind: 'unavailable' };

/** Registers that are taken before the first argument that debug info names. */
export interface HiddenRegisters {
  /** So many, or at most so many. */
  readonly most: number;
  /** Of these, the one for the result's address, if there may be one. */
  readonly result: 0 | 1;
  readonly isKnown: boolean;
}

/** The registers for numbers, and for how wide ones. */
interface Numbers extends Pick<FloatPassing, 'widest' | 'overflow'> {
  readonly names: readonly string[];
}

/** The registers of one call's arguments or result, taken in turn. */
export class PassingRegisters {
  readonly #names: readonly string[];
  readonly #floats: Numbers | undefined;
  #used: number;
  #floatsUsed = 0;
  #isKnown: boolean;
  /** An argument is passed on the stack; also true if that is not known. */
  stack = false;

  constructor(names: readonly string[], floats: Numbers | undefined, { most, isKnown }: HiddenRegisters) {
    this.#names = names;
    this.#floats = floats;
    this.#used = most;
    this.#isKnown = isKnown;
  }

  /** For a scalar: a number has a register of its own kind while there is one. */
  takeFor({ float, size }: Pick<Scalar, 'float' | 'size'>): string | undefined {
    if (!float || this.#floats === undefined || size > this.#floats.widest) return this.take();
    const register = this.#floats.names[this.#floatsUsed];
    if (register === undefined && this.#floats.overflow === 'integer-registers') return this.take();
    this.#floatsUsed++;
    if (register === undefined) this.stack = true;
    return this.#isKnown ? register : undefined;
  }

  scalars(scalars: readonly Scalar[]): ValuePlace {
    const parts = scalars.map(({ offset, size, float }) => ({
      register: this.takeFor({ float, size }),
      offset,
      size,
    }));
    return parts.every(hasRegister) ? { kind: 'registers', parts } : unavailable;
  }

  /** Whether each of them finds a register of its kind. */
  hasFor(scalars: readonly Scalar[]): boolean {
    const wide = scalars.filter(({ float }) => float).length;
    const fits = this.#floatsUsed + wide <= (this.#floats?.names.length ?? 0);
    return fits && this.fits(scalars.length - wide);
  }

  take(): string | undefined {
    const register = this.#names[this.#used++];
    if (register === undefined) this.stack = true;
    return this.#isKnown ? register : undefined;
  }

  byAddress(): ValuePlace {
    const register = this.take();
    return register === undefined ? unavailable : { kind: 'pointer', register };
  }

  onStack(): ValuePlace {
    this.stack = true;
    return unavailable;
  }

  /** On the stack, and nobody gets a register of the kinds that these wanted. */
  closed(scalars: readonly Scalar[]): ValuePlace {
    if (scalars.some(({ float }) => float)) this.#floatsUsed = this.#floats?.names.length ?? 0;
    if (scalars.some(({ float }) => !float)) this.#used = this.#names.length;
    return this.onStack();
  }

  /** Leaves one out, if that makes the number of the next one even. */
  align(): void {
    this.#used += this.#used % 2;
  }

  /** It takes at most so many registers. Nothing is known of the arguments behind it. */
  lose(most: number): ValuePlace {
    this.#isKnown = false;
    for (let i = 0; i < most; i++) this.take();
    return unavailable;
  }

  /** Nothing is known of it, nor of the arguments behind it: they may be on the stack. */
  loseAll(): ValuePlace {
    this.#isKnown = false;
    return this.onStack();
  }

  fits(words: number): boolean {
    return this.#used + words <= this.#names.length;
  }
}

function hasRegister<T extends { readonly register: string | undefined }>(part: T): part is T & { register: string } {
  return part.register !== undefined;
}
