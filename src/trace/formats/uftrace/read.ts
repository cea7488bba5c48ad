/*
 * uftrace's data directory (github.com/namhyung/uftrace: uftrace.h, utils/data-file.c, utils/symbol.c), read: version
 * 4, entries and exits of user functions by the symbols of the program and its libraries. Kernel and perf data, and
 * events, are left out. Records with arguments have a length that only the argument specification says; they are
 * refused, and so is a recording of entries alone. Every length and number is checked.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import type { TraceSink } from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import { Damage } from '../read/fields.js';
import { ForeignTrace } from '../read/foreign-trace.js';
import type { TraceRead } from '../read/read-trace.js';
import { UftraceSymbols } from './symbols.js';

export const MAGIC = 'Ftrace!\0';
export const VERSION = 4;
export const INFO_HEADER = 40;
export const LITTLE_ENDIAN = 1;
export const FEATURE = { taskSession: 1 << 1, relativeSymbols: 1 << 5, maxStack: 1 << 6, estimatedReturns: 1 << 11 };
/** Bytes of a record. */
export const RECORD = 16;
export const RECORD_MAGIC = 5;
export const ENTRY = 0;
export const EXIT = 1;
const LOST = 2;
const CHUNK = 64 * 1024;
const noArguments: readonly never[] = [];

export function isUftraceFolder(path: string): boolean {
  try {
    if (!statSync(path).isDirectory() || !isOwnFile(join(path, 'info'))) return false;
  } catch {
    // Who opens it says why it cannot be read.
    return false;
  }
  return fileOf(path, 'info').subarray(0, MAGIC.length).toString('latin1') === MAGIC;
}

/** Reads a directory for which {@link isUftraceFolder} holds. Throws `Damage`, and `TRACE_UNREADABLE`. */
export async function* readUftrace(path: string, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const info = infoOf(fileOf(path, 'info'));
  const names = readdirSync(path);
  const symbols = new UftraceSymbols(info.hasRelativeSymbols);
  for (const map of names.filter((name) => /^sid-.*\.map$/.test(name))) {
    symbols.map(map, fileOf(path, map).toString('utf8'), (name) =>
      names.includes(name) ? fileOf(path, name).toString('utf8') : undefined,
    );
  }
  const story = new ForeignTrace(info.program ?? basename(path), sink);
  const tasks: Task[] = [];
  // What the kernel and perf have seen is a file each.
  let others = names.filter((name) => /^(?:kernel|perf)-cpu\d+\.dat$/.test(name)).length;
  try {
    for (const name of names) {
      const [, tid] = /^(\d{1,10})\.dat$/.exec(name) ?? [];
      if (tid === undefined) continue;
      const task = new Task(Number(tid), await opened(path, name));
      tasks.push(task);
      story.track({ uuid: task.tid, name: `thread ${tid}` });
      await task.fill();
    }
    for (let n = 0; ; n++) {
      const task = earliest(tasks);
      if (task === undefined) break;
      const { time, type, address, depth } = task.take();
      if (type === ENTRY || type === EXIT) {
        const kind = type === ENTRY ? EVENT.sliceBegin : EVENT.sliceEnd;
        const name = symbols.nameAt(address);
        story.event({ type: kind, time, track: task.tid, name, category: '', arguments: noArguments, depth });
      } else others++;
      if (task.isEmpty) await task.fill();
      if (n % 10_000 === 9999) yield;
    }
  } finally {
    await Promise.all(tasks.map((task) => task.close()));
  }
  const torn = tasks.reduce((sum, task) => sum + task.torn, 0);
  story.end(torn > 0);
  const cut = torn > 0 ? { at: tasks.reduce((sum, task) => sum + task.whole, 0), bytes: torn } : undefined;
  const otherPackets = others + story.unmatched;
  return { info: story.info, facts: undefined, events: story.events, isOwn: false, cut, otherPackets };
}

interface UftraceInfo {
  readonly program: string | undefined;
  readonly hasRelativeSymbols: boolean;
}

/** magic:8 version:u32 header_size:u16 endian:u8 class:u8 feat_mask:u64 info_mask:u64 max_stack:u16, then lines. */
function infoOf(bytes: Buffer): UftraceInfo {
  if (bytes.length < INFO_HEADER) throw new Damage(`info has ${bytes.length} bytes, and its header has ${INFO_HEADER}`);
  const version = bytes.readUInt32LE(8);
  const size = bytes.readUInt16LE(12);
  if (bytes[14] !== LITTLE_ENDIAN) throw new Damage('info does not say that its numbers are little-endian');
  if (version !== VERSION) throw new Damage(`info says version ${version}, and only ${VERSION} is known here`);
  if (size < INFO_HEADER || size > bytes.length) throw new Damage(`info says that its header has ${size} bytes`);
  const features = bytes.readUInt32LE(16);
  if ((features & FEATURE.estimatedReturns) !== 0) {
    throw new Damage('it was recorded with --estimate-return, so it has no ends of calls');
  }
  const path = /^exename:(.+)$/m.exec(bytes.toString('utf8', size))?.[1];
  return { program: path && basename(path), hasRelativeSymbols: (features & FEATURE.relativeSymbols) !== 0 };
}

/** A link may lead anywhere, and a pipe or a device has no end. */
function isOwnFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function checkFile(path: string, name: string): void {
  if (!isOwnFile(join(path, name))) throw new Error('it is no regular file of the folder');
}

function fileOf(path: string, name: string): Buffer {
  try {
    checkFile(path, name);
    return readFileSync(join(path, name));
  } catch (error) {
    throw unreadable(path, name, error);
  }
}

async function opened(path: string, name: string): Promise<FileHandle> {
  try {
    checkFile(path, name);
    return await open(join(path, name), 'r');
  } catch (error) {
    throw unreadable(path, name, error);
  }
}

function unreadable(path: string, name: string, cause: unknown): RsptraceError {
  return new RsptraceError('TRACE_UNREADABLE', `cannot read ${name} of ${path}: ${messageOf(cause)}`, {
    hint: 'copy the whole folder, and look at who may read it',
    cause,
  });
}

function earliest(tasks: readonly Task[]): Task | undefined {
  let found: Task | undefined;
  for (const task of tasks) if (!task.isEmpty && (found === undefined || task.time < found.time)) found = task;
  return found;
}

interface Taken {
  readonly time: number;
  readonly type: number;
  readonly address: number;
  readonly depth: number;
}

/** The records of one thread. */
class Task {
  readonly tid: number;
  readonly #file: FileHandle;
  readonly #bytes = Buffer.alloc(CHUNK);
  #at = 0;
  #end = 0;
  /** Of the file, before the buffer. */
  #offset = 0;
  /** Bytes behind the last whole record. */
  torn = 0;
  /** Of the next record. */
  time = 0;

  constructor(tid: number, file: FileHandle) {
    this.tid = tid;
    this.#file = file;
  }

  get isEmpty(): boolean {
    return this.#end - this.#at < RECORD;
  }

  /** Bytes of whole records that were read. */
  get whole(): number {
    return this.#offset + this.#at;
  }

  async fill(): Promise<void> {
    let have = this.#end - this.#at;
    this.#bytes.copyWithin(0, this.#at, this.#end);
    this.#offset += this.#at;
    for (let read = 1; read > 0 && have < CHUNK; have += read) {
      read = (await this.#file.read(this.#bytes, have, CHUNK - have)).bytesRead;
    }
    this.#at = 0;
    this.#end = have;
    if (this.isEmpty) this.torn = have;
    else this.#look();
  }

  /** u64 time, then type:2 more:1 magic:3 depth:10 addr:48. */
  take(): Taken {
    const low = this.#bytes.readUInt16LE(this.#at + 8);
    const address = this.#bytes.readUIntLE(this.#at + 10, 6);
    const { time } = this;
    this.#at += RECORD;
    if (!this.isEmpty) this.#look();
    return { time, type: low & 3, address, depth: low >>> 6 };
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #look(): void {
    const bytes = this.#bytes;
    const word = bytes.readUInt16LE(this.#at + 8);
    const high = bytes.readUInt32LE(this.#at + 4);
    const where = `${this.tid}.dat at byte ${this.#offset + this.#at}`;
    if (((word >>> 3) & 7) !== RECORD_MAGIC) throw new Damage(`${where} has no record where one has to be`);
    if ((word & 4) !== 0 && (word & 3) !== LOST) {
      throw new Damage(`${where} has arguments of calls, which are not read: record without -A, -R and -a`);
    }
    const time = high * 2 ** 32 + bytes.readUInt32LE(this.#at);
    if (high >= 2 ** 21 || time < this.time) throw new Damage(`${where} goes back in time, or has none`);
    this.time = time;
  }
}
