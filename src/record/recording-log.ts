import { existsSync } from 'node:fs';
import { hex } from '../base/addr.js';
import type { DiskRoom } from '../base/disk-room.js';
import type { Logger } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Hit, Tracer, Visit } from '../calls/index.js';
import type { CounterScale, InstallationLog, InstalledFacts } from '../engines/index.js';
import { RawLog } from '../inject/index.js';
import type { TraceInfo } from '../trace/index.js';

/** What was asked for, in the words of who asked: it is kept, and given back when the trace is recovered. */
export interface LogRequest {
  /** The file next to the trace. */
  readonly path: string;
  readonly asked: object;
  /** The trace may have the file's room if its disk is full. */
  readonly room?: DiskRoom | undefined;
  /** The file stays when all of it is in the trace. */
  readonly keeps?: boolean | undefined;
}

/** Writes the inputs of a recording next to its trace, until all of them are events in the trace. */
export class RecordingLog implements InstallationLog {
  readonly #request: LogRequest;
  readonly #logger: Logger;
  #raw: RawLog | undefined;

  constructor(request: LogRequest, logger: Logger) {
    this.#request = request;
    this.#logger = logger;
  }

  /** Undefined before {@link begin}, after {@link remove}, and if the file cannot be written. */
  get opened(): InstallationLog | undefined {
    return this.#raw && this;
  }

  get raw(): RawLog {
    if (!this.#raw) throw new TypeError('the log is not open');
    return this.#raw;
  }

  begin(begin: Omit<BeginEntry, 'type' | 'asked'>): void {
    const { path, asked, room } = this.#request;
    if (existsSync(path)) this.#logger.warn({ path }, 'replaces the records of a recording that was killed');
    this.#try(() => {
      this.#raw = new RawLog(path);
    });
    room?.offer(() => this.#giveRoom());
    this.tell({ type: 'begin', asked, ...begin });
  }

  installed(facts: InstalledFacts): void {
    this.tell({ type: 'installed', ...facts });
  }

  clock(scale: CounterScale): void {
    this.tell({ type: 'clock', ...scale });
  }

  tell(what: LogEntry): void {
    this.#try(() => this.#raw?.tell(what));
  }

  /** All is in the trace, or what is not is needed. */
  end(isNeeded: boolean): void {
    this.#try(() => (isNeeded || this.#request.keeps ? this.#raw?.close() : this.#raw?.remove()));
    this.#raw = undefined;
  }

  #giveRoom(): boolean {
    const raw = this.#raw;
    if (!raw) return false;
    let isGiven = false;
    this.#try(() => {
      const { path } = this.#request;
      if (!raw.isGivenUp)
        this.#logger.warn({ path }, 'the disk is full, and the trace gets the room of these records: no `recover`');
      isGiven = raw.giveRoom();
    });
    return isGiven;
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      const { path } = this.#request;
      this.#logger.warn({ error: String(thrown), path }, 'the records of a recording that is killed will be lost');
    }
  }
}

/** Keeps what a tracer was given at stops. */
export class LoggedTracer implements Tracer {
  readonly #tracer: Tracer;
  readonly #log: RecordingLog;
  /** The registers that are kept of every stop, because what a stop means may be known only later. */
  readonly #names: readonly string[];

  constructor(tracer: Tracer, log: RecordingLog, names: readonly string[]) {
    this.#tracer = tracer;
    this.#log = log;
    this.#names = names;
  }

  get awaitsReturns(): boolean {
    return this.#tracer.awaitsReturns ?? true;
  }

  *visit(hit: Hit): Visit {
    const registers = new NotedRegisters(hit.registers);
    const visit = this.#tracer.visit({ ...hit, registers });
    const memory: { address: string; length: number; bytes: string | null }[] = [];
    let step = visit.next();
    while (!step.done) {
      const answers = yield step.value;
      for (const [index, { address, length }] of step.value.entries()) {
        const bytes = answers[index];
        memory.push({ address: hex(address), length, bytes: bytes ? Buffer.from(bytes).toString('hex') : null });
      }
      step = visit.next(answers);
    }
    for (const name of this.#names) registers.register(name);
    const { hart, space, time, systemCall } = hit;
    this.#log.tell({
      ...{ type: 'stop', hart, pc: hex(hit.pc), sp: hex(hit.stackPointer), space, time, systemCall },
      registers: registers.texts(),
      memory,
    });
    return step.value;
  }

  digest(): void {
    this.#tracer.digest();
  }

  standing(...args: Parameters<NonNullable<Tracer['standing']>>): Promise<void> | undefined {
    return this.#tracer.standing?.(...args);
  }

  abandon(): void {
    this.#tracer.abandon();
  }
}

/** Notes which registers are asked for. */
class NotedRegisters implements RegisterReader {
  readonly #registers: RegisterReader;
  readonly #noted = new Map<string, bigint>();

  constructor(registers: RegisterReader) {
    this.#registers = registers;
  }

  register(name: string): bigint | undefined {
    const value = this.#registers.register(name);
    if (value !== undefined) this.#noted.set(name, value);
    return value;
  }

  texts(): Record<string, string> {
    return Object.fromEntries([...this.#noted].map(([name, value]) => [name, `0x${value.toString(16)}`]));
  }
}

/** A hart as the stub names it. */
interface KnownHart {
  readonly id: string;
  readonly name: string;
}

/** Everything that a {@link RawLog} has except for records. */
export type LogEntry =
  | BeginEntry
  | { readonly type: 'hart'; readonly id: string }
  | { readonly type: 'words'; readonly words: readonly (readonly [word: string, hart: number])[] }
  | ({ readonly type: 'installed' } & InstalledFacts)
  | ({ readonly type: 'clock' } & CounterScale)
  | StopEntry
  /** Probes that do not see all hits from now on. */
  | { readonly type: 'left-out'; readonly probes: readonly ProbeEntry[] }
  /** The machine was reset, or another program runs: what comes then is not understood without this process. */
  | { readonly type: 'left' };

/** What was recorded, of which target. */
export interface BeginEntry {
  readonly type: 'begin';
  readonly asked: object;
  readonly info: TraceInfo;
  /** How far the program was loaded from its own addresses. */
  readonly loadBias: string;
  readonly harts: readonly KnownHart[];
  /** Accesses of watched places are not among the records. */
  readonly watches: boolean;
}

/** A probe that was left out. */
export interface ProbeEntry {
  readonly name: string;
  readonly address: string;
  readonly why?: string | undefined;
}

/** A stop at a probe: all that was read of the target there. */
export interface StopEntry {
  readonly type: 'stop';
  readonly hart: number;
  readonly pc: string;
  readonly sp: string;
  readonly space?: number | undefined;
  readonly time: number;
  readonly systemCall?: 'entry' | 'return' | undefined;
  readonly registers: Readonly<Record<string, string>>;
  readonly memory: readonly MemoryEntry[];
}

/** Memory that was asked for, its bytes in hex; null where none is. */
interface MemoryEntry {
  readonly address: string;
  readonly length: number;
  readonly bytes: string | null;
}

/** What a type of {@link LogEntry} must have, by the names of JSON. A name that ends in `?` may be missing. */
type Shape = Readonly<Record<string, Check>>;
type Check = (value: unknown) => boolean;

const number: Check = (value) => typeof value === 'number' && Number.isFinite(value);
const whole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const text: Check = (value) => typeof value === 'string';
const flag: Check = (value) => typeof value === 'boolean';
/** A number as text: below 2^64, hexadecimal. */
const word: Check = (value) => typeof value === 'string' && /^0x[0-9a-f]{1,16}$/.test(value);
/** The same below 2^512, as vector registers have. */
const wide: Check = (value) => typeof value === 'string' && /^0x[0-9a-f]{1,128}$/.test(value);
const bytes: Check = (value) => value === null || (typeof value === 'string' && /^([0-9a-f]{2})*$/.test(value));
const list =
  (each: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(each);
const shaped =
  (shape: Shape): Check =>
  (value) =>
    isObject(value) &&
    Object.entries(shape).every(([name, check]) => {
      const key = name.replace('?', '');
      return key in value ? check(value[key]) : key !== name;
    });
const table =
  (each: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(each);

const hart = shaped({ id: text, name: text });
const site = shaped({ index: whole, address: word, entry: whole, exit: whole, returns: flag });
/** Slots of 64 to 256 bytes. */
const slotShift: Check = (value) => value === 6 || value === 7 || value === 8;

const shapes: Readonly<Record<LogEntry['type'], Shape>> = {
  begin: {
    asked: isObject,
    loadBias: word,
    harts: list(hart),
    watches: flag,
    info: shaped({
      ...{ program: text, 'buildId?': text, arch: text, 'isProcess?': flag },
      clock: shaped({ name: text, resolutionNs: number, guest: flag }),
      harts: list(shaped({ number: whole, name: text })),
    }),
  },
  hart: { id: text },
  words: { words: list((pair) => Array.isArray(pair) && pair.length === 2 && word(pair[0]) && whole(pair[1])) },
  installed: {
    ...{ slotShift, harts: whole, hasOwnTime: flag, sites: list(site) },
    'threads?': shaped({ offset: whole, 'free?': whole, 'process?': text }),
  },
  clock: { ticks: number, nanos: number, nanosPerTick: (value) => number(value) && (value as number) > 0 },
  stop: {
    ...{ hart: whole, pc: word, sp: word, 'space?': whole, time: number, registers: table(wide) },
    'systemCall?': (value) => value === 'entry' || value === 'return',
    memory: list(shaped({ address: word, length: whole, bytes })),
  },
  'left-out': { probes: list(shaped({ name: text, address: word, 'why?': text })) },
  left: {},
};

/** What a text says; undefined if it says nothing that is known. */
export function entryFrom(json: string): LogEntry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { type } = value;
  const isKnown = typeof type === 'string' && Object.hasOwn(shapes, type);
  return isKnown && shaped(shapes[type as LogEntry['type']])(value) ? (value as unknown as LogEntry) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
