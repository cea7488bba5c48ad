import type { RegisterReader } from '../../../base/memory-reader.js';
import type { PollProbe } from './resolve.js';

/** Tells by the register that holds the tag of a returned `Poll<T>` whether it is ready. */
export class ResultRegister {
  readonly #register: string;
  readonly #isReady: (value: bigint) => boolean;
  /** The same values come again and again, and arithmetic of bigints is slow. */
  #last: { readonly value: bigint; readonly isReady: boolean } | undefined;

  private constructor(register: string, isReady: (value: bigint) => boolean) {
    this.#register = register;
    this.#isReady = isReady;
  }

  /** Undefined if the tag of its polls is in no register. */
  static of({ poll: { result }, resultTag: tag }: PollProbe): ResultRegister | undefined {
    if (!result || !tag) return undefined;
    const { size, isReady } = result;
    const shift = BigInt(tag.shift);
    return new ResultRegister(tag.register, (value) => isReady(BigInt.asUintN(size * 8, value >> shift)));
  }

  /** Undefined if the register is not known. */
  isReady(registers: RegisterReader): boolean | undefined {
    const value = registers.register(this.#register);
    if (value === undefined) return undefined;
    if (this.#last?.value !== value) this.#last = { value, isReady: this.#isReady(value) };
    return this.#last.isReady;
  }
}
