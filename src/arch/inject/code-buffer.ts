import { type Addr, addOffset } from '../../base/addr.js';
import { someBytes } from '../../base/memory-reader.js';

/** Longer than most code that is built at once; if it is too short, it grows. */
const usual = 4096;

/** A buffer that was given back. It is reused, because thousands of trampolines are built one after the other. */
const spare: Uint8Array[] = [];

/** Machine code in the making, little-endian. */
class CodeBuffer {
  #bytes: Uint8Array = spare.pop() ?? new Uint8Array(usual);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  byte(value: number): void {
    if (this.#length + 1 > this.#bytes.length) this.#grow(1);
    this.#bytes[this.#length++] = value;
  }

  half(value: number): void {
    this.byte(value);
    this.byte(value >> 8);
  }

  word(value: number): void {
    if (this.#length + 4 > this.#bytes.length) this.#grow(4);
    this.setWord(this.#length, value);
    this.#length += 4;
  }

  /** Overwrites what was put at an offset. */
  setWord(at: number, value: number): void {
    const bytes = this.#bytes;
    bytes[at] = value;
    bytes[at + 1] = value >> 8;
    bytes[at + 2] = value >> 16;
    bytes[at + 3] = value >> 24;
  }

  /** The bytes from `from` to before `end`. */
  raw(bytes: Uint8Array, from: number, end: number): void {
    if (this.#length + end - from > this.#bytes.length) this.#grow(end - from);
    for (let at = from; at < end; at++) this.#bytes[this.#length++] = bytes[at] as number;
  }

  /** A copy of all bytes. Afterwards the buffer is empty and must not be used any more. */
  finish(): Uint8Array {
    const code = someBytes(this.#length);
    for (let at = 0; at < code.length; at++) code[at] = this.#bytes[at] as number;
    spare.push(this.#bytes);
    this.#bytes = nothing;
    this.#length = 0;
    return code;
  }

  #grow(by: number): void {
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + by));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

const nothing = new Uint8Array(0);

/** A place in the code, known when it is bound. */
export class Label {
  offset: number | undefined;
}

/** Code for an address, one instruction after the other. Labels are resolved at the end. */
export class CodeWriter {
  protected readonly code = new CodeBuffer();
  readonly #start: Addr;
  readonly #unresolved: { readonly at: number; readonly target: Addr | Label; encode(to: number): number }[] = [];

  /** `start` is where the first byte will lie. */
  constructor(start: Addr) {
    this.#start = start;
  }

  /** Address of the next instruction. */
  get here(): Addr {
    return addOffset(this.#start, this.code.length);
  }

  bind(label: Label): void {
    label.offset = this.code.length;
  }

  /** Bytes as they are. */
  raw(bytes: Uint8Array, from = 0, end = bytes.length): void {
    this.code.raw(bytes, from, end);
  }

  /** The code. Throws RangeError if a target is out of reach. */
  finish(): Uint8Array {
    for (const { at, target, encode } of this.#unresolved) this.code.setWord(at, encode(this.#offsetOf(target)));
    return this.code.finish();
  }

  /** A word of the code that depends on a target's distance from the first byte: exact below 2^53. */
  protected resolveLater(at: number, target: Addr | Label, encode: (to: number) => number): void {
    this.#unresolved.push({ at, target, encode });
  }

  /** How far it is from the next instruction to a target: exact below 2^53; above, it exceeds every jump's reach. */
  protected distance(to: Addr): number {
    return this.#offsetOf(to) - this.code.length;
  }

  #offsetOf(target: Addr | Label): number {
    if (typeof target === 'bigint') return Number(BigInt.asIntN(64, target - this.#start));
    if (target.offset === undefined) throw new RangeError('A jump goes to a label that was not bound');
    return target.offset;
  }
}
