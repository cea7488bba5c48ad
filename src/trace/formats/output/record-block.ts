/** Longer records are copied faster by the platform. */
const SHORT = 1024;

/** Whole records on their way to a file, in memory of a fixed size. */
export class RecordBlock {
  readonly bytes: Buffer;
  /** Where each record ends. Kept when it is cleared, because growing it anew costs more. */
  readonly #ends: number[] = [];
  #count = 0;
  #length = 0;

  constructor(capacity: number) {
    this.bytes = Buffer.alloc(capacity);
  }

  /** Bytes of the records. */
  get length(): number {
    return this.#length;
  }

  /** How many records it has. */
  get count(): number {
    return this.#count;
  }

  hasRoom(bytes: number): boolean {
    return this.#length + bytes <= this.bytes.length;
  }

  /** There is room for them. */
  addBytes(bytes: Uint8Array, length: number): void {
    copyBytes(bytes, length, this.bytes, this.#length);
    this.#ended(this.#length + length);
  }

  /** There is room for its bytes, three for each character. */
  addText(text: string): void {
    this.#ended(this.#length + this.bytes.write(text, this.#length));
  }

  clear(): void {
    this.#length = 0;
    this.#count = 0;
  }

  /** The end of the first record that does not end before these bytes; of the last one if all do. */
  firstFrom(bytes: number): number {
    for (let i = 0; i < this.#count; i++) if ((this.#ends[i] as number) >= bytes) return this.#ends[i] as number;
    return this.#ends[this.#count - 1] ?? 0;
  }

  /** The whole records among the first `bytes`: how many, and where the last one ends. */
  wholeUpTo(bytes: number): { readonly count: number; readonly end: number } {
    const count = this.#ends.slice(0, this.#count).findLastIndex((end) => end <= bytes) + 1;
    return { count, end: this.#ends[count - 1] ?? 0 };
  }

  #ended(end: number): void {
    this.#length = end;
    this.#ends[this.#count++] = end;
  }
}

/** Copies the first `length` bytes of `from`. For the hundred bytes of a packet a loop beats `set(subarray())`. */
export function copyBytes(from: Uint8Array, length: number, to: Uint8Array, at: number): void {
  if (length > SHORT) to.set(from.subarray(0, length), at);
  else for (let i = 0; i < length; i++) to[at + i] = from[i] as number;
}
