import { closeSync, constants, ftruncateSync, openSync, readSync, unlinkSync, writevSync } from 'node:fs';

/**
 * The file of a recording's inputs, in their order: what it was given, and its records as they lay in the ring.
 * It is decoded behind the target's back, and once more where the file is read as a trace.
 *
 *      magic | frame | frame | ...
 *      frame: u32 kind, u32 length, `length` bytes     all little-endian
 *
 * Frames are only appended, so only the last one can be torn.
 */
const frameKind = { entry: 1, records: 2 } as const;

/** `RSPTRREC`, and the version of this layout. */
export const rawLogMagic = Uint8Array.of(0x52, 0x53, 0x50, 0x54, 0x52, 0x52, 0x45, 0x43, 4, 0, 0, 0, 0, 0, 0, 0);

/** Whether a file begins like one of these, of whatever version. */
export function isRawLog(start: Uint8Array): boolean {
  return Buffer.compare(start.subarray(0, 8), rawLogMagic.subarray(0, 8)) === 0;
}

const frameHead = 8;
/** The longest frame that is not of records: a program with a million probes. */
const mostEntryBytes = 256 << 20;
/** Bytes of records that are gathered before they are written. */
const gathered = 256 << 10;
/** Bytes that are read at once. */
const windowBytes = 1 << 20;

/** Appends frames to a file. */
export class RawLog {
  readonly path: string;
  /** The file is the trace itself: nothing is understood before somebody asks for it. */
  readonly isTrace: boolean;
  readonly #fd: number;
  readonly #pending = new Uint8Array(gathered);
  #pendingBytes = 0;
  #length: number;
  /** Of the first write that failed: nothing comes behind the hole. */
  #failure: Error | undefined;

  /** Replaces an older file of that name. Throws the system's error. */
  constructor(path: string, isTrace = false) {
    this.path = path;
    this.isTrace = isTrace;
    this.#fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o600);
    this.#length = 0;
    this.#write([rawLogMagic]);
  }

  /** Bytes of whole frames in the file. */
  get length(): number {
    return this.#length;
  }

  /** A write has failed, so that what came behind it is not in the file. */
  get hasHole(): boolean {
    return this.#failure !== undefined;
  }

  /** Reads what is appended from now on. */
  reader(slot: number): LogReader {
    const reader = new LogReader(this.read, this.#length);
    reader.slot = slot;
    return reader;
  }

  /** Appends something that is written once, as JSON. Throws the system's error. */
  append(what: object): void {
    this.flush();
    this.#frame(frameKind.entry, Buffer.from(JSON.stringify(what)));
  }

  /** Appends slots, at the next {@link flush} at the latest. Throws the system's error. */
  records(slots: Uint8Array): void {
    if (this.#pendingBytes + slots.length > gathered) this.flush();
    if (slots.length > gathered) {
      this.#frame(frameKind.records, slots);
      return;
    }
    this.#pending.set(slots, this.#pendingBytes);
    this.#pendingBytes += slots.length;
  }

  /** Writes what was gathered: now it survives the end of this process. Throws the system's error. */
  flush(): void {
    if (this.#pendingBytes === 0) return;
    this.#frame(frameKind.records, this.#pending.subarray(0, this.#pendingBytes));
    this.#pendingBytes = 0;
  }

  /** After a failed write: what is not in the file. */
  unwritten(): Uint8Array {
    const rest = this.#pending.slice(0, this.#pendingBytes);
    this.#pendingBytes = 0;
    return rest;
  }

  /** Like `fs.readSync`. */
  readonly read: ReadAt = (into, length, position) => readSync(this.#fd, into, 0, length, position);

  /** Ends the file, which stays. */
  close(): void {
    this.flush();
    closeSync(this.#fd);
  }

  /** Nobody needs it any more. */
  remove(): void {
    closeSync(this.#fd);
    unlinkSync(this.path);
  }

  #frame(kind: number, bytes: Uint8Array): void {
    this.#write([new Uint8Array(Uint32Array.of(kind, bytes.length).buffer), bytes]);
  }

  #write(parts: readonly Uint8Array[]): void {
    if (this.#failure) throw this.#failure;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    try {
      const written = writevSync(this.#fd, parts, this.#length);
      if (written < length) {
        ftruncateSync(this.#fd, this.#length);
        throw new Error(`${written} of ${length} bytes were written`);
      }
    } catch (thrown) {
      this.#failure = thrown as Error;
      throw thrown;
    }
    this.#length += length;
  }
}

/** Reads up to so many bytes at a position into a buffer's begin; returns how many there were. */
type ReadAt = (into: Uint8Array, length: number, position: number) => number;

/** Slots, or a text that was written. */
export type LogPart =
  | { readonly kind: 'records'; readonly view: DataView; readonly start: number; readonly end: number }
  | { readonly kind: 'entry'; readonly text: string }
  | { readonly kind: 'damaged'; readonly at: number; readonly why: string };

/** Reads the frames of a {@link RawLog}, in pieces that fit a buffer. */
export class LogReader {
  readonly #read: ReadAt;
  readonly #window = new Uint8Array(windowBytes);
  readonly #view = new DataView(this.#window.buffer);
  /** Where the window begins in the file, how much of it is filled, and what of that was taken. */
  #position: number;
  #filled = 0;
  #at = 0;
  /** Bytes of the present frame of records that were not taken. */
  #left = 0;
  /** Bytes of one slot; an entry may set it. */
  slot = 8;

  constructor(read: ReadAt, position = rawLogMagic.length) {
    this.#read = read;
    this.#position = position;
  }

  /** Where in the file what was not taken begins. */
  get position(): number {
    return this.#position + this.#at;
  }

  /** The next part that ends before this offset of the file; valid until the next call. Undefined: there is none. */
  next(end: number): LogPart | undefined {
    for (;;) {
      if (this.#left > 0) {
        const whole = this.#have(this.slot, end) ? this.#wholeSlots(end) : 0;
        // A frame that was torn in the middle of a slot.
        if (whole === 0) return undefined;
        const start = this.#at;
        this.#at += whole;
        this.#left -= whole;
        return { kind: 'records', view: this.#view, start, end: start + whole };
      }
      if (!this.#have(frameHead, end)) return undefined;
      const at = this.#position + this.#at;
      const kind = this.#view.getUint32(this.#at, true);
      const length = this.#view.getUint32(this.#at + 4, true);
      if (kind === frameKind.records) {
        if (length % this.slot !== 0) return { kind: 'damaged', at, why: `${length} bytes are no whole records` };
        this.#at += frameHead;
        this.#left = length;
      } else if (kind !== frameKind.entry) return { kind: 'damaged', at, why: `there are no frames of kind ${kind}` };
      else if (length > mostEntryBytes) return { kind: 'damaged', at, why: `a text of ${length} bytes` };
      else return this.#entry(length, end);
    }
  }

  #entry(length: number, end: number): LogPart | undefined {
    const from = this.#position + this.#at + frameHead;
    if (from + length > end) return undefined;
    const bytes = new Uint8Array(length);
    if (this.#read(bytes, length, from) < length) return undefined;
    this.#position = from + length;
    this.#filled = 0;
    this.#at = 0;
    return { kind: 'entry', text: Buffer.from(bytes).toString() };
  }

  #wholeSlots(end: number): number {
    const there = Math.min(this.#left, this.#filled - this.#at, end - this.#position - this.#at);
    return there - (there % this.slot);
  }

  /** Whether so many bytes are in the window, filled anew if need be. */
  #have(bytes: number, end: number): boolean {
    if (this.#filled - this.#at >= bytes) return true;
    this.#position += this.#at;
    this.#at = 0;
    const wanted = Math.min(windowBytes, end - this.#position);
    this.#filled = wanted < bytes ? 0 : this.#read(this.#window, wanted, this.#position);
    return this.#filled >= bytes;
  }
}
