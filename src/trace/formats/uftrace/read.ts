/*
 * uftrace's data directory (github.com/namhyung/uftrace: uftrace.h, utils/data-file.c, utils/symbol.c), read: version
 * 4, entries and exits of user functions by the symbols of the program and its libraries. Kernel and perf data, and
 * events, are left out. Records with arguments have a length that only the argument specification says; they are
 * refused, and so is a recording of entries alone. Every length and number is checked.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { budgetFactor } from '../../../base/budget.js';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import type { TraceSink } from '../../events/events.js';
import { EVENT } from '../perfetto/fields.js';
import { tooLarge } from '../read/bytes.js';
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
/** Bytes of records that are in memory together. */
const MOST = 1024 * 1024 * 1024;
const noArguments: readonly never[] = [];

export function isUftraceFolder(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory() || !isOwnFile(join(path, 'info'))) return false;
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
  let left = MOST * budgetFactor();
  for (const name of names) {
    const [, tid] = /^(\d{1,10})\.dat$/.exec(name) ?? [];
    if (tid === undefined) continue;
    const records = fileOf(path, name);
    left -= records.length;
    if (left < 0) throw tooLarge(path, `has more than ${MOST} bytes of records`);
    tasks.push(new Task(Number(tid), records));
    story.track({ uuid: Number(tid), name: `thread ${tid}` });
  }
  let others = 0;
  for (let n = 1, task = earliest(tasks); task; n++, task = earliest(tasks)) {
    const { time, type, address, depth } = task.take();
    if (type === ENTRY || type === EXIT) {
      const kind = type === ENTRY ? EVENT.sliceBegin : EVENT.sliceEnd;
      const name = symbols.nameAt(address);
      story.event({ type: kind, time, track: task.tid, name, category: '', arguments: noArguments, depth });
    } else others++;
    if (n % 10_000 === 0) yield;
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

function fileOf(path: string, name: string): Buffer {
  try {
    if (!isOwnFile(join(path, name))) throw new Error('it is no regular file of the folder');
    return readFileSync(join(path, name));
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
  readonly #bytes: Buffer;
  #at = 0;
  /** Of the next record. */
  time = 0;

  constructor(tid: number, bytes: Buffer) {
    this.tid = tid;
    this.#bytes = bytes;
    if (!this.isEmpty) this.#look();
  }

  get isEmpty(): boolean {
    return this.#bytes.length - this.#at < RECORD;
  }

  /** Bytes behind the last whole record. */
  get torn(): number {
    return this.#bytes.length % RECORD;
  }

  /** Bytes of whole records. */
  get whole(): number {
    return this.#bytes.length - this.torn;
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

  #look(): void {
    const bytes = this.#bytes;
    const word = bytes.readUInt16LE(this.#at + 8);
    const high = bytes.readUInt32LE(this.#at + 4);
    const where = `${this.tid}.dat at byte ${this.#at}`;
    if (((word >>> 3) & 7) !== RECORD_MAGIC) throw new Damage(`${where} has no record where one has to be`);
    if ((word & 4) !== 0 && (word & 3) !== LOST) {
      throw new Damage(`${where} has arguments of calls, which are not read: record without -A, -R and -a`);
    }
    const time = high * 2 ** 32 + bytes.readUInt32LE(this.#at);
    if (high >= 2 ** 21 || time < this.time) throw new Damage(`${where} goes back in time, or has none`);
    this.time = time;
  }
}
