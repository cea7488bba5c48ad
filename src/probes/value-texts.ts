import { hex, lowHalf } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { formatValue, type Shape, valueOfBytes } from '../values/index.js';
import { bytesIn, type ValuePlace } from './argument-places.js';

/** Texts of one place that are kept, one per hash. */
const slots = 64;

/**
 * The values of one place in registers as texts. Often the same values come again and again, so their texts are kept.
 */
export class ValueTexts {
  readonly #where: ValuePlace;
  readonly #shape: Shape | undefined;
  /** The one register that has all of it. */
  readonly #register: string | undefined;
  readonly #words: (bigint | undefined)[] = [];
  readonly #texts: (string | undefined)[] = [];

  constructor(where: ValuePlace, shape: Shape | undefined) {
    this.#where = where;
    this.#shape = shape;
    const parts = where.kind === 'registers' ? where.parts : [];
    this.#register = parts.length === 1 ? parts[0]?.register : undefined;
  }

  /**
   * As Rust would print it. A value in memory is shown as its address, a value without a type as a word in hex.
   * Undefined if it is not known.
   */
  text(registers: RegisterReader): string | undefined {
    const word = this.#register === undefined ? undefined : registers.register(this.#register);
    if (word === undefined) return valueText(this.#where, this.#shape, registers);
    const low = lowHalf(word);
    const slot = (low ^ (low >>> 6) ^ (low >>> 12)) & (slots - 1);
    if (this.#words[slot] === word) return this.#texts[slot];
    const text = integerText(this.#where, this.#shape, word) ?? valueText(this.#where, this.#shape, registers);
    this.#words[slot] = word;
    this.#texts[slot] = text;
    return text;
  }
}

/** What {@link valueText} says of an integer that fills the low bytes of a register. */
function integerText(where: ValuePlace, shape: Shape | undefined, word: bigint): string | undefined {
  const part = where.kind === 'registers' ? where.parts[0] : undefined;
  if (shape?.kind !== 'integer' || part?.register === undefined || part.mask !== undefined) return undefined;
  if (part.offset !== 0 || part.size !== shape.size) return undefined;
  const bits = 8 * part.size;
  return (shape.signed ? BigInt.asIntN(bits, word) : BigInt.asUintN(bits, word)).toString();
}

function valueText(where: ValuePlace, shape: Shape | undefined, registers: RegisterReader): string | undefined {
  switch (where.kind) {
    case 'unavailable':
      return undefined;
    case 'pointer': {
      const address = registers.register(where.register);
      return address === undefined ? undefined : hex(address);
    }
    case 'registers': {
      const size = shape === undefined ? 8 : (shape.size ?? 0);
      const bytes = size === 0 ? undefined : bytesIn(where, size, registers);
      if (bytes === undefined) return undefined;
      if (shape !== undefined) return formatValue(valueOfBytes(shape, bytes));
      return hex(new DataView(bytes.buffer).getBigUint64(0, true));
    }
  }
}
