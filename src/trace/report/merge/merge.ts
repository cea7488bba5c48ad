import { RsptraceError } from '../../../base/errors.js';
import {
  type ClockInfo,
  type HartInfo,
  type TraceEvent,
  type TraceInfo,
  type TraceSink,
  timeOf,
} from '../../events/events.js';
import { onEvents } from '../../events/sinks.js';
import { type Landmark, landmarkReached } from '../../events/window.js';
import { readParts, type TraceRead } from '../../formats/read/read-trace.js';
import { mergedFacts } from './merged-facts.js';
import { Numbers, Renumber } from './renumber.js';

/** One of several traces that become one. */
export interface MergeInput {
  readonly path: string;
  /** What its harts are called by, in front of their names. */
  readonly label: string;
  /** Nanoseconds that its beginning is later than that of the first trace. */
  readonly offset?: number | undefined;
  /** What happens at the same moment in each trace; instead of an offset. */
  readonly at?: Landmark | undefined;
}

/** One trace of a merge, when it has been read. */
export interface Merged {
  readonly path: string;
  /** Nanoseconds that its times were made later by. */
  readonly shift: number;
  readonly read: TraceRead;
}

/**
 * Merges traces into one, by the times of their events. Memory holds a part of each file. Throws as `readTrace`, and
 * `TRACE_NO_MATCH` if an event that traces are aligned by is missing.
 */
export async function mergeTraces(inputs: readonly MergeInput[], sink: TraceSink): Promise<Merged[]> {
  const starts: number[] = [];
  const first = inputs[0];
  const zero = first?.at === undefined ? 0 : await firstTime(first.path, first.at);
  for (const { path, offset, at } of inputs) {
    starts.push(offset ?? (at === undefined ? 0 : zero - (await firstTime(path, at))));
  }
  // Times of a trace are not below 0.
  const earliest = Math.min(0, ...starts);
  const numbers = new Numbers();
  const sources = inputs.map(({ path, label }, index) => {
    const shift = (starts[index] ?? 0) - earliest;
    return new Source(path, { label, shift, numbers: new Renumber(numbers, { index, offset: shift }) }, sink);
  });
  for (const source of sources) await source.advance();
  sink.begin(headOf(sources));
  for (const source of sources) source.hasBegun = true;
  for (let next = earliestOf(sources); next !== undefined; next = earliestOf(sources)) {
    next.emit();
    if (next.isEmpty) await next.advance();
  }
  const done = sources.map((source, index) => ({
    path: inputs[index]?.path ?? '',
    shift: source.shift,
    read: source.result(),
  }));
  sink.end(
    mergedFacts(
      done.map(({ read }) => read),
      done.map(({ shift }) => shift),
    ),
  );
  return done;
}

function earliestOf(sources: readonly Source[]): Source | undefined {
  let found: Source | undefined;
  for (const source of sources)
    if (!source.isEmpty && (found === undefined || source.time < found.time)) found = source;
  return found;
}

function headOf(sources: readonly Source[]): TraceInfo {
  const infos = sources.map((source) => source.info);
  const [first] = infos;
  const programs = [...new Set(infos.map(({ program }) => program))];
  const arches = [...new Set(infos.map(({ arch }) => arch))].filter((arch) => arch !== 'unknown');
  return {
    program: programs.join(' + '),
    buildId: programs.length === 1 ? first?.buildId : undefined,
    arch: arches.join('+') || 'unknown',
    clock: mergedClock(infos.map(({ clock }) => clock)),
    ...(infos.every(({ isProcess }) => isProcess) ? { isProcess: true } : {}),
    harts: sources.flatMap((source) => source.harts),
  };
}

/** That of the first one, as coarse as the coarsest. Instructions are counted if each counts the same. */
function mergedClock(clocks: readonly ClockInfo[]): ClockInfo {
  const [first = none] = clocks;
  const { nanosPerInstruction, ...clock } = first;
  const resolutionNs = Math.max(...clocks.map((each) => each.resolutionNs));
  const isCounted = clocks.every((each) => each.nanosPerInstruction === nanosPerInstruction);
  return { ...clock, resolutionNs, ...(isCounted && nanosPerInstruction !== undefined ? { nanosPerInstruction } : {}) };
}

interface Place {
  readonly label: string;
  readonly shift: number;
  readonly numbers: Renumber;
}

/** One trace, read part by part: as many as it takes until there is an event to emit. */
class Source {
  readonly #place: Place;
  readonly #sink: TraceSink;
  readonly #parts: AsyncGenerator<void, TraceRead>;
  #events: TraceEvent[] = [];
  #next = 0;
  readonly harts: HartInfo[] = [];
  #info: TraceInfo | undefined;
  #read: TraceRead | undefined;
  /** The merged trace has begun. */
  hasBegun = false;

  constructor(path: string, place: Place, sink: TraceSink) {
    this.#place = place;
    this.#sink = sink;
    this.#parts = readParts(path, {
      ...onEvents((event) => void this.#events.push(place.numbers.event(event))),
      begin: (info) => {
        this.#info = info;
        for (const hart of info.harts) this.#hart(hart);
      },
      hart: (hart) => this.#hart(hart),
    });
  }

  get shift(): number {
    return this.#place.shift;
  }

  get info(): TraceInfo {
    return this.#info ?? { program: '', buildId: undefined, arch: 'unknown', clock: none, harts: [] };
  }

  get isEmpty(): boolean {
    return this.#next >= this.#events.length;
  }

  /** Of its next event. */
  get time(): number {
    const event = this.#events[this.#next] as TraceEvent;
    return event.type === 'gap' ? event.from : event.time;
  }

  emit(): void {
    this.#sink.event(this.#events[this.#next++] as TraceEvent);
  }

  /** Reads on until there is an event, or the end. */
  async advance(): Promise<void> {
    this.#events = [];
    this.#next = 0;
    while (this.isEmpty && this.#read === undefined) {
      const { done, value } = await this.#parts.next();
      if (done) this.#read = value;
    }
  }

  result(): TraceRead {
    return this.#read as TraceRead;
  }

  #hart({ number, name }: HartInfo): void {
    const hart = { number: this.#place.numbers.hart(number), name: `${this.#place.label}: ${name}` };
    if (this.hasBegun) this.#sink.hart(hart);
    else this.harts.push(hart);
  }
}

const none: ClockInfo = { name: 'trace', resolutionNs: 1, guest: false };

/** When something first happens in a trace. */
async function firstTime(path: string, landmark: Landmark): Promise<number> {
  let found: number | undefined;
  const look = onEvents((event) => {
    if (found === undefined && landmarkReached(event, landmark)) found = timeOf(event);
  });
  for await (const _ of readParts(path, look)) if (found !== undefined) break;
  if (found !== undefined) return found;
  throw new RsptraceError('TRACE_NO_MATCH', `${path} has no event that --align asks for`, {
    hint: 'name one that each trace has: rsptrace report lists them',
  });
}
