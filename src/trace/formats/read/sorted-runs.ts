import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf, RsptraceError } from '../../../base/errors.js';

const BUFFER = 256 * 1024;

interface Run<T> {
  /** Of a run in the file: the bytes that are not read yet. */
  from: number;
  readonly to: number;
  items: T[];
  next: number;
  /** A line that was read in part. */
  rest: Buffer;
}

/**
 * Sorts any number of things in bounded memory. Sorted runs go to a nameless file of the system's temporary folder,
 * as lines of JSON, and are merged. `compare` decides the order of all: equal ones have none.
 */
export class SortedRuns<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #atOnce: number;
  #items: T[] = [];
  readonly #runs: Run<T>[] = [];
  #file: FileHandle | undefined;
  #end = 0;

  /** `atOnce`: how many are in memory. */
  constructor(compare: (a: T, b: T) => number, atOnce = 300_000) {
    this.#compare = compare;
    this.#atOnce = atOnce;
  }

  add(item: T): void {
    this.#items.push(item);
  }

  /** To be called after some were added: what has no room in memory goes to the file. */
  async spill(): Promise<void> {
    if (this.#items.length < this.#atOnce) return;
    this.#file ??= await nameless();
    const items = this.#items.sort(this.#compare);
    this.#items = [];
    const from = this.#end;
    for (let at = 0; at < items.length; at += 1000) {
      const lines = items.slice(at, at + 1000).map((item) => `${JSON.stringify(item)}\n`);
      const bytes = Buffer.from(lines.join(''));
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#file.write(bytes, done, bytes.length - done, this.#end + done)).bytesWritten;
      }
      this.#end += bytes.length;
    }
    this.#runs.push({ from, to: this.#end, items: [], next: 0, rest: Buffer.alloc(0) });
  }

  /** All of them, some at once. */
  async *inOrder(): AsyncGenerator<readonly T[]> {
    const last = this.#items.sort(this.#compare);
    if (this.#runs.length === 0) {
      yield last;
      return;
    }
    const runs = [...this.#runs, { from: 0, to: 0, items: last, next: 0, rest: Buffer.alloc(0) }];
    for (const run of runs) await this.#fill(run);
    for (let batch: T[] = []; ; ) {
      const run = this.#first(runs);
      if (run === undefined || batch.length === 10_000) {
        yield batch;
        batch = [];
      }
      if (run === undefined) return;
      batch.push(run.items[run.next++] as T);
      if (run.next === run.items.length) await this.#fill(run);
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  #first(runs: readonly Run<T>[]): Run<T> | undefined {
    let found: Run<T> | undefined;
    for (const run of runs) {
      if (run.next >= run.items.length) continue;
      const isEarlier = found && this.#compare(run.items[run.next] as T, found.items[found.next] as T) < 0;
      if (found === undefined || isEarlier) found = run;
    }
    return found;
  }

  async #fill(run: Run<T>): Promise<void> {
    while (run.next >= run.items.length && run.from < run.to) {
      const buffer = Buffer.alloc(Math.min(BUFFER, run.to - run.from));
      const { bytesRead } = (await this.#file?.read(buffer, 0, buffer.length, run.from)) ?? { bytesRead: 0 };
      if (bytesRead === 0) throw new Error('what was kept in the temporary folder ends early');
      run.from += bytesRead;
      const bytes = Buffer.concat([run.rest, buffer.subarray(0, bytesRead)]);
      const end = bytes.lastIndexOf(0x0a) + 1;
      run.rest = bytes.subarray(end);
      run.items = end === 0 ? [] : (JSON.parse(`[${bytes.toString('utf8', 0, end - 1).replaceAll('\n', ',')}]`) as T[]);
      run.next = 0;
    }
  }
}

/** A file that is gone with its handle. */
async function nameless(): Promise<FileHandle> {
  const path = join(tmpdir(), `.rsptrace-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

/** What goes wrong in the temporary folder is reported as that. */
export async function kept<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const why = `cannot sort the events of ${path} in the temporary folder: ${messageOf(error)}`;
    throw new RsptraceError('TRACE_UNREADABLE', why, {
      hint: 'make room there, or name another one by TMPDIR',
      cause: error,
    });
  }
}
