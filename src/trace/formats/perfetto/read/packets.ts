import { messageOf } from '../../../../base/errors.js';
import { Damage, LEN } from '../../read/fields.js';
import { uncompressed } from '../compressed.js';
import { PACKET } from '../fields.js';

/** No packet of a trace is longer; a damaged length is not taken for the end of the file. */
const LONGEST = 64 * 1024 * 1024;
const TAG = (PACKET << 3) | LEN;
const MOST_LENGTH_BYTES = 4;

/** Gets a packet: the bytes between two offsets, valid until it returns. */
type TakePacket = (bytes: Uint8Array, from: number, to: number) => void;

/** Cuts a file, which comes in chunks, into its packets. Only a packet that lies across chunks is copied. */
export class Packets {
  readonly #take: TakePacket;
  #rest: Uint8Array = new Uint8Array(0);
  /** Where in the file the rest begins. */
  #at = 0;
  /** Of the packet whose head was read last. */
  #length = 0;

  constructor(take: TakePacket) {
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
    const behind = this.#rest.length === 0 ? 0 : this.#finish(chunk);
    if (behind < 0) return;
    const base = this.#at - behind;
    let at = behind;
    while (at < chunk.length) {
      this.#at = base + at;
      const from = this.#head(chunk, at);
      const to = from + this.#length;
      if (from === 0 || to > chunk.length) break;
      this.#take(chunk, from, to);
      at = to;
    }
    this.#at = base + at;
    this.#rest = chunk.slice(at);
  }

  /** Takes the packet that has begun in the chunk before. Returns the offset behind it; -1 if it does not end here. */
  #finish(chunk: Uint8Array): number {
    const rest = this.#rest;
    const start = joined(rest, chunk.subarray(0, 1 + MOST_LENGTH_BYTES));
    const from = this.#head(start, 0);
    const to = from + this.#length;
    if (from === 0 || to > rest.length + chunk.length) {
      this.#rest = joined(rest, chunk);
      return -1;
    }
    const behind = to - rest.length;
    this.#take(joined(rest, chunk.subarray(0, behind)), from, to);
    this.#at += to;
    this.#rest = none;
    return behind;
  }

  /** Reads what is before a packet. Returns the offset behind it; 0 if it does not end here. */
  #head(bytes: Uint8Array, at: number): number {
    if (bytes[at] !== TAG) throw new Damage('no packet begins here');
    let length = 0;
    let from = at + 1;
    let byte = 0x80;
    for (let i = 0; byte >= 0x80 && from < bytes.length; i++) {
      if (i === MOST_LENGTH_BYTES) throw new Damage('a packet has no plausible length');
      byte = bytes[from++] as number;
      length |= (byte & 0x7f) << (7 * i);
    }
    if (byte >= 0x80) return 0;
    if (length > LONGEST) throw new Damage('a packet has no plausible length');
    this.#length = length;
    return from;
  }
}

/** Gives `take` the packets that are in a packet, instead of that one. As in Perfetto, those hold no others. */
export function uncompressing(take: TakePacket): TakePacket {
  return (bytes, from, to) => {
    const inner = packetsIn(bytes, from, to);
    if (inner === undefined) {
      take(bytes, from, to);
      return;
    }
    const packets = new Packets(take);
    packets.feed(inner);
    if (packets.torn > 0) throw new Damage('compressed packets end in the middle of one');
  };
}

function packetsIn(bytes: Uint8Array, from: number, to: number): Uint8Array | undefined {
  try {
    return uncompressed(bytes, from, to);
  } catch (error) {
    throw new Damage(`compressed packets: ${messageOf(error)}`);
  }
}

const none = new Uint8Array(0);

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(one.length + other.length);
  bytes.set(one);
  bytes.set(other, one.length);
  return bytes;
}
