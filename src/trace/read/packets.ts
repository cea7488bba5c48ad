import { PACKET } from '../formats/perfetto/fields.js';
import { Damage, LEN } from './fields.js';

/** No packet of a trace is longer; a damaged length is not taken for the end of the file. */
const LONGEST = 64 * 1024 * 1024;
const TAG = (PACKET << 3) | LEN;
const MOST_LENGTH_BYTES = 4;

/** Cuts a file, which comes in chunks, into its packets. Only a packet that lies across chunks is copied. */
export class Packets {
  readonly #take: (bytes: Uint8Array, from: number, to: number) => void;
  #rest: Uint8Array = new Uint8Array(0);
  /** Where in the file the rest begins. */
  #at = 0;

  /** `take`: gets each packet; its bytes are valid until it returns. */
  constructor(take: (bytes: Uint8Array, from: number, to: number) => void) {
    this.#take = take;
  }

  /** The offset in the file behind the last whole packet. */
  get offset(): number {
    return this.#at;
  }

  /** Bytes behind it: of a packet that is cut off, if the file ends here. */
  get torn(): number {
    return this.#rest.length;
  }

  /** Throws {@link Damage}, and what `take` throws; {@link offset} is then where the packet begins. */
  feed(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    let at = 0;
    const base = this.#at;
    while (at < bytes.length) {
      this.#at = base + at;
      if (bytes[at] !== TAG) throw new Damage('no packet begins here');
      let length = 0;
      let from = at + 1;
      let byte = 0x80;
      for (let i = 0; byte >= 0x80 && from < bytes.length; i++) {
        if (i === MOST_LENGTH_BYTES) throw new Damage('a packet has no plausible length');
        byte = bytes[from++] as number;
        length |= (byte & 0x7f) << (7 * i);
      }
      if (byte >= 0x80) break;
      if (length > LONGEST) throw new Damage('a packet has no plausible length');
      const to = from + length;
      if (to > bytes.length) break;
      this.#take(bytes, from, to);
      at = to;
    }
    this.#at = base + at;
    this.#rest = bytes.slice(at);
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(one.length + other.length);
  bytes.set(one);
  bytes.set(other, one.length);
  return bytes;
}
