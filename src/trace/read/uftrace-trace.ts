/*
 * uftrace's data directory (github.com/namhyung/uftrace: uftrace.h, utils/data-file.c, utils/symbol.c), read: entries
 * and exits of user functions by the symbols of the program and its libraries. Kernel and perf data, and events, are
 * left out. Records with arguments have a length that only the argument specification tells; they are refused.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RsptraceError } from '../../base/errors.js';
import type { TraceSink } from '../events.js';
import { EVENT } from '../formats/perfetto/fields.js';
import { ForeignStory } from './foreign-trace.js';
import type { TraceRead } from './read-trace.js';

const MAGIC = 'Ftrace!\0';
const RECORD = 16;
const RECORD_MAGIC = 5;
const ENTRY = 0;
const EXIT = 1;
const LOST = 2;
const CHUNK = 64 * 1024;
const noArguments: readonly never[] = [];

export function isUftraceFolder(path: string): boolean {
  const info = join(path, 'info');
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory() || !existsSync(info)) return false;
  return readFileSync(info).subarray(0, MAGIC.length).toString('latin1') === MAGIC;
}

/** Reads a directory for which {@link isUftraceFolder} holds. */
export async function* readUftrace(path: string, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const info = readFileSync(join(path, 'info')).toString('latin1');
  const program = basename(/^exename:(.*)$/m.exec(info.slice(40))?.[1] ?? path);
  const symbols = new Symbols(path);
  const story = new ForeignStory(program, sink);
  const tasks: Task[] = [];
  let others = 0;
  try {
    for (const name of readdirSync(path)) {
      const [, tid] = /^(\d+)\.dat$/.exec(name) ?? [];
      if (tid === undefined) continue;
      const task = new Task(Number(tid), await open(join(path, name), 'r'));
      tasks.push(task);
      story.track(task.tid, `thread ${tid}`);
      await task.fill(path);
    }
    for (let n = 0; ; n++) {
      const task = earliest(tasks);
      if (task === undefined) break;
      const { time, type, address } = task.take();
      if (type === ENTRY || type === EXIT) {
        const kind = type === ENTRY ? EVENT.sliceBegin : EVENT.sliceEnd;
        const name = symbols.nameAt(address);
        story.event({ type: kind, time, track: task.tid, name, category: '', arguments: noArguments });
      } else others++;
      if (task.isEmpty) await task.fill(path);
      if (n % 10_000 === 9999) yield;
    }
  } finally {
    await Promise.all(tasks.map((task) => task.close()));
  }
  const torn = tasks.reduce((sum, task) => sum + task.torn, 0);
  story.end(torn > 0);
  const cut = torn > 0 ? { at: 0, bytes: torn } : undefined;
  return { info: story.info, facts: undefined, events: story.events, isOwn: false, cut, otherPackets: others };
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
}

/** The records of one thread. */
class Task {
  readonly tid: number;
  readonly #file: FileHandle;
  readonly #bytes = Buffer.alloc(CHUNK);
  #at = 0;
  #end = 0;
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

  async fill(path: string): Promise<void> {
    let have = this.#end - this.#at;
    this.#bytes.copyWithin(0, this.#at, this.#end);
    for (let read = 1; read > 0 && have < CHUNK; have += read) {
      read = (await this.#file.read(this.#bytes, have, CHUNK - have)).bytesRead;
    }
    this.#at = 0;
    this.#end = have;
    if (this.isEmpty) this.torn = have;
    else this.#look(path);
  }

  take(): Taken {
    const low = this.#bytes.readUInt16LE(this.#at + 8);
    const address = this.#bytes.readUIntLE(this.#at + 10, 6);
    const { time } = this;
    this.#at += RECORD;
    if (!this.isEmpty) this.#look('');
    return { time, type: low & 3, address };
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #look(path: string): void {
    const bytes = this.#bytes;
    const word = bytes.readUInt16LE(this.#at + 8);
    const hasArguments = (word & 4) !== 0;
    if (((word >>> 3) & 7) !== RECORD_MAGIC || (hasArguments && (word & 3) !== LOST)) {
      const what = hasArguments ? 'arguments of calls, which are not read' : 'no record where one has to be';
      throw new RsptraceError('TRACE_DAMAGED', `${path || 'a directory of uftrace'}: ${this.tid}.dat has ${what}`, {
        hint: hasArguments ? 'record it without -A, -R and -a' : 'record it again',
      });
    }
    this.time = bytes.readUInt32LE(this.#at + 4) * 2 ** 32 + bytes.readUInt32LE(this.#at);
  }
}

interface Mapping {
  readonly start: number;
  readonly end: number;
  readonly addresses: readonly number[];
  readonly names: readonly string[];
}

/** 48 bits, as records have them: high halves of kernels are cut alike. */
const ADDRESSES = 2 ** 48;

/** Names by address, from the maps of all sessions and the symbol files beside them. */
class Symbols {
  readonly #mappings: Mapping[] = [];
  readonly #known = new Map<number, string>();

  constructor(path: string) {
    const bases = new Map<string, number>();
    for (const map of readdirSync(path).filter((name) => /^sid-.*\.map$/.test(name))) {
      for (const line of readFileSync(join(path, map), 'latin1').split('\n')) {
        const [, from = '', to = '', file = ''] = /^([\da-f]+)-([\da-f]+) \S+ \S+ \S+ \S+ +(\/\S+)/.exec(line) ?? [];
        const symbols = join(path, `${basename(file)}.sym`);
        if (file === '' || !existsSync(symbols)) continue;
        const base = bases.get(file) ?? Number.parseInt(from, 16) % ADDRESSES;
        bases.set(file, base);
        this.#mappings.push(mappingOf(base, Number.parseInt(to, 16) % ADDRESSES, readFileSync(symbols, 'utf8')));
      }
    }
  }

  nameAt(address: number): string {
    let name = this.#known.get(address);
    if (name === undefined) {
      name = this.#find(address) ?? `0x${address.toString(16)}`;
      this.#known.set(address, name);
    }
    return name;
  }

  #find(address: number): string | undefined {
    for (const { start, end, addresses, names } of this.#mappings) {
      if (address < start || address >= end) continue;
      const at = addresses.findLastIndex((each) => each <= address);
      if (at >= 0) return names[at];
    }
    return undefined;
  }
}

/** `0000000000001139 T main`, or with a size between the two. */
function mappingOf(start: number, end: number, text: string): Mapping {
  const rows = [...text.matchAll(/^([\da-f]{8,16}) (?:[\da-f]{8} )?[?TtwPKDdvu] (.+)$/gm)]
    .map(([, address = '', name = '']) => ({ address: start + Number.parseInt(address, 16), name }))
    .sort((a, b) => a.address - b.address);
  return { start, end, addresses: rows.map(({ address }) => address), names: rows.map(({ name }) => name) };
}
