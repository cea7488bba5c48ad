/*
 * Chrome's "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). This part:
 * the JSON array form. Its closing `]` may be missing, so that a file that is cut off after a record loads.
 *
 *   M        metadata
 *   B E      slices of a hart, or of a stack: strictly nested
 *   b n e    nestable async: of a root Future (one `cat` + `id` each), of gaps
 *   i        instants of a hart or a stack: accesses of watched places, hits of places, ends whose begin is unknown,
 *            `detail`s; of all harts: resets, lines of the console
 *   C        values of watched places
 *
 * `ts` is microseconds with the nanoseconds as decimals. `pid` is 1, `tid` the hart's number + 1, since viewers take
 * thread 0 as the idle thread; of a stack from 100001.
 *
 * In speedscope a slice's name and args are its frame, and the end must have the same args. So args of B and E have
 * what is the same for all calls of a function. Facts about one call are in an instant behind its begin and one
 * before its end (cat `detail`). It sorts begins and ends by time, apart from each other. So no two B and E of a
 * track have one time: picoseconds, below the clock's resolution, keep their order (slice-times.ts).
 */
import { hex } from '../../../base/addr.js';
import { visibleJson } from '../../../text/index.js';
import {
  type CallBegin,
  type CallEnd,
  type CallLost,
  type Cancelled,
  type ConsoleLine,
  type DerivedPoll,
  endMissing,
  type FunctionRef,
  type FutureRef,
  type Gap,
  type GuestNanos,
  type HartInfo,
  type PlaceHit,
  type PollBegin,
  type PollEnd,
  type PollLost,
  type Reset,
  type RootRef,
  type StateChange,
  type Stuck,
  type ThreadRef,
  type TraceFacts,
  type TraceInfo,
  type Wake,
  type WatchHit,
} from '../../events/events.js';
import type { Track } from '../../events/open-calls.js';
import {
  accessText,
  actorText,
  argumentsText,
  cancelText,
  engineTexts,
  gapText,
  placeText,
  resetText,
  rootText,
  stackText,
  stateText,
  stuckText,
  threadText,
  wakeText,
} from '../../events/text.js';
import { type Args, named, putQuoted, quote } from '../json-text.js';
import type { LaneWriter, LifeEnd } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import { encoded, PiecesOfText, type TextBytes } from '../output/text-bytes.js';
import { asyncText, PollTexts } from './poll-texts.js';
import { SliceTimes } from './slice-times.js';

/** The number of the first thread that is known by its stack; no hart has so high a number. */
const FIRST_THREAD = 100_001;

/** When something happened to a root Future, and where. */
interface OfRoot {
  readonly root: RootRef;
  readonly hart: number;
  readonly time: GuestNanos;
}

/** What a record is about. */
interface LogEntry {
  readonly category: string;
  readonly name: string;
  readonly args: Args;
}

/** The beginning of every record of a phase, behind what is between two records. */
const heads = new PiecesOfText((phase) => `{"ph":"${phase}","ts":`);
/** Of how a poll ended. */
const resultDetails = new PiecesOfText((result) => named('detail', result, { result }));
const FIRST = encoded('[\n');
const NEXT = encoded(',\n');
const PROCESS = encoded(',"pid":1,"tid":');
const COMMA = 0x2c;
const CLOSE = 0x7d;
const ON_TRACK = encoded(',"s":"t",');
const DETAIL = encoded('"cat":"detail","name":');
const ARGUMENTS = encoded(',"args":{"arguments":');
const RETURNED = encoded(',"args":{"returned":');
const HART = encoded('"hart":');
const ARGS = encoded(',"args":{');

/** Writes Chrome Trace Event JSON into `out`. Use through `Lanes`. */
export class ChromeWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #polls = new PollTexts();
  readonly #times = new SliceTimes();
  #state: 'before' | 'first' | 'more' | 'ended' = 'before';
  /** Facts about the whole trace, until the first event is written. */
  #facts: Args | undefined;
  #firstTime = 0 as GuestNanos;

  constructor(out: OutputFile) {
    this.#out = out;
  }

  begin(info: TraceInfo): void {
    const { clock } = info;
    this.#state = 'first';
    this.#metadata('process_name', 0, { name: info.program });
    const clockText = clock.guest ? `guest clock ${clock.name}` : `clock ${clock.name}`;
    this.#metadata('process_labels', 0, { labels: `${info.arch}, ${clockText}` });
    this.#facts = {
      program: info.program,
      build_id: info.buildId,
      arch: info.arch,
      clock: clock.name,
      clock_resolution_ns: clock.resolutionNs,
      guest_clock: clock.guest,
    };
  }

  hart(hart: HartInfo): void {
    const tid = hart.number + 1;
    this.#metadata('thread_name', tid, { name: hart.name });
    this.#metadata('thread_sort_index', tid, { sort_index: hart.number });
  }

  thread(thread: ThreadRef): void {
    const tid = FIRST_THREAD + thread.key;
    this.#metadata('thread_name', tid, { name: threadText(thread) });
    this.#metadata('thread_sort_index', tid, { sort_index: tid });
  }

  lifeBegin(root: RootRef, time: GuestNanos): void {
    if (root.isPart) return;
    this.#async('b', { root, hart: 0, time }, rootText(root), {
      future: root.future.instance,
      address: hex(root.address),
    });
  }

  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void {
    this.#async('e', { root, hart: 0, time }, rootText(root), { end: how });
  }

  pollBegin(event: PollBegin): void {
    const { async, detail } = this.#polls.begin(event);
    this.#asyncPiece('b', event, async);
    this.#slice('B', event, event.time, event.future);
    const line = this.#startInstant(trackOf(event), event.time);
    line.piece(detail);
    this.#end(line);
  }

  pollEnd(begin: PollBegin, end: PollEnd, onRootLane: boolean): void {
    if (onRootLane) this.#asyncPiece('e', { hart: begin.hart, time: end.time }, this.#polls.end(end));
    this.#pollOver(begin, end.time, end.result);
  }

  pollLost(begin: PollBegin, time: GuestNanos, lanes: 'hart' | 'root' | 'both'): void {
    const args = { result: 'lost' };
    if (lanes !== 'hart') this.#async('e', { ...begin, time }, begin.future.future, args);
    if (lanes !== 'root') this.#pollOver(begin, time, 'lost');
  }

  orphanEnd(event: PollEnd | PollLost): void {
    const args = event.type === 'poll-end' ? this.#polls.endArgs(event) : { result: 'lost' };
    this.#async('n', event, event.future.future, args);
    this.#hart(event, event.time, args);
  }

  waitBegin(end: PollEnd, name: string): void {
    this.#asyncPiece('b', end, this.#polls.wait(end, name));
  }

  waitEnd(root: RootRef, time: GuestNanos, name: string): void {
    this.#asyncPiece('e', { hart: 0, time }, this.#polls.waitEnd(root, name));
  }

  callBegin(event: CallBegin): void {
    this.#slice('B', event, event.time, event.function);
    const text = argumentsText(event.arguments);
    const hart = event.thread && event.hart;
    if (text === '' && hart === undefined) return;
    const line = this.#startInstant(trackOf(event), event.time);
    line.piece(DETAIL);
    putQuoted(line, text || `hart ${hart}`);
    if (text !== '') {
      line.piece(ARGUMENTS);
      putQuoted(line, text);
      if (hart !== undefined) line.byte(COMMA);
    } else line.piece(ARGS);
    if (hart !== undefined) {
      line.piece(HART);
      line.number(hart);
    }
    line.byte(CLOSE);
    this.#end(line);
  }

  callEnd(begin: CallBegin, end: CallEnd): void {
    if (end.result !== undefined) {
      const line = this.#startInstant(trackOf(begin), end.time);
      line.piece(DETAIL);
      putQuoted(line, `= ${end.result}`);
      line.piece(RETURNED);
      putQuoted(line, end.result);
      line.byte(CLOSE);
      this.#end(line);
    }
    this.#slice('E', begin, end.time, begin.function);
  }

  callLost(begin: CallBegin, time: GuestNanos): void {
    this.#detail(trackOf(begin), time, 'lost', { result: 'lost' });
    this.#slice('E', begin, time, begin.function);
  }

  callCut(begin: CallBegin, time: GuestNanos): void {
    this.#slice('E', begin, time, begin.function);
  }

  orphanReturn(event: CallEnd | CallLost): void {
    this.#call(event, event.time, event.type === 'call-end' ? { returned: event.result } : { result: 'lost' });
  }

  wake(event: Wake): void {
    this.#detail(event.hart + 1, event.time, wakeText(event), rolesIn(event));
  }

  cancelled(event: Cancelled): void {
    this.#detail(event.hart + 1, event.time, cancelText(event), {
      future: event.future.instance,
      address: hex(event.address),
      ...rolesIn(event),
      implied: event.implied,
    });
  }

  stuck(event: Stuck): void {
    const { time, root, future, address, why, wait } = event;
    this.#record('i', time, `"tid":1,"s":"g","cat":"stuck","name":${quote(stuckText(event))}`, {
      future: future.instance,
      address: hex(address),
      task: root && rootText(root),
      why,
      wait,
      at: placeText(event),
    });
  }

  state(event: StateChange): void {
    this.#async('n', event, `${event.future.future}: ${event.to?.name ?? 'unknown state'}`, {
      future: event.future.instance,
      address: hex(event.address),
      state_before: event.from && stateText(event.from),
      state_after: event.to && stateText(event.to),
      derived: event.derived,
    });
  }

  derived(event: DerivedPoll): void {
    this.#async('n', event, event.future.future, {
      future: event.future.instance,
      address: hex(event.address),
      result: event.result,
      state_after: event.state && stateText(event.state),
      derived: true,
    });
  }

  watch(event: WatchHit): void {
    const { watch, time } = event;
    const args = {
      watch: watch.name,
      access: event.access,
      old: event.old,
      value: event.value,
      changed: event.changed,
      by: actorText(event),
      inlined: event.inlined.length > 1 ? stackText(event.inlined) : undefined,
      pc: hex(event.pc),
      address: hex(watch.address),
      type: watch.type,
    };
    const name = `${watch.name}: ${accessText(event)}`;
    this.#onTrack(event.hart + 1, time, { category: 'watch', name, args });
    if (event.number === undefined) return;
    const fields = `"tid":${event.hart + 1},"cat":"watch","id":"${hex(watch.address)}","name":${quote(watch.name)}`;
    this.#record('C', time, fields, { value: event.number });
  }

  place({ hart, time, place }: PlaceHit): void {
    const { name, category, by, address } = place;
    const args = { function: by.function, at: placeText(by), address: hex(address) };
    this.#onTrack(hart + 1, time, { category, name, args });
  }

  gap(event: Gap): void {
    const name = quote(gapText(event));
    this.#record('b', event.from, `"tid":1,"cat":"gap","id":"0x0","name":${name}`, {});
    this.#record('e', event.to, `"tid":1,"cat":"gap","id":"0x0","name":${name}`, {});
  }

  console({ time, text }: ConsoleLine): void {
    this.#record('i', time, `"tid":1,"s":"p","cat":"console","name":${quote(text)}`, {});
  }

  reset({ time }: Reset): void {
    this.#record('i', time, `"tid":1,"s":"g","cat":"reset","name":${quote(resetText)}`, {});
  }

  flush(): void {
    this.#out.flush();
  }

  end(facts?: TraceFacts): void {
    if (this.#state !== 'before' && this.#state !== 'ended') this.#reportFacts(this.#firstTime);
    if (facts && facts !== endMissing) {
      this.#record(
        'i',
        this.#firstTime,
        `"tid":1,"s":"g","cat":"trace","name":"engines"`,
        Object.fromEntries(engineTexts(facts)),
      );
    }
    if (this.#state === 'first' || this.#state === 'more') this.#out.textRecord('\n]\n');
    this.#state = 'ended';
    this.#out.close();
  }

  #metadata(name: string, tid: number, args: Args): void {
    this.#write('M', 0, `"tid":${tid},"name":${quote(name)}`, args);
  }

  #slice(phase: 'B' | 'E', event: PollBegin | CallBegin, time: GuestNanos, what: FunctionRef | FutureRef): void {
    this.#reportFacts(time);
    const tid = trackOf(event);
    const line = this.#start(phase);
    this.#times.putNext(tid, time, line);
    line.piece(PROCESS);
    line.number(tid);
    line.byte(COMMA);
    line.piece(commonPiece(what));
    this.#end(line);
  }

  #hart(event: PollEnd | PollLost, time: GuestNanos, args: Args): void {
    this.#onTrack(trackOf(event), time, { category: 'poll', name: event.future.future, args });
  }

  #call(event: CallEnd | CallLost, time: GuestNanos, args: Args): void {
    this.#onTrack(trackOf(event), time, { category: 'call', name: event.function.name, args });
  }

  #pollOver(begin: PollBegin, time: GuestNanos, result: string): void {
    const line = this.#startInstant(trackOf(begin), time);
    line.piece(resultDetails.of(result));
    this.#end(line);
    this.#slice('E', begin, time, begin.future);
  }

  /** For one call, not for its function: belongs to the innermost open slice of the track. */
  #detail(tid: number, time: GuestNanos, name: string, args: Args): void {
    this.#instant(tid, time, named('detail', name, args));
  }

  #onTrack(tid: number, time: GuestNanos, { category, name, args }: LogEntry): void {
    this.#instant(tid, time, named(category, name, args));
  }

  /** `text`: the fields that say what it is. */
  #instant(tid: number, time: GuestNanos, text: string): void {
    const line = this.#startInstant(tid, time);
    line.text(text);
    this.#end(line);
  }

  /** What it is is to follow. */
  #startInstant(tid: number, time: GuestNanos): TextBytes {
    this.#reportFacts(time);
    const line = this.#start('i');
    this.#times.put(tid, time, line);
    line.piece(PROCESS);
    line.number(tid);
    line.piece(ON_TRACK);
    return line;
  }

  #async(phase: 'b' | 'n' | 'e', at: OfRoot, name: string, args: Args): void {
    this.#asyncPiece(phase, at, encoded(asyncText(at.root, name, args)));
  }

  #asyncPiece(phase: 'b' | 'n' | 'e', { hart, time }: Pick<OfRoot, 'hart' | 'time'>, piece: Uint8Array): void {
    this.#reportFacts(time);
    const line = this.#start(phase);
    line.micros(time);
    line.piece(PROCESS);
    line.number(hart + 1);
    line.byte(COMMA);
    line.piece(piece);
    this.#end(line);
  }

  #record(phase: string, time: GuestNanos, fields: string, args: Args): void {
    this.#reportFacts(time);
    this.#write(phase, time, fields, args);
  }

  /** At the time of the first event, because there may be nothing else for long after 0. */
  #reportFacts(time: GuestNanos): void {
    const facts = this.#facts;
    if (facts === undefined) return;
    this.#facts = undefined;
    this.#firstTime = time;
    this.#write('i', time, `"tid":1,"s":"g","cat":"trace","name":"rsptrace"`, facts);
  }

  #write(phase: string, time: number, fields: string, args: Args): void {
    const line = this.#start(phase);
    line.micros(time);
    line.text(`,"pid":1,${fields},"args":${visibleJson(JSON.stringify(args))}`);
    this.#end(line);
  }

  /** The time is to follow, then the other fields, then {@link #end}. */
  #start(phase: string): TextBytes {
    const line = this.#out.startText();
    line.piece(this.#state === 'first' ? FIRST : NEXT);
    this.#state = 'more';
    line.piece(heads.of(phase));
    return line;
  }

  #end(line: TextBytes): void {
    line.byte(CLOSE);
    this.#out.endText();
  }
}

/** What begins and ends of a function's calls, or of a Future's polls, have in common: made once for each. */
const commons = new WeakMap<FunctionRef | FutureRef, Common>();

interface Common {
  /** Its place may be learnt later. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly piece: Uint8Array;
}

function commonPiece(what: FunctionRef | FutureRef): Uint8Array {
  const known = commons.get(what);
  const { file, line } = what;
  if (known !== undefined && known.file === file && known.line === line) return known.piece;
  const at = placeText(what);
  const isFuture = 'future' in what;
  const name = isFuture ? what.future : what.name;
  const args = isFuture ? { future: what.instance, at } : { function: what.instance, address: hex(what.address), at };
  const text = `"cat":"${isFuture ? 'poll' : 'call'}","name":${quote(name)},"args":${visibleJson(JSON.stringify(args))}`;
  const piece = encoded(text);
  commons.set(what, { file, line, piece });
  return piece;
}

function trackOf({ hart, thread }: Track): number {
  return thread ? FIRST_THREAD + thread.key : hart + 1;
}

/** The task that something happens to, and who does it. */
function rolesIn({ root, by, caller }: Wake | Cancelled): Args {
  return { task: root && rootText(root), by: by && rootText(by), function: caller.function, at: placeText(caller) };
}
