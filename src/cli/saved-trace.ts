import { existsSync } from 'node:fs';
import { RsptraceError } from '../base/errors.js';
import { nearest } from '../probes/index.js';
import { plural } from '../text/index.js';
import {
  type AnyBegin,
  Choosing,
  type Chosen,
  chosenByName,
  Inside,
  leftOutText,
  lossTexts,
  namesLeftOut,
  onEvents,
  readTrace,
  type TraceRead,
  type TraceSink,
  tee,
  timeText,
  Window,
} from '../trace/index.js';
import { note, thoseOf } from './failure.js';
import type { SelectionArguments, WindowArguments } from './options/saved-trace.js';
import { loadPlugins } from './plugins.js';
import { ReadingLine } from './reading-line.js';
import { hasRecords, recordsFile } from './records-file.js';
import { SavedRecords } from './saved-records.js';
import { filterFields, selectionOf, type TraceFilter } from './trace-filter.js';

/** Reads a trace into a sink, and says on stderr what of it is missing or was not understood. */
export async function readSaved(
  path: string,
  sink: TraceSink,
  window?: Partial<WindowArguments>,
  notes = notesOn,
): Promise<SavedRead> {
  const { read, isEndless } = await readWindow(path, sink, window);
  note(...notes(path, read), isEndless && 'nothing that --to names begins in the window, so it goes to the end');
  return read;
}

/**
 * The same for what `--filter` chooses: `into` makes the sink. Conditions are decided when a call has ended, so with
 * them the trace is read twice. `notes` says what is missing. Throws `TRACE_NO_MATCH` if nothing is chosen.
 */
export async function readChosen(
  path: string,
  into: (chosen: Chosen | undefined) => TraceSink,
  args: SelectionArguments,
  notes = notesOn,
): Promise<SavedRead> {
  const { filter } = args;
  if (filter === undefined) return await readSaved(path, into(undefined), args, notes);
  const counting = new CountingChoice(await chosenBy(path, filter, args), filter);
  const read = await readSaved(path, into(counting), args, notes);
  if (counting.count === 0) throw nothingChosen(path, filter, counting.names);
  return read;
}

async function chosenBy(path: string, filter: TraceFilter, args: SelectionArguments): Promise<Chosen> {
  const selection = selectionOf(filter);
  if (selection.holds === undefined) return chosenByName(selection);
  const choosing = new Choosing(selection);
  await readWindow(path, choosing, args);
  return choosing.chosen();
}

/** A trace that was read. */
export interface SavedRead extends TraceRead {
  /** Of records: what they do not have, in sentences. */
  readonly notes?: readonly string[];
  /** The time in gaps, in nanoseconds. */
  readonly unrecordedNs?: number;
}

interface WindowRead {
  readonly read: SavedRead;
  /** The entry that should end the window never came. */
  readonly isEndless: boolean;
}

async function readWindow(path: string, sink: TraceSink, window: Partial<WindowArguments> = {}): Promise<WindowRead> {
  const { from, to, plugin = [] } = window;
  // Where the events are made already they change nothing, but one that cannot be used is refused all the same.
  await loadPlugins(plugin);
  let unrecordedNs = 0;
  const gaps = onEvents((event) => {
    if (event.type === 'gap') unrecordedNs += event.to - event.from;
  });
  const all = tee([sink, gaps]);
  const inside = from === undefined && to === undefined ? undefined : new Window(all, from, to);
  using _line = window.isPrinted ? undefined : new ReadingLine(path, false);
  const read = hasRecords(path) ? await recordsRead(path, inside ?? all, plugin) : await readTrace(path, inside ?? all);
  if (inside && !inside.hasBegun) {
    throw new RsptraceError('TRACE_NO_MATCH', `${path} has nothing from --from on`, {
      hint: 'take an earlier time, or a function that was traced: rsptrace report lists them',
    });
  }
  if (inside?.isEmpty) {
    throw new RsptraceError('TRACE_NO_MATCH', `${path} has nothing in the window of --from and --to`, {
      hint: 'take a longer one: rsptrace info says from when to when the trace goes',
    });
  }
  return { read: { ...read, unrecordedNs }, isEndless: typeof to === 'function' && inside?.hasEnded === false };
}

/** A trace of records, whose events are made now. */
async function recordsRead(path: string, sink: TraceSink, plugin: readonly string[]): Promise<SavedRead> {
  using records = await SavedRecords.open(path, plugin);
  const { info, facts, events, cutAt, notes } = await records.read(sink);
  const cut = cutAt === undefined ? undefined : { at: cutAt, bytes: 0 };
  return { info, facts, events, cut, isOwn: true, otherPackets: 0, notes };
}

/** Counts what is chosen, and keeps the names that were to choose from. */
class CountingChoice implements Chosen {
  readonly #chosen: Chosen;
  readonly #filter: TraceFilter;
  readonly names = new Set<string>();
  count = 0;

  constructor(chosen: Chosen, filter: TraceFilter) {
    this.#chosen = chosen;
    this.#filter = filter;
  }

  readonly begin: Chosen['begin'] = (begin) => {
    const isChosen = this.#chosen.begin(begin);
    if (isChosen) this.count++;
    else if (this.count === 0) this.names.add(begin.type === 'call-begin' ? begin.function.name : begin.future.future);
    return isChosen;
  };

  readonly note: Chosen['note'] = (name) => {
    const isChosen = this.#chosen.note(name) && this.#filter.condition === undefined;
    if (isChosen) this.count++;
    else if (this.count === 0) this.names.add(name);
    return isChosen;
  };
}

/** Gives a sink what is chosen of a trace. */
export function chosenInto(sink: TraceSink): (chosen: Chosen | undefined) => TraceSink {
  return (chosen) => (chosen ? new Inside(sink, chosen) : sink);
}

/** Several reports ask about the same begin: what is chosen is asked once for each. */
export function once(chosen: Chosen | undefined): () => Chosen | undefined {
  let [last, isChosen]: [AnyBegin | undefined, boolean] = [undefined, false];
  const begin: Chosen['begin'] = (asked) => {
    if (asked !== last) [last, isChosen] = [asked, chosen?.begin(asked) ?? true];
    return isChosen;
  };
  return () => chosen && { begin, note: chosen.note };
}

function nothingChosen(
  path: string,
  { text, matches, unseen }: TraceFilter,
  names: ReadonlySet<string>,
): RsptraceError {
  const named = [...names].filter((name) => matches(name));
  if (named.length === 0) return noMatch('--filter', text.replace(/\s+if\s.*$/s, ''), [...names]);
  const [field] = unseen;
  const why = field === undefined ? 'its condition never held' : `nothing that it names has '${field}'`;
  return new RsptraceError('TRACE_NO_MATCH', `nothing in ${path} matches --filter '${text}': ${why}`, {
    hint: `it names ${named.slice(0, 3).join(', ')}; a condition compares ${filterFields.join(', ')}, or an argument`,
  });
}

/** What of a trace is missing or was not understood. */
export function notesOn(path: string, read: SavedRead): string[] {
  const { cut, isOwn, otherPackets, events, facts, notes = [], unrecordedNs = 0 } = read;
  const torn = cut?.bytes
    ? `, and ${plural(cut.bytes, 'byte')} of another packet are left out`
    : '; its recorder was killed, found no room, or still runs';
  const gaps = unrecordedNs > 0 && `${timeText(unrecordedNs)} of it were not recorded: rsptrace info says why`;
  const ofPath = [leftOutText(facts?.probes ?? []), ...lossTexts(facts), gaps, ...notes];
  return thoseOf([
    ...thoseOf(ofPath).map((text) => `${path}: ${text}`),
    cut && `${path} is cut off: ${plural(events, 'event')} could be read, up to byte ${cut.at}${torn}${restText(path)}`,
    !isOwn && `${path} was not written by rsptrace: its slices are taken for calls, its tracks for threads`,
    !isOwn && otherPackets > 0 && `${plural(otherPackets, 'packet')} of it could not be used`,
  ]);
}

/** How to have the rest of a trace that is cut off, if its recorder has left records. */
export function restText(path: string): string {
  return existsSync(recordsFile(path)) ? `; \`rsptrace recover ${path}\` reads the rest` : '';
}

/** The error for a name that a trace does not have. */
export function noMatch(option: string, glob: string, names: readonly string[]): RsptraceError {
  const near = nearest(glob, names);
  const all = [...new Set(names)];
  const some = `the trace has ${plural(all.length, 'name')}, of which ${all.slice(0, 3).join(', ')}: rsptrace report lists them`;
  return new RsptraceError('TRACE_NO_MATCH', `nothing in the trace matches ${option} '${glob}'`, {
    hint: near.length > 0 ? `nearest: ${near.join(', ')}` : all.length > 0 ? some : 'it has no calls and no polls',
  });
}

/** The head of every JSON object about a trace. */
export function headJson(path: string, { info, events, cut, facts }: TraceRead): object {
  return {
    version: 1,
    trace: path,
    program: info.program,
    build_id: info.buildId ?? null,
    clock: info.clock.name,
    events,
    cut_at: cut?.at ?? null,
    times_at_most: facts?.recording?.timesAtMost ?? null,
    stops_beside: facts?.recording?.stopsBeside ?? 0,
    ring_full: facts?.recording?.ringFull ?? 0,
    ring_waited_ns: facts?.recording?.ringWaitedNs ?? null,
    probes_left_out: [...namesLeftOut(facts?.probes ?? [])],
    not_seen: facts?.recording?.unseen ?? [],
  };
}
