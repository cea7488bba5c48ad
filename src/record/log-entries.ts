// What the file of a recording's inputs has besides records: the texts between them, and their shapes.
import type { StuckTask } from '../async/futures/index.js';
import type { CounterScale, InstalledFacts } from '../engines/index.js';
import type { ProbeFact, RecordingFacts, TraceInfo } from '../trace/index.js';

/** A hart as the stub names it. */
interface KnownHart {
  readonly id: string;
  readonly name: string;
}

/** Everything that a `RawLog` has except for records. */
export type LogEntry =
  | BeginEntry
  | { readonly type: 'hart'; readonly id: string }
  | { readonly type: 'words'; readonly words: readonly (readonly [word: string, hart: number])[] }
  | ({ readonly type: 'installed' } & InstalledFacts)
  | ({ readonly type: 'clock' } & CounterScale)
  | StopEntry
  /** Probes that do not see all hits from now on. */
  | { readonly type: 'left-out'; readonly probes: readonly ProbeEntry[] }
  /** The machine was reset, another program runs, or the link was broken: `time` is what the trace goes on from. */
  | { readonly type: 'left'; readonly time?: number | undefined }
  | { readonly type: 'reset' }
  /** Nothing was recorded from one time to the other. */
  | { readonly type: 'gap'; readonly from: number; readonly to: number; readonly why?: string | undefined }
  /** The target stood at a place of ours. */
  | { readonly type: 'stood'; readonly time: number }
  /** A line that the guest printed. */
  | { readonly type: 'console'; readonly text: string }
  /** Calls still open are lost. */
  | { readonly type: 'finished' }
  | StuckEntry
  | EndEntry;

/** Tasks that memory shows to wait for each other, or for nobody. */
export interface StuckEntry {
  readonly type: 'stuck';
  readonly time: number;
  readonly tasks: readonly (Omit<StuckTask, 'futures'> & {
    readonly futures: readonly { readonly address: string; readonly instance: string }[];
  })[];
}

/** The recording has ended, and all of its inputs are before this. */
export interface EndEntry {
  readonly type: 'end';
  readonly probes: readonly (Omit<ProbeFact, 'address'> & { readonly address: string })[];
  readonly recording: RecordingFacts;
}

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
/** The id of a record, and the steps that it adds before its time and after. */
const steps: Check = (value) =>
  Array.isArray(value) && value.length === 3 && value.every(number) && whole(value[0]) && value[0] < 2 ** 32;
const among =
  (...all: readonly string[]): Check =>
  (value) =>
    all.some((one) => one === value);
const stuckTask = shaped({
  ...{ why: among('deadlock', 'likely-deadlock', 'lost-wake'), wait: text, 'file?': text, 'line?': whole },
  futures: list(shaped({ address: word, instance: text })),
});
const probe = shaped({
  ...{ name: text, 'subject?': text, address: word, engine: among('target', 'stop', 'none') },
  ...{ 'why?': text, 'proof?': text, 'partly?': text, 'extra?': text },
});
const recording = shaped({
  ...{ end: text, 'stub?': text, stops: whole, records: whole, missing: whole, foreignHits: whole },
  ...{ neverLoaded: list(text), tailLost: flag, 'timesAtMost?': text, 'stopsBeside?': whole },
  ...{ 'stoppedAt?': list(text), 'ringFull?': whole, 'ringWaitedNs?': number },
});
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
    ...{ slotShift, harts: whole, sites: list(site) },
    'ownTime?': shaped({ nanosPerInstruction: number, added: list(steps) }),
    'threads?': shaped({ offset: whole, 'free?': whole, 'process?': text }),
  },
  clock: {
    ...{ ticks: number, nanos: number, nanosPerTick: (value) => number(value) && (value as number) > 0 },
    'behindStops?': flag,
  },
  stop: {
    ...{ hart: whole, pc: word, sp: word, 'space?': whole, time: number, registers: table(wide) },
    'systemCall?': (value) => value === 'entry' || value === 'return',
    memory: list(shaped({ address: word, length: whole, bytes })),
  },
  'left-out': { probes: list(shaped({ name: text, address: word, 'why?': text })) },
  left: { 'time?': number },
  reset: {},
  gap: { from: number, to: number, 'why?': text },
  stood: { time: number },
  console: { text },
  finished: {},
  stuck: { time: number, tasks: list(stuckTask) },
  end: { probes: list(probe), recording },
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
