/** Smaller pieces get a buffer of their own, which their reader may keep. */
export const leastShared = 64 << 10;
/** Bytes of records that may wait in the client's memory; beyond that the guest waits. */
const mostBytes = 64 << 20;
/** The most memory that is kept for reuse. */
const mostSpareBytes = 32 << 20;

/** Records that were drained, one slot after the other, from `start` to before `end`. */
export interface Run {
  readonly view: DataView;
  start: number;
  readonly end: number;
}

/** Records that were drained but not yet digested, in order. */
export interface RecordQueue {
  /** Bytes of them. */
  readonly bytes: number;
  /** How many bytes may be drained now. */
  readonly room: number;
  /** Bytes of records that could not be kept. */
  readonly lost: number;
  readonly first: Run | undefined;
  /**
   * Memory to read a piece into, valid until {@link settle}. Call {@link close} once the records in it were
   * {@link add}ed. What is shorter than {@link leastShared} stays valid.
   */
  open(length: number): Uint8Array;
  close(bytes: Uint8Array): void;
  add(view: DataView, start: number, end: number): void;
  /** The target may use the memory again that the records were drained from. */
  settle(): void;
  /** The first so many bytes of the first run were digested. */
  advance(run: Run, bytes: number): void;
}

/**
 * Records that wait in memory. The ring is emptied first, so that the target need not wait for the
 * client. Large pieces share reused buffers, because fresh memory for each costs page faults and garbage collection.
 */
export class Backlog implements RecordQueue {
  readonly lost = 0;
  readonly #runs: Run[] = [];
  #next = 0;
  #bytes = 0;
  /** Buffers that may be reused, each with the number of runs that lie in it. */
  readonly #shared = new Map<ArrayBufferLike, number>();
  readonly #spare: ArrayBuffer[] = [];
  #spareBytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get room(): number {
    return mostBytes - this.#bytes;
  }

  get first(): Run | undefined {
    return this.#runs[this.#next];
  }

  open(length: number): Uint8Array {
    if (length < leastShared) return new Uint8Array(length);
    // An exact size: a small piece in a large buffer would keep all of that buffer alive.
    const size = 2 ** Math.ceil(Math.log2(length));
    const at = this.#spare.findIndex(({ byteLength }) => byteLength === size);
    const [spare] = at < 0 ? [] : this.#spare.splice(at, 1);
    if (spare) this.#spareBytes -= spare.byteLength;
    const buffer = spare ?? new ArrayBuffer(size);
    this.#shared.set(buffer, 1);
    return new Uint8Array(buffer, 0, length);
  }

  close({ buffer }: Uint8Array): void {
    this.#leave(buffer);
  }

  add(view: DataView, start: number, end: number): void {
    const { buffer } = view;
    const users = this.#shared.get(buffer);
    if (users !== undefined) this.#shared.set(buffer, users + 1);
    this.#runs.push({ view, start, end });
    this.#bytes += end - start;
  }

  settle(): void {}

  advance(run: Run, bytes: number): void {
    run.start += bytes;
    this.#bytes -= bytes;
    if (run.start < run.end) return;
    this.#leave(run.view.buffer);
    this.#next++;
    if (this.#next < 1024 && this.#next < this.#runs.length) return;
    this.#runs.splice(0, this.#next);
    this.#next = 0;
  }

  #leave(buffer: ArrayBufferLike): void {
    const users = this.#shared.get(buffer);
    if (users === undefined) return;
    if (users > 1) {
      this.#shared.set(buffer, users - 1);
      return;
    }
    this.#shared.delete(buffer);
    if (!(buffer instanceof ArrayBuffer) || this.#spareBytes + buffer.byteLength > mostSpareBytes) return;
    this.#spare.push(buffer);
    this.#spareBytes += buffer.byteLength;
  }
}
