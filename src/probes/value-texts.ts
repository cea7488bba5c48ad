import { addr, hex, lowHalf } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import {
  brief,
  formatValue,
  ObjectPlace,
  type Shape,
  type Shapes,
  type Value,
  valueOfBytes,
  valueReading,
} from '../values/index.js';
import { bytesIn, type ValuePlace } from './argument-places.js';
import type { HitMemory } from './reading.js';
import type { MemoryRequest } from './tracer.js';
import { leadsToMemory, shownLimits } from './value-reads.js';

/** Texts of one place that are kept, one per hash. */
const slots = 64;

/**
 * The values of one place as texts. Often the same values come again and again in a register, so their texts are kept.
 */
export class ValueTexts {
  readonly #where: ValuePlace;
  readonly #shape: Shape | undefined;
  /** Undefined if nothing of the value lies in memory. */
  readonly #shapes: Shapes | undefined;
  /** The one register that has all of it. */
  readonly #register: string | undefined;
  readonly #words: (bigint | undefined)[] = [];
  readonly #texts: (string | undefined)[] = [];

  /** Without `shapes` nothing in memory is looked at. */
  constructor(where: ValuePlace, shape: Shape | undefined, shapes: Shapes | undefined) {
    this.#where = where;
    this.#shape = shape;
    const looks = shape !== undefined && (where.kind === 'pointer' || leadsToMemory(shape));
    this.#shapes = looks ? shapes : undefined;
    const parts = where.kind === 'registers' ? where.parts : [];
    this.#register = parts.length === 1 ? parts[0]?.register : undefined;
  }

  /**
   * As Rust would print it, within limits. A pointer to what was not read is its address, and so is a value there. A
   * value without a type is a word in hex. Undefined if it is not known.
   */
  text(registers: RegisterReader, memory: HitMemory): string | undefined {
    const far = this.#inMemory(registers, memory);
    const value = far && 'kind' in far ? brief(far) : undefined;
    if (value !== undefined) return formatValue(value);
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

  /** Memory that must be read before the text is all that it can be. */
  missing(registers: RegisterReader, memory: HitMemory): MemoryRequest | undefined {
    const found = this.#inMemory(registers, memory);
    return found && 'address' in found && !('kind' in found) ? found : undefined;
  }

  /** The value, as far as memory was read; or what must be read first. Undefined if nothing of it lies in memory. */
  #inMemory(registers: RegisterReader, memory: HitMemory): Value | MemoryRequest | undefined {
    const shape = this.#shape;
    const place = shape && this.#shapes && placeOf(this.#where, shape, registers);
    if (!shape || !this.#shapes || !place) return undefined;
    const reading = valueReading(this.#shapes, shape, place, { limits: shownLimits });
    let step = reading.next();
    while (!step.done) {
      const found = memory.bytes(step.value.address, step.value.length);
      if (found === 'unread') return step.value;
      step = reading.next(found === 'unreadable' ? undefined : found);
    }
    return step.value;
  }
}

function placeOf(where: ValuePlace, { size = 0 }: Shape, registers: RegisterReader): ObjectPlace | undefined {
  if (where.kind === 'pointer') {
    const address = registers.register(where.register);
    return address === undefined ? undefined : ObjectPlace.memory(addr(address));
  }
  const bytes = bytesIn(where, size, registers);
  return bytes && ObjectPlace.bytes(bytes);
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
