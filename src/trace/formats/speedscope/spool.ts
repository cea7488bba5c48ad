import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import type { TraceSink } from '../../events/events.js';
import type { LaneWriter } from '../lane-writer.js';
import { Lanes } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import { WrittenAtEnd } from '../written-at-end.js';

/** Pairs of a list's first block. Each further one has twice as many, so that a short list takes 1 KiB of memory. */
const FIRST = 64;
/** A long one takes 64 KiB. */
const MOST = 4096;

/**
 * Lists of pairs of numbers that grow side by side in one file, for formats whose order differs from that of events.
 * The file is in the folder of `path` and has no name, so that a killed rsptrace leaves nothing. Memory grows with
 * the number of lists.
 */
export class Spool {
  readonly #path: string;
  readonly #fd: number;
  #end = 0;

  /** Throws `OUTPUT_CANNOT_WRITE`. */
  constructor(path: string) {
    this.#path = path;
    const name = join(dirname(path), `.rsptrace-${randomUUID()}`);
    try {
      this.#fd = openSync(name, 'wx+', 0o600);
      unlinkSync(name);
    } catch (error) {
      const why = `cannot keep events beside the trace ${path}: ${messageOf(error)}`;
      const hint = 'Name a file in a folder that can be written with -o, or a .pftrace, which needs no second file.';
      throw new RsptraceError('OUTPUT_CANNOT_WRITE', why, { hint, cause: error });
    }
  }

  list(): SpoolList {
    return new SpoolList(this);
  }

  /** Where a block that is still to be written will lie. */
  allocate({ byteLength }: Float64Array): number {
    const at = this.#end;
    this.#end += byteLength;
    return at;
  }

  /** Throws `TRACE_WRITE_FAILED`. */
  write(block: Float64Array, at: number): void {
    const bytes = new Uint8Array(block.buffer);
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(this.#fd, bytes, done, bytes.length - done, at + done);
      }
    } catch (error) {
      const why = `cannot go on keeping events beside the trace ${this.#path}: ${messageOf(error)}`;
      const hint = 'This format is written at the end, so nothing can be opened: a .pftrace keeps what was written.';
      throw new RsptraceError('TRACE_WRITE_FAILED', why, { hint, cause: error });
    }
  }

  read(block: Float64Array, at: number): void {
    const bytes = new Uint8Array(block.buffer);
    for (let done = 0; done < bytes.length; ) {
      const read = readSync(this.#fd, bytes, done, bytes.length - done, at + done);
      if (read === 0) throw new Error(`what was kept beside the trace ${this.#path} ends early`);
      done += read;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** A format that keeps its events in a spool until the end, which writes the file. */
export function openSpooled(
  out: OutputFile,
  writerOf: (spool: Spool) => LaneWriter & { readonly write: () => void },
): TraceSink {
  const spool = new Spool(out.path);
  const writer = writerOf(spool);
  const close = (): void => {
    spool.close();
    out.close();
  };
  return new WrittenAtEnd(new Lanes(writer), { close }, () => writer.write());
}

/** A block: the place of the list's next one, then pairs. */
function blockOf(pairs: number): Float64Array {
  return new Float64Array(1 + 2 * pairs);
}

/** For the block behind this one: itself, if it is of the largest. */
function blockAfter(block: Float64Array): Float64Array {
  const pairs = (block.length - 1) / 2;
  return pairs < MOST ? blockOf(2 * pairs) : block;
}

/** One list, in blocks. The last block is in memory. */
class SpoolList {
  readonly #spool: Spool;
  readonly #first: number;
  #block = blockOf(FIRST);
  #at: number;
  #used = 1;

  constructor(spool: Spool) {
    this.#spool = spool;
    this.#first = spool.allocate(this.#block);
    this.#at = this.#first;
  }

  get isEmpty(): boolean {
    return this.#at === this.#first && this.#used === 1;
  }

  /** Throws `TRACE_WRITE_FAILED`. */
  push(one: number, other: number): void {
    if (this.#used === this.#block.length) {
      const block = this.#block;
      const next = blockAfter(block);
      const at = this.#spool.allocate(next);
      block[0] = at;
      this.#spool.write(block, this.#at);
      this.#block = next;
      this.#at = at;
      this.#used = 1;
    }
    this.#block[this.#used++] = one;
    this.#block[this.#used++] = other;
  }

  /** Every pair, in order. */
  forEach(visit: (one: number, other: number) => void): void {
    let block = blockOf(FIRST);
    for (let at = this.#first; at !== this.#at; at = block[0] as number, block = blockAfter(block)) {
      this.#spool.read(block, at);
      visitPairs(block, block.length, visit);
    }
    visitPairs(this.#block, this.#used, visit);
  }
}

function visitPairs(block: Float64Array, end: number, visit: (one: number, other: number) => void): void {
  for (let i = 1; i < end; i += 2) visit(block[i] as number, block[i + 1] as number);
}

export type { SpoolList };
