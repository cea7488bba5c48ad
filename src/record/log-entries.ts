// What the file of a recording's inputs has besides records: the texts between them, and their shapes.

import type { StuckTask } from '../async/futures/index.js';
import {
  among,
  badShape,
  checked,
  flag,
  list,
  number,
  object,
  optional,
  parsedAs,
  positive,
  type Read,
  shaped,
  text,
  whole,
  word,
} from '../base/json-shape.js';
import type { CounterScale, InstalledFacts } from '../engines/index.js';
import type { AddedSteps } from '../inject/index.js';
import { type RecordingFacts, type SavedProbe, savedProbe, type TraceInfo } from '../trace/index.js';

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
  | { readonly type: 'console'; readonly text: string }
  /** Calls still open are lost. */
  | { readonly type: 'finished' }
  | StuckEntry
  | EndEntry;

/** Tasks that memory shows to wait for each other, or for nobody. */
export interface StuckEntry {
  readonly type: 'stuck';
  readonly time: number;
  readonly tasks: readonly StuckTaskEntry[];
}

interface StuckTaskEntry extends Omit<StuckTask, 'futures'> {
  readonly futures: readonly { readonly address: string; readonly instance: string }[];
}

/** The recording has ended, and all of its inputs are before this. */
export interface EndEntry {
  readonly type: 'end';
  readonly probes: readonly SavedProbe[];
  /** Samples are no inputs that wait, so what is said of them is not kept. */
  readonly recording: Omit<RecordingFacts, 'samples'>;
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

/** Numbers below 2^512, as vector registers have, by name. */
const registers = checked<Readonly<Record<string, string>>>((value) =>
  Object.values(object(value)).every((one) => typeof one === 'string' && /^0x[0-9a-f]{1,128}$/.test(one)),
);
const bytes = checked<string | null>(
  (value) => value === null || (typeof value === 'string' && /^([0-9a-f]{2})*$/.test(value)),
);
/** Slots of 64 to 256 bytes. */
const slotShift = checked<number>((value) => value === 6 || value === 7 || value === 8);
/** A word and the number of its hart. */
const wordOfHart: Read<readonly [word: string, hart: number]> = (value) => {
  if (!Array.isArray(value) || value.length !== 2) throw badShape;
  return [word(value[0]), whole(value[1])];
};
/** The id of a record, and the steps that it adds before its time and after. */
const steps: Read<AddedSteps> = (value) => {
  if (!Array.isArray(value) || value.length !== 3 || whole(value[0]) >= 2 ** 32) throw badShape;
  return [value[0], number(value[1]), number(value[2])];
};

const info = shaped<TraceInfo>({
  ...{ program: text, buildId: optional(text), arch: text, isProcess: optional(flag) },
  clock: shaped({ name: text, resolutionNs: number, guest: flag, nanosPerInstruction: optional(number) }),
  harts: list(shaped({ number: whole, name: text })),
});
const recording = shaped<EndEntry['recording']>({
  ...{ end: text, stub: optional(text), events: whole, stops: whole, records: whole, missing: whole },
  ...{ foreignHits: whole, neverLoaded: list(text), tailLost: flag, leftOut: optional(whole) },
  ...{ recordsClock: optional(text), unseen: optional(list(text)) },
  ...{ timesAtMost: optional(text), stopsBeside: optional(whole), stoppedAt: optional(list(text)) },
  ...{ ringFull: optional(whole), ringWaitedNs: optional(number) },
});
const stuckTask = shaped<StuckTaskEntry>({
  ...{
    why: among('deadlock', 'likely-deadlock', 'lost-wake'),
    wait: text,
    file: optional(text),
    line: optional(whole),
  },
  futures: list(shaped({ address: word, instance: text })),
});

type EntryOf<K extends LogEntry['type']> = Omit<Extract<LogEntry, { readonly type: K }>, 'type'>;

const entries: { readonly [K in LogEntry['type']]: Read<EntryOf<K>> } = {
  begin: shaped<EntryOf<'begin'>>({
    ...{ asked: object, info, loadBias: word, harts: list(shaped({ id: text, name: text })), watches: flag },
  }),
  hart: shaped<EntryOf<'hart'>>({ id: text }),
  words: shaped<EntryOf<'words'>>({ words: list(wordOfHart) }),
  installed: shaped<EntryOf<'installed'>>({
    ...{ slotShift, harts: whole },
    sites: list(shaped({ index: whole, address: word, entry: whole, exit: whole, returns: flag })),
    code: optional(list(shaped({ index: whole, address: word, length: whole }))),
    ownTime: optional(shaped({ nanosPerInstruction: number, added: list(steps) })),
    threads: optional(shaped({ offset: whole, free: optional(whole), process: optional(text) })),
  }),
  clock: shaped<EntryOf<'clock'>>({
    ...{ ticks: number, nanos: number, nanosPerTick: positive, behindStops: optional(flag) },
  }),
  stop: shaped<EntryOf<'stop'>>({
    ...{ hart: whole, pc: word, sp: word, space: optional(whole), time: number, registers },
    systemCall: optional(among('entry', 'return')),
    memory: list(shaped({ address: word, length: whole, bytes })),
  }),
  'left-out': shaped<EntryOf<'left-out'>>({ probes: list(shaped({ name: text, address: word, why: optional(text) })) }),
  left: shaped<EntryOf<'left'>>({ time: optional(number) }),
  reset: shaped<EntryOf<'reset'>>({}),
  gap: shaped<EntryOf<'gap'>>({ from: number, to: number, why: optional(text) }),
  stood: shaped<EntryOf<'stood'>>({ time: number }),
  console: shaped<EntryOf<'console'>>({ text }),
  finished: shaped<EntryOf<'finished'>>({}),
  stuck: shaped<EntryOf<'stuck'>>({ time: number, tasks: list(stuckTask) }),
  end: shaped<EntryOf<'end'>>({ probes: list(savedProbe), recording }),
};

/** What a text says; undefined if it says nothing that is known. Of what it has besides nothing is left. */
export function entryFrom(json: string): LogEntry | undefined {
  return parsedAs(json, (value) => {
    const { type, ...entry } = object(value) as { readonly type?: unknown };
    if (typeof type !== 'string' || !Object.hasOwn(entries, type)) throw badShape;
    return { type, ...entries[type as LogEntry['type']](entry) } as LogEntry;
  });
}
