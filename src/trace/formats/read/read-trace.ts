import { statSync } from 'node:fs';
import { RsptraceError } from '../../../base/errors.js';
import { headOf, unpackedStart } from '../../../base/file-bytes.js';
import {
  endMissing,
  type HartInfo,
  type TraceEvent,
  type TraceFacts,
  type TraceInfo,
  type TraceSink,
} from '../../events/events.js';
import { readChrome } from '../chrome/read.js';
import { chrome } from '../chrome/write.js';
import { formats } from '../index.js';
import { FactsReader, headingOf, infoOf, TRACE_VERSION } from '../perfetto/facts.js';
import { TRACK } from '../perfetto/fields.js';
import { isPerfetto } from '../perfetto/perfetto.js';
import type { TrackDescriptor } from '../perfetto/read/descriptors.js';
import { OwnTrace } from '../perfetto/read/own-trace.js';
import { Packets, uncompressing } from '../perfetto/read/packets.js';
import { allArguments, type PerfSample, type TrackEvent } from '../perfetto/read/track-event.js';
import { TrackEvents, type TrackEventTaker } from '../perfetto/read/track-events.js';
import { isUftraceFolder, readUftrace } from '../uftrace/read.js';
import { openBytes } from './bytes.js';
import { Damage } from './fields.js';
import { UnsortedTrace } from './foreign-trace.js';

/** What is known about a trace when it has been read. */
export interface TraceRead {
  readonly info: TraceInfo;
  /** Undefined if the recording came to no end, or the trace is another program's. */
  readonly facts: TraceFacts | undefined;
  readonly events: number;
  /** It was written by rsptrace. */
  readonly isOwn: boolean;
  /**
   * Where its end is missing: the offset (unpacked) behind the last whole packet, and the bytes behind that. Of older
   * traces that end between two packets this is not known.
   */
  readonly cut: { readonly at: number; readonly bytes: number } | undefined;
  /** Packets that hold nothing that is understood here. */
  readonly otherPackets: number;
}

/**
 * Reads a Perfetto trace (`.pftrace`, `.pftrace.gz`) of any length, and gives its events to a sink as they were
 * recorded, from `begin` to `end`. An end that is cut off is no error: see {@link TraceRead.cut}. Of Chrome's trace
 * events (`.json`) and of a directory of uftrace it reads the slices.
 *
 * Throws `TRACE_UNREADABLE`, `TRACE_FOREIGN` for what is no such trace, `TRACE_VERSION`, and `TRACE_DAMAGED`; then the
 * sink has had the events before the damage, unless they had to be sorted, and no `end`. What the sink throws is thrown.
 */
export async function readTrace(path: string, sink: TraceSink): Promise<TraceRead> {
  const parts = readParts(path, sink);
  for (;;) {
    const { done, value } = await parts.next();
    if (done) return value;
  }
}

/** The same part by part: what is asked for the next part decides when the sink gets more. */
export async function* readParts(path: string, sink: TraceSink): AsyncGenerator<void, TraceRead> {
  const bytes = isUftraceFolder(path) ? undefined : await openBytes(path);
  try {
    if (bytes === undefined) return yield* readUftrace(path, sink);
    if (isChromeFile(path)) return yield* readChrome(path, bytes, sink);
  } catch (error) {
    throw error instanceof Damage ? damaged(path, undefined, error.message) : error;
  }
  const story = new Story(path, sink);
  const decoder = new TrackEvents(story);
  const packets = new Packets(uncompressing((chunk, from, to) => decoder.packet(chunk, from, to)));
  try {
    for await (const chunk of bytes) {
      packets.feed(chunk);
      await story.foreign?.spill();
      yield;
    }
    if (story.foreign) yield* story.foreign.emitAll();
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    throw packets.offset === 0 ? foreign(path) : damaged(path, packets.offset, error.message);
  } finally {
    await story.foreign?.close();
  }
  if (packets.offset === 0) throw foreign(path);
  const isCut = bytes.isCut || packets.torn > 0 || story.isWithoutEnd;
  return {
    ...story.end(isCut),
    cut: isCut ? { at: packets.offset, bytes: packets.torn } : undefined,
    otherPackets: decoder.others + (story.foreign?.unmatched ?? 0),
  };
}

/** As the writer ranks tracks: harts by their numbers, then threads. */
const FIRST_THREAD_RANK = 0x10_0000;

/** Turns TrackEvents into what a sink takes. The first one says whose trace it is. */
class Story implements TrackEventTaker {
  readonly #path: string;
  readonly #sink: TraceSink;
  /** Until the first event. */
  #early: TrackDescriptor[] = [];
  #own: OwnTrace | undefined;
  #foreign: UnsortedTrace | undefined;
  #info: TraceInfo | undefined;
  readonly #facts = new FactsReader();
  #events = 0;
  /** The instant `end` of a trace of ours has not come. */
  isWithoutEnd = false;

  constructor(path: string, sink: TraceSink) {
    this.#path = path;
    this.#sink = sink;
  }

  track(descriptor: TrackDescriptor): void {
    if (this.#own) this.#ownTrack(this.#own, descriptor, (hart) => this.#sink.hart(hart));
    else if (this.#foreign) this.#foreign.track(descriptor);
    else this.#early.push(descriptor);
  }

  event(event: TrackEvent): void {
    if (this.#info === undefined) {
      if (event.category === 'trace' && event.name === 'rsptrace') {
        this.#beginOwn(event);
        return;
      }
      this.#beginForeign();
    }
    if (this.#own === undefined) this.#foreign?.event({ ...event, arguments: allArguments(event) });
    else if (event.category !== 'trace') this.#own.event(event);
    else if (event.name === 'engines') this.#facts.engines(event);
    else if (event.name === 'recording') this.#facts.recording(event);
    else if (event.name === 'end') this.isWithoutEnd = false;
  }

  get foreign(): UnsortedTrace | undefined {
    return this.#foreign;
  }

  /** Of other programs' samples nothing says the clock and the threads, so they are left out. */
  sample(sample: PerfSample): void {
    this.#own?.sample(sample);
  }

  end(isCut: boolean): Pick<TraceRead, 'info' | 'facts' | 'events' | 'isOwn'> {
    this.#own?.end();
    if (this.#info === undefined)
      throw this.#early.length > 0 ? empty(this.#path, 'has no event') : foreign(this.#path);
    const { facts } = this.#facts;
    this.#sink.end(isCut ? (facts ? { ...facts, isCut } : endMissing) : facts);
    return { info: this.#info, facts, events: this.#foreign?.events ?? this.#events, isOwn: this.#own !== undefined };
  }

  readonly #emit = (event: TraceEvent): void => {
    this.#events++;
    this.#sink.event(event);
  };

  #beginOwn(event: TrackEvent): void {
    const heading = headingOf(event);
    if (heading.version !== TRACE_VERSION) throw otherVersion(this.#path, heading.version);
    const own = new OwnTrace(this.#emit);
    const harts: HartInfo[] = [];
    for (const descriptor of this.#early) this.#ownTrack(own, descriptor, (hart) => harts.push(hart));
    this.#early = [];
    this.#own = own;
    this.isWithoutEnd = true;
    this.#info = infoOf(heading, harts);
    this.#sink.begin(this.#info);
  }

  #ownTrack(own: OwnTrace, descriptor: TrackDescriptor, newHart: (hart: HartInfo) => void): void {
    const { uuid, name, rank, isCounter, isProcess, isThread } = descriptor;
    // A hart may have any name.
    const group = rank < FIRST_THREAD_RANK ? undefined : name;
    const isOther = group === 'tasks' || uuid === TRACK.console || uuid === TRACK.parts;
    if (isProcess || isThread || isCounter || isOther) own.other(uuid);
    else if (group === 'gaps') own.gapsTrack(uuid);
    else if (typeof uuid === 'number' && uuid % 2 === 1) own.root(descriptor);
    else if (rank >= FIRST_THREAD_RANK) own.thread(uuid, rank - FIRST_THREAD_RANK, name);
    else {
      own.hart(uuid, rank);
      newHart({ number: rank, name });
    }
  }

  #beginForeign(): void {
    const program = this.#early.find(({ isProcess }) => isProcess)?.name ?? this.#path;
    this.#foreign = new UnsortedTrace(this.#path, program, this.#sink);
    for (const descriptor of this.#early) this.#foreign.track(descriptor);
    this.#early = [];
    this.#info = this.#foreign.info;
  }
}

function isChromeFile(path: string): boolean {
  const head = headOf(path);
  return head !== undefined && chrome.recognizes({ ...head, bytes: unpackedStart(head.bytes) });
}

function empty(path: string, what: string): RsptraceError {
  return new RsptraceError('TRACE_FOREIGN', `${path} ${what}`, {
    hint: 'a recording that was killed before its first event leaves such a file: record again',
  });
}

function foreign(path: string): RsptraceError {
  const head = headOf(path);
  const looks = head && !isPerfetto(head) ? formats.find((format) => format.recognizes(head)) : undefined;
  if (head === undefined && statSync(path).isFile()) {
    return empty(path, 'is empty');
  }
  const like = looks ? `, but of the format ${looks.name}` : '';
  return new RsptraceError('TRACE_FOREIGN', `${path} is no Perfetto trace with tracks${like}`, {
    hint: "only .pftrace and .pftrace.gz, .records, Chrome's .json and directories of uftrace are read: record into a .pftrace",
  });
}

/** `offset`: up to where it can be read, if it can be cut there. */
function damaged(path: string, offset: number | undefined, why: string): RsptraceError {
  const where = offset === undefined ? '' : ` at byte ${offset}`;
  return new RsptraceError('TRACE_DAMAGED', `${path} is damaged${where}: ${why}`, {
    hint: offset === undefined ? 'write it again' : `\`head -c ${offset}\` of it, unpacked, can be read`,
  });
}

function otherVersion(path: string, version: number): RsptraceError {
  const other = version > TRACE_VERSION ? 'a newer' : 'an older';
  return new RsptraceError(
    'TRACE_VERSION',
    `${path} was written by ${other} rsptrace: its layout is ${version}, and ${TRACE_VERSION} is read here`,
    { hint: 'read it with that rsptrace, or record again' },
  );
}
