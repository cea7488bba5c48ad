const utf8 = new TextEncoder();
/** Text is encoded in pieces of this size, because each piece costs as much as a record. */
const MOST_TEXT = 32 * 1024;
/** Bytes of a character of UTF-16 at most. */
const WIDEST = 3;

/**
 * Whole records on their way to a file, in memory of a fixed size. Text waits as it is, and becomes bytes when other
 * records come, or when it is many.
 */
export class RecordBlock {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Where each record ends. Kept when it is cleared, because growing it anew costs more. */
  readonly #ends: number[] = [];
  #count = 0;
  #length = 0;
  #text = '';
  /** How many of the last ends are of that text, as characters. */
  #texts = 0;

  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Bytes of the records, but for text that waits. */
  get length(): number {
    return this.#length;
  }

  /** How many records it has. */
  get count(): number {
    return this.#count;
  }

  hasRoom(bytes: number): boolean {
    return this.#length + WIDEST * this.#text.length + bytes <= this.bytes.length;
  }

  /** A record that ends before this offset was written into {@link bytes}. No text waits. */
  ended(end: number): void {
    this.#length = end;
    this.#ends[this.#count++] = end;
  }

  /** There is room for its bytes, three for each character. */
  addText(text: string): void {
    this.#text += text;
    this.#ends[this.#count++] = this.#text.length;
    this.#texts++;
    if (this.#text.length >= MOST_TEXT) this.encode();
  }

  /** Makes bytes of the text that waits. */
  encode(): void {
    const text = this.#text;
    if (text === '') return;
    const start = this.#length;
    const { written } = utf8.encodeInto(text, this.bytes.subarray(start));
    let [at, bytes] = [0, start];
    for (let i = this.#count - this.#texts; i < this.#count; i++) {
      const end = this.#ends[i] as number;
      bytes += written === text.length ? end - at : Buffer.byteLength(text.slice(at, end));
      this.#ends[i] = bytes;
      at = end;
    }
    this.#length = start + written;
    this.#text = '';
    this.#texts = 0;
  }

  clear(): void {
    this.#length = 0;
    this.#count = 0;
    this.#text = '';
    this.#texts = 0;
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
}
