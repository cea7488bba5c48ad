import { type Addr, addr, hex, highHalf, lowHalf } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { HitMemory, MemoryRequest } from '../calls/index.js';
import { formatValue, type Shape, valueOfBytes, valueText, wordText } from '../values/index.js';
import { bytesIn, type ValuePlace } from './argument-places.js';
import { leadsToDevice, leadsToMemory, shownLimits } from './value-reads.js';

/** Texts of one place that are kept, one per hash. */
const slots = 64;

/**
 * The values of one place as texts. Often the same values come again and again in registers, so their texts are kept.
 */
export class ValueTexts {
  readonly #where: ValuePlace;
  readonly #shape: Shape | undefined;
  /** Some of the value lies in memory, which is read. */
  readonly #isFar: boolean;
  /** The registers that have all of it, if these are two at most. */
  readonly #registers: readonly string[];
  /** The halves of the registers that a text is of. */
  readonly #keys = new Uint32Array(4 * slots);
  readonly #texts: (string | undefined)[] = new Array(slots).fill(undefined);

  constructor(where: ValuePlace, shape: Shape | undefined) {
    this.#where = where;
    this.#shape = shape;
    this.#isFar = shape !== undefined && (where.kind === 'pointer' || leadsToMemory(shape)) && !leadsToDevice(shape);
    const parts = where.kind === 'registers' ? where.parts : [];
    const names = parts.flatMap(({ register }) => register ?? []);
    this.#registers = names.length === parts.length && names.length <= 2 ? names : [];
  }

  /**
   * As Rust would print it, within limits. A pointer to what was not read is its address, and so is a value there. A
   * value without a type is a word in hex. Undefined if it is not known.
   */
  text(registers: RegisterReader, memory: HitMemory): string | undefined {
    const far = this.#far(registers, memory);
    if (typeof far === 'string') return far;
    const [first, second] = this.#registers;
    if (first === undefined || !load(registers, first, 0)) return shortText(this.#where, this.#shape, registers);
    seen[2] = 0;
    seen[3] = 0;
    if (second !== undefined && !load(registers, second, 2)) return undefined;
    const [low = 0, high = 0] = seen;
    const mixed = low ^ Math.imul(seen[2] as number, 31);
    const slot = (mixed ^ (mixed >>> 6) ^ (mixed >>> 12)) & (slots - 1);
    const kept = this.#texts[slot];
    if (kept !== undefined && this.#isKey(4 * slot)) return kept;
    this.#keys.set(seen, 4 * slot);
    const text = integerText(this.#where, this.#shape, low, high) ?? shortText(this.#where, this.#shape, registers);
    this.#texts[slot] = text;
    return text;
  }

  #isKey(at: number): boolean {
    const keys = this.#keys;
    for (let i = 0; i < seen.length; i++) if (keys[at + i] !== seen[i]) return false;
    return true;
  }

  /** Memory that must be read before the text is all that it can be. */
  missing(registers: RegisterReader, memory: HitMemory): MemoryRequest | undefined {
    const found = this.#far(registers, memory);
    return typeof found === 'object' ? found : undefined;
  }

  /**
   * The text, as far as memory was read; or what must be read first. Undefined if nothing of it lies in memory, or
   * none of that was read.
   */
  #far(registers: RegisterReader, memory: HitMemory): string | MemoryRequest | undefined {
    const shape = this.#isFar ? this.#shape : undefined;
    const place = shape && placeOf(this.#where, shape.size ?? 0, registers);
    return shape && place !== undefined ? valueText(shape, place, memory, shownLimits) : undefined;
  }
}

/** The address of the value, or its bytes. */
function placeOf(where: ValuePlace, size: number, registers: RegisterReader): Addr | Uint8Array | undefined {
  if (where.kind !== 'pointer') return bytesIn(where, size, registers);
  const address = registers.register(where.register);
  return address === undefined ? undefined : addr(address);
}

/** The halves of two registers. */
const seen = new Uint32Array(4);

/** Notes a register's halves in {@link seen}. False if it is not known. */
function load(registers: RegisterReader, name: string, at: number): boolean {
  if (registers.halves) return registers.halves(name, seen, at);
  const word = registers.register(name);
  if (word === undefined) return false;
  seen[at] = lowHalf(word);
  seen[at + 1] = highHalf(word);
  return true;
}

/** What {@link shortText} says of an integer that fills the low bytes of a register. */
function integerText(where: ValuePlace, shape: Shape | undefined, low: number, high: number): string | undefined {
  const part = where.kind === 'registers' ? where.parts[0] : undefined;
  if (shape?.kind !== 'integer' || part?.register === undefined || part.mask !== undefined) return undefined;
  if (part.offset !== 0 || part.size !== shape.size) return undefined;
  return integerOf(low, high, part.size, shape.signed);
}

/** The integer of so many low bytes. */
function integerOf(low: number, high: number, size: number, signed: boolean): string | undefined {
  if (size === 8) return wordText(low, high, signed);
  if (size > 4) return undefined;
  const above = 32 - 8 * size;
  return String(signed ? (low << above) >> above : (low << above) >>> above);
}

function shortText(where: ValuePlace, shape: Shape | undefined, registers: RegisterReader): string | undefined {
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
