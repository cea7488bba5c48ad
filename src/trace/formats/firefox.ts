/*
 * Firefox Profiler's processed profile (github.com/firefox-devtools/profiler, docs-developer/processed-
 * profile-format.md and src/types/profile.js), version 47. This
 * part: a thread a hart, or a stack. Its samples are spans of time with one stack, with milliseconds as weights
 * (`tracing-ms`). Times in which nothing was traced have none.
 *
 * The tables of a thread are columns, so samples go to a spool, and the end writes the file. In memory are the
 * different stacks, up to a limit, and 1 KiB a track.
 */
import { startOf } from '../../base/file-bytes.js';
import { Numbered } from '../../base/made-once.js';
import { visible } from '../../text/index.js';
import { furtherStacks, MOST_STACKS } from '../events/call-tree.js';
import type { AnyBegin, FunctionRef, FutureRef, SampledFrame, TraceInfo } from '../events/events.js';
import type { Format } from './format.js';
import { TrackWriter } from './lane-writer.js';
import type { OutputFile } from './output/output-file.js';
import { openSpooled, type Spool, type SpoolList } from './speedscope/spool.js';
import { clockText, json } from './text-lines.js';

const VERSION = 47;
/** Nanoseconds of a millisecond. */
const MILLION = 1e6;

export const firefox: Format = {
  name: 'Firefox Profiler',
  extensions: ['.firefox.json'],
  about: 'stacks over time, call tree and flame graph, for profiler.firefox.com',
  use: 'open it in profiler.firefox.com',
  isAppended: false,
  recognizes: (head) => /"preprocessedProfileVersion":\d+/.test(startOf(head)),
  open: (file) => openSpooled(file, (spool) => new FirefoxWriter(file, spool)),
};

type What = FunctionRef | FutureRef | SampledFrame;

interface Node {
  readonly index: number;
  readonly prefix: Node | undefined;
  readonly frame: number;
  readonly children: Map<number, Node>;
}

/** A hart or a thread. */
interface Track {
  readonly name: string;
  readonly tid: number;
  /** A stack, or -1 for none; and since when. */
  readonly samples: SpoolList;
  readonly roots: Map<number, Node>;
  readonly stacks: Node[];
  /** The stacks around each other, innermost last. */
  readonly open: Node[];
  last: number;
}

class FirefoxWriter extends TrackWriter<Track> {
  readonly #out: OutputFile;
  readonly #spool: Spool;
  readonly #frames = new Numbered<What>();
  /** Of all tracks. */
  #stacks = 0;
  #info: TraceInfo | undefined;

  constructor(out: OutputFile, spool: Spool) {
    super();
    this.#out = out;
    this.#spool = spool;
  }

  begin(info: TraceInfo): void {
    this.#info = info;
  }

  protected added(name: string, tid: number): Track {
    const known = this.tracks().find((track) => track.tid === tid);
    return known ?? { name, tid, samples: this.#spool.list(), roots: new Map(), stacks: [], open: [], last: -1 };
  }

  enter(begin: AnyBegin): void {
    const track = this.trackOf(begin);
    const what = begin.type === 'call-begin' ? begin.function : begin.future;
    track.open.push(this.#stackOf(track, track.open.at(-1), what));
    this.#sample(track, begin.time);
  }

  leave(begin: AnyBegin, time: number): void {
    const track = this.trackOf(begin);
    track.open.pop();
    this.#sample(track, time);
  }

  #stackOf(track: Track, prefix: Node | undefined, what: What): Node {
    const frame = this.#frames.of(what);
    if (prefix !== undefined && this.#frames.all[prefix.frame] === furtherStacks) return prefix;
    const children = prefix?.children ?? track.roots;
    const known = children.get(frame);
    if (known !== undefined) return known;
    if (this.#stacks >= MOST_STACKS && what !== furtherStacks) return this.#stackOf(track, prefix, furtherStacks);
    this.#stacks++;
    const node = { index: track.stacks.length, prefix, frame, children: new Map() };
    children.set(frame, node);
    track.stacks.push(node);
    return node;
  }

  /** From now on the stack is this one. */
  #sample(track: Track, time: number): void {
    track.last = Math.max(track.last, time);
    track.samples.push(track.open.at(-1)?.index ?? -1, track.last);
  }

  write(): void {
    const out = this.#out;
    const info = this.#info as TraceInfo;
    const used = this.tracks().filter(({ samples }) => !samples.isEmpty);
    const end = used.reduce((latest, { last }) => Math.max(latest, last), 0);
    for (const track of used) this.#sample(track, end);
    out.textRecord(
      `{"meta":${json(metaOf(info))},\n"libs":[],"pages":[],"counters":[],"profilerOverhead":[],"threads":[`,
    );
    const tables = jsonParts(this.#frames.all);
    for (const [index, track] of used.entries()) {
      out.textRecord(index === 0 ? '\n{' : ',\n{');
      this.#writeThread(track, info.program, tables);
    }
    out.textRecord('\n]}\n');
  }

  #writeThread(track: Track, program: string, tables: readonly string[]): void {
    const out = this.#out;
    const about = {
      name: visible(track.name),
      isMainThread: false,
      processName: visible(program),
      processType: 'default',
      pid: '1',
      tid: track.tid,
      processStartupTime: 0,
      processShutdownTime: null,
      registerTime: 0,
      unregisterTime: null,
      pausedRanges: [],
    };
    out.textRecord(`${json(about).slice(1, -1)},\n`);
    for (const table of tables) out.textRecord(`${table},\n`);
    this.#column('"stackTable":{"frame":[', track.stacks, ({ frame }) => frame);
    this.#column('],"prefix":[', track.stacks, ({ prefix }) => prefix?.index ?? null);
    this.#column('],"category":[', track.stacks, () => 0);
    this.#column('],"subcategory":[', track.stacks, () => 0);
    out.textRecord(`],"length":${track.stacks.length}},\n`);
    this.#samples(track);
  }

  #samples(track: Track): void {
    const out = this.#out;
    out.textRecord('"samples":{"weightType":"tracing-ms","stack":[');
    const length = this.#each(track, (stack) => stack);
    out.textRecord('],"time":[');
    this.#each(track, (_stack, from) => from / MILLION);
    out.textRecord('],"weight":[');
    this.#each(track, (_stack, from, to) => (to - from) / MILLION);
    out.textRecord(`],"length":${length}}}`);
  }

  /** A number for each span of time with one stack. Returns how many there are. */
  #each(track: Track, of: (stack: number, from: number, to: number) => number): number {
    let count = 0;
    eachSpan(track, (stack, from, to) => this.#out.textRecord(`${count++ > 0 ? ',' : ''}${of(stack, from, to)}`));
    return count;
  }

  #column<T>(head: string, rows: readonly T[], cell: (row: T) => number | null): void {
    this.#out.textRecord(head);
    for (const [index, row] of rows.entries()) this.#out.textRecord(`${index === 0 ? '' : ','}${cell(row)}`);
  }
}

/** Each span of time with one stack; spans of no time and of no stack are left out. */
function eachSpan({ samples }: Track, visit: (stack: number, from: number, to: number) => void): void {
  let stack = -1;
  let from = 0;
  samples.forEach((next, time) => {
    if (stack >= 0 && time > from) visit(stack, from, time);
    stack = next;
    from = time;
  });
}

function metaOf({ program, arch, clock }: TraceInfo): object {
  return {
    interval: 1,
    startTime: 0,
    processType: 0,
    product: visible(program),
    abi: arch,
    misc: clockText(clock),
    stackwalk: 1,
    debug: false,
    version: 29,
    preprocessedProfileVersion: VERSION,
    symbolicationNotSupported: true,
    usesOnlyOneStackType: true,
    doesNotUseFrameImplementation: true,
    sourceCodeIsNotOnSearchfox: true,
    importedFrom: 'rsptrace',
    categories: [{ name: 'Other', color: 'grey', subcategories: ['Other'] }],
    markerSchema: [],
  };
}

/** The tables that all threads share: each has a copy. A frame and its function have the same number. */
function jsonParts(whats: readonly What[]): string[] {
  const texts = new Numbered<string>();
  const name = whats.map((what) => texts.of(visible('future' in what ? `poll ${what.instance}` : what.name)));
  const fileName = whats.map(({ file }) => (file === undefined ? null : texts.of(visible(file))));
  const line = whats.map((what) => what.line ?? null);
  const { length } = whats;
  const all = <T>(value: T): T[] => new Array<T>(length).fill(value);
  const frameTable = {
    address: all(-1),
    inlineDepth: all(0),
    category: all(0),
    subcategory: all(0),
    func: whats.map((_, index) => index),
    nativeSymbol: all(null),
    innerWindowID: all(null),
    implementation: all(null),
    line,
    column: all(null),
    length,
  };
  const funcTable = {
    isJS: all(false),
    relevantForJS: all(false),
    name,
    resource: all(-1),
    fileName,
    lineNumber: line,
    columnNumber: all(null),
    length,
  };
  const empty = {
    resourceTable: { lib: [], name: [], host: [], type: [], length: 0 },
    nativeSymbols: { libIndex: [], address: [], name: [], functionSize: [], length: 0 },
    markers: { data: [], name: [], startTime: [], endTime: [], phase: [], category: [], length: 0 },
  };
  const tables = { frameTable, funcTable, stringArray: texts.all, ...empty };
  return Object.entries(tables).map(([key, table]) => `"${key}":${json(table)}`);
}
