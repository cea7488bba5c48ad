import { type Addr, addOffset, hex, highHalf, lowHalf } from '../base/addr.js';
import type { AddressMap } from '../base/address-map.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { type HitMemory, Reading, stackNumberOf } from '../calls/index.js';
import type { PlannedLoad } from '../probes/index.js';
import { mostOuter } from './record-format.js';
import { alignBefore, type BlockFormat, type RecordFormat, recordOffset } from './record-layout.js';
import { type PlacedLoad, RecordReadings } from './record-readings.js';
import type { WordCache } from './word-cache.js';

/** What is copied of outer Futures of one type, if they have inner polls of their own. */
export class OuterReadings {
  /** Undefined if there are more places than a record can hold. */
  readonly #readings: RecordReadings | undefined;

  constructor(loads: readonly PlannedLoad[]) {
    let at = 0;
    const placed = loads.map((load): PlacedLoad => {
      const place = { ...load, at };
      at += load.size;
      return place;
    });
    this.#readings = at > mostOuter ? undefined : new RecordReadings(placed);
  }

  read(view: DataView, copy: number, length: number): Reading | undefined {
    return this.#readings?.read(view, copy, length);
  }
}

/** Finds the copy plan for the Future at an address, whose poll is open. */
export type Outers = Pick<AddressMap<OuterReadings>, 'get'>;

/** What a trampoline writes for a floating-point register while the unit is off; also a NaN that nothing computes. */
const OFF = 2n ** 64n - 1n;

/** One record, read as registers and memory: what a stop would have answered. */
export class RecordReader implements RegisterReader, HitMemory {
  readonly #format: RecordFormat;
  readonly #words: WordCache;
  readonly #outers: Outers;
  readonly #readings: readonly RecordReadings[];
  /** Of each block the bytes at its beginning that were all read. */
  readonly #covered: readonly number[];
  /** A few names only: comparing them costs less than a Map. */
  readonly #names: readonly string[];
  readonly #places: readonly number[];
  #view: DataView = new DataView(new ArrayBuffer(0));
  #offset = 0;

  constructor(format: RecordFormat, words: WordCache, outers: Outers) {
    this.#format = format;
    this.#words = words;
    this.#outers = outers;
    this.#readings = format.blocks.map(({ loads }) => new RecordReadings(loads));
    this.#covered = format.blocks.map(({ loads }) => coveredBytes(loads));
    this.#names = [...format.registers.keys()];
    this.#places = [...format.registers.values()];
  }

  /** Moves to the record at an offset, which all reads refer to until the next call. */
  turn(view: DataView, offset: number): this {
    this.#view = view;
    this.#offset = offset;
    return this;
  }

  register(name: string): bigint | undefined {
    const names = this.#names;
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== name) continue;
      const word = this.word(this.#places[i] as number);
      return word === OFF && this.#format.mayBeOff.has(name) ? undefined : word;
    }
    return undefined;
  }

  halves(name: string, into: Uint32Array, at: number): boolean {
    const names = this.#names;
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== name) continue;
      const place = this.#offset + (this.#places[i] as number);
      into[at] = this.#view.getUint32(place, true);
      into[at + 1] = this.#view.getUint32(place + 4, true);
      return true;
    }
    return false;
  }

  /** Every register that is in the record, as hex. */
  texts(): Record<string, string> {
    return Object.fromEntries(this.#names.map((name, i) => [name, hex(this.word(this.#places[i] as number))]));
  }

  word(at: number): bigint {
    return this.#words.at(this.#view, this.#offset + at);
  }

  /** A word as an unsigned number, exact below 2^53. */
  count(at: number): number {
    const view = this.#view;
    const offset = this.#offset + at;
    return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 2 ** 32;
  }

  /** Offset of the stack pointer, see `stackNumber`. */
  get stackPointer(): number {
    const view = this.#view;
    const offset = this.#offset + recordOffset.stackPointer;
    return stackNumberOf(view.getUint32(offset, true), view.getUint32(offset + 4, true));
  }

  /** Identifies the hart; 0 if records do not name harts. */
  get hart(): bigint {
    const { hartAt } = this.#format;
    return hartAt === undefined ? 0n : this.word(hartAt);
  }

  get returnAddress(): Addr {
    return this.word(recordOffset.returnAddress) as Addr;
  }

  /**
   * The part of memory that the record has: the bytes that were planned, with zeros between them. Undefined for any
   * other place.
   */
  at(address: Addr, length: number): Reading | undefined {
    const { blocks, outerAt, outerCopy } = this.#format;
    let found: Reading | undefined;
    for (let i = 0; i < blocks.length; i++) {
      const { pointerAt, from, align, loads } = blocks[i] as BlockFormat;
      const pointer = this.word(pointerAt);
      if (from === 0 ? pointer !== address : addOffset(pointer as Addr, from) !== address) continue;
      const low = this.#view.getUint32(this.#offset + pointerAt, true);
      if (pointer === 0n || low % alignBefore(from, align) !== 0) continue;
      if (found === undefined) found = this.#readings[i]?.read(this.#view, this.#offset, length);
      else found = this.#withLoads(found, loads);
    }
    if (found !== undefined) return found;
    if (outerAt === undefined || outerCopy === undefined || this.word(outerAt) !== address) return undefined;
    return this.#outers.get(address)?.read(this.#view, this.#offset + outerCopy.at, length);
  }

  bytes(address: Addr, length: number): Uint8Array | 'unreadable' {
    const { blocks, extentsRead } = this.#format;
    const view = this.#view;
    const [low, high] = [lowHalf(address), highHalf(address)];
    for (let i = 0; i < blocks.length; i++) {
      const { pointerAt, from, align, loads } = blocks[i] as BlockFormat;
      const at = this.#offset + pointerAt;
      const [lowest, highest] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
      const inside = (high - highest) * 2 ** 32 + (low - lowest);
      if (from !== 0 || inside < 0 || inside + length > (this.#covered[i] as number)) continue;
      if (lowest % align === 0 && (lowest !== 0 || highest !== 0)) return this.#loaded(loads, inside, length);
    }
    for (const { pointerAt, countAt, at, shift, bytes } of extentsRead) {
      if (length > bytes || length > this.count(countAt) * 2 ** shift || this.word(pointerAt) !== address) continue;
      return this.#copy(at + (low & 7), length);
    }
    return 'unreadable';
  }

  /** Bytes of an object that are all loaded, from `start` on. */
  #loaded(loads: readonly PlacedLoad[], start: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < loads.length; i++) {
      const { offset, size, at } = loads[i] as PlacedLoad;
      for (let k = Math.max(0, start - offset); k < size && offset + k < start + length; k++)
        bytes[offset + k - start] = this.#view.getUint8(this.#offset + at + k);
    }
    return bytes;
  }

  #copy(from: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.#view.getUint8(this.#offset + from + i);
    return bytes;
  }

  /** Two pointers have one value: the bytes of both blocks. */
  #withLoads({ bytes }: Reading, loads: readonly PlacedLoad[]): Reading {
    const both = Uint8Array.from(bytes);
    for (const { offset, size, at } of loads)
      for (let i = 0; i < size && offset + i < both.length; i++)
        both[offset + i] = this.#view.getUint8(this.#offset + at + i);
    return new Reading(both);
  }
}

/** Bytes from the beginning of an object that are loaded without a hole. */
function coveredBytes(loads: readonly PlacedLoad[]): number {
  let end = 0;
  for (const { offset, size } of loads.toSorted((a, b) => a.offset - b.offset)) {
    if (offset > end) break;
    end = Math.max(end, offset + size);
  }
  return end;
}
