/*
 * uftrace's data directory (github.com/namhyung/uftrace: uftrace.h, utils/data-file.c, utils/symbol.c, cmds/info.c),
 * version 4, as uftrace 0.9 and later read it. This part: entries and exits, no arguments.
 *
 *   info            40 bytes of header, then text
 *   task.txt        the session, and a task a track
 *   sid-*.map       one mapping with all symbols, and a stack
 *   PROGRAM.sym     `ADDRESS TYPE NAME`, relative to the mapping, without sizes: 0.13 reads no sizes
 *   TID.dat         16 bytes an event: u64 time, then type:2 more:1 magic:3 depth:10 addr:48
 *
 * A task is a hart, or a stack where stacks are known apart. Addresses are numbers of ours, 16 apart: records have no
 * room for 64 bits, and Futures have no address. Calls that are open at the end end there.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, RsptraceError } from '../../../base/errors.js';
import { outputExists } from '../../../base/locked-file.js';
import { madeOnce } from '../../../base/made-once.js';
import { visible } from '../../../text/index.js';
import type { AnyBegin, FunctionRef, FutureRef, TraceInfo } from '../../events/events.js';
import type { Format } from '../format.js';
import { TrackWriter } from '../lane-writer.js';
import { Lanes } from '../lanes.js';
import { nothingKept } from '../output/output-file.js';
import { WrittenAtEnd } from '../written-at-end.js';
import { ENTRY, EXIT, FEATURE, INFO_HEADER, LITTLE_ENDIAN, MAGIC, RECORD, RECORD_MAGIC, VERSION } from './read.js';

export const uftrace: Format = {
  name: 'uftrace directory',
  extensions: ['.uftrace'],
  about: 'a folder for uftrace: replay, report, graph, tui, dump',
  use: 'uftrace replay -d, report -d, graph -d or tui -d',
  isAppended: false,
  recognizes: () => false,
  openFolder: (path, isForced) => {
    const writer = new UftraceWriter(folderAt(path, isForced));
    return new WrittenAtEnd(new Lanes(writer), { close: () => {} }, () => writer.write());
  },
};

const INFO = { exeName: 1 << 0, cmdline: 1 << 3, taskInfo: 1 << 7 };
/** Ten bits. */
const DEEPEST = 1023;
const SESSION = '0123456789abcdef';
const BASE = 0x40_0000;
const SYMBOL_STEP = 16;
const BUFFER = 16 * 1024;

interface Task {
  readonly tid: number;
  readonly buffer: Buffer;
  used: number;
  readonly open: number[];
  /** Calls that are deeper than a record can say, and are left out. */
  tooDeep: number;
  last: number;
}

class UftraceWriter extends TrackWriter<Task> {
  readonly #folder: string;
  readonly #symbols = new Map<FunctionRef | FutureRef, number>();
  readonly #names: string[] = [];
  #program = 'program';

  constructor(folder: string) {
    super();
    this.#folder = folder;
  }

  begin({ program }: TraceInfo): void {
    // Not before: where nothing comes, what was there stays.
    this.#at(() => {
      for (const name of readdirSync(this.#folder).filter(isOurs)) rmSync(join(this.#folder, name));
    });
    this.#program = visible(program).replaceAll(/[/"]/g, '_') || 'program';
  }

  protected added(_name: string, tid: number): Task {
    const known = this.tracks().find((task) => task.tid === tid);
    return known ?? { tid, buffer: Buffer.alloc(BUFFER), used: 0, open: [], tooDeep: 0, last: -1 };
  }

  enter(begin: AnyBegin): void {
    const task = this.trackOf(begin);
    if (task.open.length >= DEEPEST) {
      task.tooDeep++;
      return;
    }
    const symbol = this.#symbolOf(begin.type === 'call-begin' ? begin.function : begin.future);
    this.#record(task, ENTRY, symbol, begin.time);
    task.open.push(symbol);
  }

  leave(begin: AnyBegin, time: number): void {
    const task = this.trackOf(begin);
    if (task.tooDeep > 0) {
      task.tooDeep--;
      return;
    }
    const symbol = task.open.pop();
    if (symbol !== undefined) this.#record(task, EXIT, symbol, time);
  }

  write(): void {
    const last = Math.max(0, ...this.tracks().map((task) => task.last));
    for (const task of this.tracks()) {
      while (task.open.length > 0) this.#record(task, EXIT, task.open.pop() ?? 0, last);
      this.#flushTask(task);
    }
    const used = this.tracks().filter((task) => task.last >= 0);
    const tasks = used.length > 0 ? used : this.tracks();
    const path = `/${this.#program}`;
    this.#append('info', infoOf(path, tasks));
    this.#append('task.txt', taskText(path, tasks));
    this.#append(`sid-${SESSION}.map`, mapOf(path, this.#names.length));
    this.#append(`${this.#program}.sym`, symbolsOf(path, this.#names));
  }

  #symbolOf(what: FunctionRef | FutureRef): number {
    return madeOnce(this.#symbols, what, () => {
      // The types of two instances of a generic function distinguish them.
      const name = 'future' in what ? `poll ${what.instance}` : what.name;
      return this.#names.push(visible(name)) - 1;
    });
  }

  #record(task: Task, type: number, symbol: number, time: number): void {
    task.last = Math.max(task.last, time);
    if (task.used + RECORD > BUFFER) this.#flushTask(task);
    const { buffer, used } = task;
    const address = BASE + SYMBOL_STEP * symbol;
    buffer.writeUInt32LE(task.last % 2 ** 32, used);
    buffer.writeUInt32LE(Math.floor(task.last / 2 ** 32), used + 4);
    // type:2 more:1 magic:3 depth:10 addr:48; the address is below 2^32.
    const low = type | (RECORD_MAGIC << 3) | (task.open.length << 6);
    buffer.writeUInt16LE(low, used + 8);
    buffer.writeUInt32LE(address, used + 10);
    buffer.writeUInt16LE(0, used + 14);
    task.used = used + RECORD;
  }

  #flushTask(task: Task): void {
    this.#append(`${task.tid}.dat`, task.buffer.subarray(0, task.used));
    task.used = 0;
  }

  #append(name: string, content: string | Uint8Array): void {
    this.#at(() => appendFileSync(join(this.#folder, name), content));
  }

  #at(change: () => void): void {
    try {
      change();
    } catch (error) {
      const why = `cannot go on writing the trace ${this.#folder}: ${messageOf(error)}`;
      throw new RsptraceError('TRACE_WRITE_FAILED', why, { hint: nothingKept, cause: error });
    }
  }
}

function infoOf(path: string, tasks: readonly Task[]): Uint8Array {
  const header = Buffer.alloc(INFO_HEADER);
  header.write(MAGIC, 'latin1');
  header.writeUInt32LE(VERSION, 8);
  header.writeUInt16LE(header.length, 12);
  header[14] = LITTLE_ENDIAN;
  header[15] = 2;
  header.writeBigUInt64LE(BigInt(FEATURE.taskSession | FEATURE.relativeSymbols | FEATURE.maxStack), 16);
  header.writeBigUInt64LE(BigInt(INFO.exeName | INFO.cmdline | INFO.taskInfo), 24);
  header.writeUInt16LE(DEEPEST + 1, 32);
  const tids = tasks.map(({ tid }) => tid).join(',');
  const text = [
    `exename:${path}`,
    `cmdline:rsptrace ${path}`,
    'taskinfo:lines=2',
    `taskinfo:nr_tid=${tasks.length}`,
    `taskinfo:tids=${tids}`,
    '',
  ];
  return Buffer.concat([header, Buffer.from(text.join('\n'))]);
}

function taskText(path: string, tasks: readonly Task[]): string {
  const pid = tasks[0]?.tid ?? 1;
  const lines = tasks.map(({ tid }) => `TASK timestamp=0.000000000 tid=${tid} pid=${pid}`);
  return `${[`SESS timestamp=0.000000000 pid=${pid} sid=${SESSION} exename="${path}"`, ...lines].join('\n')}\n`;
}

/** As /proc/PID/maps; without a stack uftrace takes addresses for a kernel's. */
function mapOf(path: string, symbols: number): string {
  const hex = (value: number): string => value.toString(16).padStart(12, '0');
  const end = BASE + Math.ceil(((symbols + 1) * SYMBOL_STEP) / 4096) * 4096;
  return [
    `${hex(BASE)}-${hex(end)} r-xp 00000000 00:00 0                          ${path}`,
    '7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]',
    '',
  ].join('\n');
}

function symbolsOf(path: string, names: readonly string[]): string {
  const line = (index: number, type: string, name: string): string =>
    `${(index * SYMBOL_STEP).toString(16).padStart(16, '0')} ${type} ${name}`;
  return [
    `# symbols: ${names.length}`,
    `# path name: ${path}`,
    ...names.map((name, index) => line(index, 'T', name)),
    line(names.length, '?', '__sym_end'),
    '',
  ].join('\n');
}

/** An empty folder; if that is forced, also one that holds something. */
function folderAt(path: string, isForced: boolean): string {
  try {
    if (existsSync(path)) {
      if (readdirSync(path).length > 0 && !isForced) throw outputExists(path);
    }
    mkdirSync(path, { recursive: true });
    return path;
  } catch (error) {
    if (error instanceof RsptraceError) throw error;
    throw new RsptraceError('OUTPUT_CANNOT_WRITE', `cannot write the trace to ${path}: ${messageOf(error)}`, {
      hint: 'Name a folder that can be written with -o.',
      cause: error,
    });
  }
}

/** What this format writes; other files in the folder stay. */
function isOurs(name: string): boolean {
  return /^(?:info|task\.txt|sid-.*\.map|.*\.sym|\d+\.dat)$/.test(name);
}
