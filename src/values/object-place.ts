import { type Addr, addOffset } from '../base/addr.js';
import { littleEndian } from '../base/little-endian.js';
import type { MemoryReader } from '../base/memory-reader.js';

/** A stretch of an object: in memory, known by its bytes (a register, a constant), or nowhere. */
export interface PlacePart {
  readonly size: number;
  readonly at: { readonly address: Addr } | { readonly bytes: Uint8Array } | undefined;
}

/** Why bytes are not available. */
export type Missing =
  | { readonly missing: 'unreadable'; readonly address: Addr; readonly size: number }
  | { readonly missing: 'optimized-out' };

/** Bytes that are to be read. */
export interface MemoryNeed {
  readonly address: Addr;
  readonly length: number;
}

/** Gives bytes of memory; undefined for those that cannot be read. {@link Unread}: they are not known yet. */
export type ReadBytes = (address: Addr, length: number) => Uint8Array | undefined;

/** Thrown where work goes no further without these bytes. */
export class Unread extends Error {
  readonly need: MemoryNeed;

  constructor(need: MemoryNeed) {
    super('memory is not read yet');
    this.need = need;
  }
}

/** Gives what has this key, which is found once. */
type Ask = <T>(key: string, find: () => Promise<T>) => T;

/** Thrown where work goes no further before something is found. */
class Asked extends Error {
  readonly key: string;
  readonly find: () => Promise<unknown>;

  constructor(key: string, find: () => Promise<unknown>) {
    super('it is not known yet');
    this.key = key;
    this.find = find;
  }
}

/** Does work with a target: what it asks for is found, and it is done again from its begin. */
export async function whenKnown<R>(work: (ask: Ask) => R): Promise<R> {
  const known = new Map<string, unknown>();
  const ask: Ask = <T>(key: string, find: () => Promise<T>): T => {
    if (!known.has(key)) throw new Asked(key, find);
    return known.get(key) as T;
  };
  for (;;) {
    try {
      return work(ask);
    } catch (error) {
      if (!(error instanceof Asked)) throw error;
      known.set(error.key, await error.find());
    }
  }
}

/** The same with a target's memory alone. */
export function fromMemory<R>(work: (read: ReadBytes) => R, memory: MemoryReader): Promise<R> {
  return whenKnown((ask) => work(readsOf(ask, memory)));
}

export function readsOf(ask: Ask, memory: MemoryReader): ReadBytes {
  return (address, length) => ask(`${address} ${length}`, () => memory.read(address, length));
}

const OPTIMIZED_OUT: Missing = { missing: 'optimized-out' };

/** The place of an object of the target. */
export class ObjectPlace {
  readonly #parts: readonly PlacePart[];
  readonly #offset: number;
  /** Bytes that were read ahead, and where in the object they begin. */
  readonly #ahead: { readonly start: number; readonly bytes: Uint8Array } | undefined;

  private constructor(parts: readonly PlacePart[], offset: number, ahead?: { start: number; bytes: Uint8Array }) {
    this.#parts = parts;
    this.#offset = offset;
    this.#ahead = ahead;
  }

  static memory(address: Addr): ObjectPlace {
    return new ObjectPlace([{ size: Number.POSITIVE_INFINITY, at: { address } }], 0);
  }

  static bytes(bytes: Uint8Array): ObjectPlace {
    return new ObjectPlace([{ size: bytes.length, at: { bytes } }], 0, { start: 0, bytes });
  }

  /** Pieces of an object, one behind the other. */
  static parts(parts: readonly PlacePart[]): ObjectPlace {
    return new ObjectPlace(parts, 0);
  }

  /** The place of the part that lies `offset` bytes into this one. */
  inside(offset: number): ObjectPlace {
    return offset === 0 ? this : new ObjectPlace(this.#parts, this.#offset + offset, this.#ahead);
  }

  /** Its address; undefined if it is not in memory. */
  get address(): Addr | undefined {
    const found = this.#find(this.#offset);
    const at = found?.part.at;
    return at !== undefined && 'address' in at ? addOffset(at.address, found?.inside ?? 0) : undefined;
  }

  /** The same place with its first `size` bytes read in one read, so that parts of it need no more reads. */
  readAhead(size: number, read: ReadBytes): ObjectPlace {
    const { address } = this;
    if (address === undefined || this.isKnown(size)) return this;
    const found = this.#find(this.#offset);
    if (found === undefined || found.part.size - found.inside < size) return this;
    const bytes = read(address, size);
    return bytes === undefined ? this : new ObjectPlace(this.#parts, this.#offset, { start: this.#offset, bytes });
  }

  /** Whether `size` bytes were read before, or were never in memory. */
  isKnown(size: number): boolean {
    const from = this.#offset - (this.#ahead?.start ?? 0);
    return this.#ahead !== undefined && from >= 0 && from + size <= this.#ahead.bytes.length;
  }

  /** Those bytes. */
  known(size: number): Uint8Array | undefined {
    const { start = 0, bytes } = this.#ahead ?? {};
    return this.isKnown(size) ? bytes?.subarray(this.#offset - start, this.#offset - start + size) : undefined;
  }

  /** The same as an unsigned number. */
  knownNumber(size: number): bigint | undefined {
    const { start = 0, bytes } = this.#ahead ?? {};
    return bytes && this.isKnown(size) ? littleEndian(bytes, this.#offset - start, size) : undefined;
  }

  /** Bytes that need no read from the target, or why there are none; undefined if some lie in its memory. */
  atHand(size: number): Uint8Array | Missing | undefined {
    const known = this.known(size);
    if (known !== undefined) return known;
    const found = this.#find(this.#offset);
    const at = found?.part.at;
    if (found === undefined || at === undefined) return OPTIMIZED_OUT;
    if ('address' in at || size > found.part.size - found.inside) return undefined;
    const bytes = at.bytes.subarray(found.inside, found.inside + size);
    return bytes.length < size ? OPTIMIZED_OUT : bytes;
  }

  read(memory: MemoryReader, size: number): Promise<Uint8Array | Missing> {
    return fromMemory((read) => this.bytesBy(size, read), memory);
  }

  /** The same with bytes that are there at once. */
  bytesBy(size: number, read: ReadBytes): Uint8Array | Missing {
    const known = this.known(size);
    if (known !== undefined) return known;
    const whole = new Uint8Array(size);
    for (let done = 0; done < size; ) {
      const found = this.#find(this.#offset + done);
      if (found?.part.at === undefined) return OPTIMIZED_OUT;
      const { part, inside } = found;
      const { at } = found.part;
      const length = Math.min(size - done, part.size - inside);
      if (at === undefined) return OPTIMIZED_OUT;
      if ('bytes' in at) {
        if (inside + length > at.bytes.length) return OPTIMIZED_OUT;
        whole.set(at.bytes.subarray(inside, inside + length), done);
      } else {
        const address = addOffset(at.address, inside);
        const bytes = read(address, length);
        if (bytes === undefined) return { missing: 'unreadable', address, size: length };
        whole.set(bytes, done);
      }
      done += length;
    }
    return whole;
  }

  #find(offset: number): { part: PlacePart; inside: number } | undefined {
    let start = 0;
    for (const part of this.#parts) {
      if (offset >= start && offset < start + part.size) return { part, inside: offset - start };
      start += part.size;
    }
    return undefined;
  }
}

/** A number as the target keeps it: little-endian, `size` bytes. */
export function wordBytes(value: bigint, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let i = 0, rest = BigInt.asUintN(size * 8, value); i < size; i++, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  return bytes;
}
