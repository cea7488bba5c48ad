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
 * track have one time: picoseconds, below the clock's resolution, keep their order (`SliceTimes`).
 */
import { hex } from '../../../base/addr.js';
import { startOf } from '../../../base/file-head.js';
import { madeOnce } from '../../../base/made-once.js';
import {
  type AnyBegin,
  type AnyEnd,
  type CallEnd,
  type Cancelled,
  type ConsoleLine,
  type DerivedPoll,
  endMissing,
  type Gap,
  type GuestNanos,
  type HartInfo,
  type PlaceHit,
  type PollBegin,
  type PollEnd,
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
  argumentsText,
  ChainTexts,
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
import type { Format } from '../format.js';
import { FIRST_THREAD, type LaneWriter, type LifeEnd, tidOf } from '../lane-writer.js';
import { Lanes } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import type { TextPart } from '../output/record-block.js';
import { clockText, DIGITS, encoded, json, quote } from '../text-lines.js';
import { Ways } from '../ways.js';
import { type Args, accessIn, commonPiece, type Named, named, rolesIn, type SliceTime, SliceTimes } from './fields.js';

/** Chrome's Trace Event Format. */
export const chrome: Format = {
  name: 'Chrome Trace Events',
  extensions: ['.json'],
  about: 'timelines as JSON, for ui.perfetto.dev, chrome://tracing and speedscope',
  use: 'open it in ui.perfetto.dev or chrome://tracing',
  isAppended: true,
  // Both forms: an array of events with `ph`, and an object with `traceEvents`.
  recognizes: (head) => /^\s*(?:\[\s*\{|\{.*"traceEvents"\s*:\s*\[).*"ph"\s*:\s*"/s.test(startOf(head)),
  open: (file) => new Lanes(new ChromeWriter(file)),
};

/** Writes Chrome Trace Event JSON into `out`. */
class ChromeWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #chains = new ChainTexts();
  readonly #times = new SliceTimes();
  /** Of each task. */
  readonly #ways = new Ways<RootRef, Uint8Array>(new WeakMap(), 48);
  /** Details of how polls ended. */
  readonly #results = new Map<string, Uint8Array>();
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
    this.#metadata('process_labels', 0, { labels: `${info.arch}, ${clockText(clock)}` });
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
    this.#track(hart.number + 1, hart.name, hart.number);
  }

  thread(thread: ThreadRef): void {
    const tid = FIRST_THREAD + thread.key;
    this.#track(tid, threadText(thread), tid);
  }

  lifeBegin(root: RootRef, time: GuestNanos): void {
    if (root.isPart) return;
    const args = { future: root.future.instance, address: hex(root.address) };
    this.#async('b', root, { hart: 0, time }, rootText(root), args);
  }

  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void {
    this.#async('e', root, { hart: 0, time }, rootText(root), { end: how });
  }

  rootEnter(event: PollBegin): void {
    const { root, future, address, state, stack } = event;
    const fields = stack ? this.#makeEnter(event) : this.#ways.of(root, event, this.#makeEnter, future, state, address);
    this.#event('b', event.time, event.hart + 1, fields);
  }

  readonly #makeEnter = ({ root, future, address, state, stack }: PollBegin): Uint8Array => {
    const args = {
      future: future.instance,
      address: hex(address),
      at: placeText(future),
      state_before: state && stateText(state),
      stack: stack && stackText(stack),
    };
    return encoded(onTaskTrack(root, future.future, args));
  };

  rootLeave(begin: PollBegin, time: GuestNanos, end: PollEnd | undefined): void {
    const { root, future, hart } = begin;
    const fields = end
      ? this.#ways.of(root, end, this.#makeLeave, future, end.state, end.result, end.chain)
      : onTaskTrack(root, future.future, this.#endArgs(end));
    this.#event('e', time, hart + 1, fields);
  }

  readonly #makeLeave = (end: PollEnd): Uint8Array => {
    return encoded(onTaskTrack(end.root, end.future.future, this.#endArgs(end)));
  };

  enter(begin: AnyBegin): void {
    const { time, thread } = begin;
    const hart = thread && begin.hart;
    this.#slice('B', begin, time);
    if (begin.type === 'poll-begin') {
      const { root, address, stack } = begin;
      this.#onTrack(
        tidOf(begin),
        time,
        stack ? this.#makeTask(begin, address, hart) : this.#ways.of(root, begin, this.#makeTask, address, hart),
      );
      return;
    }
    const text = argumentsText(begin.arguments);
    if (text === '' && hart === undefined) return;
    const about = hart === undefined ? '' : `"hart":${hart}`;
    const quoted = quote(text || `hart ${hart}`);
    const given = text === '' ? '' : `"arguments":${quoted}${about && ','}`;
    this.#onTrack(tidOf(begin), time, `"cat":"detail","name":${quoted},"args":{${given}${about}}`);
  }

  readonly #makeTask = ({ root, stack }: PollBegin, address: bigint, hart: number | undefined): Uint8Array => {
    const args = { task: rootText(root), address: hex(address), hart, stack: stack && stackText(stack) };
    return encoded(named({ category: 'detail', name: 'task', args }));
  };

  leave(begin: AnyBegin, time: GuestNanos, how: PollEnd | CallEnd | 'lost' | 'cut'): void {
    const result = typeof how === 'string' ? 'lost' : how.result;
    const track = tidOf(begin);
    if (begin.type === 'poll-begin' || how === 'lost') this.#onTrack(track, time, this.#resultDetail(result ?? ''));
    else if (how !== 'cut' && result !== undefined) {
      const quoted = [quote(`= ${result}`), quote(result)];
      this.#onTrack(track, time, `"cat":"detail","name":${quoted[0]},"args":{"returned":${quoted[1]}}`);
    }
    this.#slice('E', begin, time);
  }

  #resultDetail(result: string): Uint8Array {
    return madeOnce(this.#results, result, () => {
      return encoded(named({ category: 'detail', name: result, args: { result } }));
    });
  }

  orphan(event: AnyEnd): void {
    if ('function' in event) {
      const args = event.type === 'call-end' ? { returned: event.result } : { result: 'lost' };
      this.#onTrack(tidOf(event), event.time, named({ category: 'call', name: event.function.name, args }));
      return;
    }
    const name = event.future.future;
    const args = this.#endArgs(event.type === 'poll-end' ? event : undefined);
    this.#async('n', event.root, event, name, args);
    this.#onTrack(tidOf(event), event.time, named({ category: 'poll', name, args }));
  }

  waitBegin(end: PollEnd, name: string): void {
    this.#event('b', end.time, end.hart + 1, this.#ways.of(end.root, end, this.#makeWait, name, end.chain));
  }

  readonly #makeWait = ({ root }: PollEnd, name: string, chain: PollEnd['chain']): Uint8Array => {
    return encoded(onTaskTrack(root, name, { await_chain: this.#chains.text(chain) || undefined }));
  };

  waitEnd(root: RootRef, time: GuestNanos, name: string): void {
    this.#event('e', time, 1, this.#ways.of(root, root, makeWaitEnd, name, undefined));
  }

  wake(event: Wake): void {
    this.#detail({ hart: event.hart }, event.time, wakeText(event), rolesIn(event));
  }

  cancelled(event: Cancelled): void {
    this.#detail({ hart: event.hart }, event.time, cancelText(event), {
      future: event.future.instance,
      address: hex(event.address),
      ...rolesIn(event),
      implied: event.implied,
    });
  }

  stuck(event: Stuck): void {
    const { time, root, future, address, why, wait } = event;
    const task = root && rootText(root);
    const args = { future: future.instance, address: hex(address), task, why, wait, at: placeText(event) };
    this.#ofAll('g', time, { category: 'stuck', name: stuckText(event), args });
  }

  state(event: StateChange): void {
    const { future, from, to, derived } = event;
    this.#ofFuture(event, `${future.future}: ${to?.name ?? 'unknown state'}`, {
      state_before: from && stateText(from),
      state_after: to && stateText(to),
      derived,
    });
  }

  derived(event: DerivedPoll): void {
    const { result, state, future } = event;
    this.#ofFuture(event, future.future, { result, state_after: state && stateText(state), derived: true });
  }

  watch(event: WatchHit): void {
    const { watch, hart, time, number } = event;
    const name = `${watch.name}: ${accessText(event)}`;
    this.#onTrack(hart + 1, time, named({ category: 'watch', name, args: accessIn(event) }));
    if (number === undefined) return;
    const counter = { category: 'watch', id: hex(watch.address), name: watch.name, args: { value: number } };
    this.#event('C', time, hart + 1, named(counter));
  }

  place({ hart, time, place }: PlaceHit): void {
    const { name, category, by, address } = place;
    const args = { function: by.function, at: placeText(by), address: hex(address) };
    this.#onTrack(hart + 1, time, named({ category, name, args }));
  }

  gap(event: Gap): void {
    const gap = named({ category: 'gap', id: '0x0', name: gapText(event), args: {} });
    this.#event('b', event.from, 1, gap);
    this.#event('e', event.to, 1, gap);
  }

  console({ time, text }: ConsoleLine): void {
    this.#ofAll('p', time, { category: 'console', name: text, args: {} });
  }

  reset({ time }: Reset): void {
    this.#ofAll('g', time, { category: 'reset', name: resetText, args: {} });
  }

  flush(): void {
    this.#out.flush();
  }

  end(facts?: TraceFacts): void {
    if (this.#state !== 'before' && this.#state !== 'ended') this.#reportFacts(this.#firstTime);
    if (facts && facts !== endMissing) {
      const args = Object.fromEntries(engineTexts(facts));
      this.#ofAll('g', this.#firstTime, { category: 'trace', name: 'engines', args });
    }
    if (this.#state === 'first' || this.#state === 'more') this.#out.textRecord('\n]\n');
    this.#state = 'ended';
    this.#out.close();
  }

  #endArgs(end: PollEnd | undefined): Args {
    if (end === undefined) return { result: 'lost' };
    const { result, state, chain } = end;
    return { result, state_after: state && stateText(state), await_chain: this.#chains.text(chain) || undefined };
  }

  #ofFuture(event: StateChange | DerivedPoll, name: string, args: Args): void {
    const { root, future, address } = event;
    this.#async('n', root, event, name, { future: future.instance, address: hex(address), ...args });
  }

  #track(tid: number, name: string, order: number): void {
    this.#metadata('thread_name', tid, { name });
    this.#metadata('thread_sort_index', tid, { sort_index: order });
  }

  #metadata(name: string, tid: number, args: Args): void {
    this.#write('M', zero, tid, ',', `"name":${quote(name)},"args":${json(args)}`);
  }

  #slice(phase: 'B' | 'E', begin: AnyBegin, time: GuestNanos): void {
    this.#reportFacts(time);
    const tid = tidOf(begin);
    this.#write(phase, this.#times.next(tid, time), tid, ',', commonPiece(begin));
  }

  /** For one call, not for its function: belongs to the innermost open slice of the track. */
  #detail(track: Track, time: GuestNanos, name: string, args: Args): void {
    this.#onTrack(tidOf(track), time, named({ category: 'detail', name, args }));
  }

  #onTrack(tid: number, time: GuestNanos, fields: TextPart): void {
    this.#reportFacts(time);
    this.#write('i', this.#times.at(tid, time), tid, ',"s":"t",', fields);
  }

  /** `scope`: of the process, or of everything. */
  #ofAll(scope: 'p' | 'g', time: GuestNanos, what: Named): void {
    this.#event('i', time, 1, `"s":"${scope}",${named(what)}`);
  }

  /** On a root's track. */
  #async(phase: 'b' | 'n' | 'e', root: RootRef, at: Pick<Wake, 'hart' | 'time'>, name: string, args: Args): void {
    this.#event(phase, at.time, at.hart + 1, onTaskTrack(root, name, args));
  }

  #event(phase: Phase, time: GuestNanos, tid: number, fields: TextPart): void {
    this.#reportFacts(time);
    this.#write(phase, { nanos: time, picos: 0 }, tid, ',', fields);
  }

  /** At the time of the first event, because there may be nothing else for long after 0. */
  #reportFacts(time: GuestNanos): void {
    const facts = this.#facts;
    if (facts === undefined) return;
    this.#facts = undefined;
    this.#firstTime = time;
    this.#ofAll('g', time, { category: 'trace', name: 'rsptrace', args: facts });
  }

  /** `fields`: what it is. */
  #write(phase: Phase, { nanos, picos }: SliceTime, tid: number, before: string, fields: TextPart): void {
    const record = HEADS[phase];
    const head = this.#state === 'first' ? `[${Buffer.from(record.subarray(1))}` : record;
    this.#state = 'more';
    const rest = nanos % 1000;
    const decimals = DIGITS[rest] as string;
    const more = picos === 0 ? '' : (DIGITS[picos] as string);
    const micros = (nanos - rest) / 1000;
    this.#out.textRecord([head, micros, '.', decimals, more, PROCESS, tid, before, fields, '}']);
  }
}

const zero: SliceTime = { nanos: 0, picos: 0 };

/** The beginning of every record of a phase, behind what is between two records. */
const HEADS = {
  B: head('B'),
  E: head('E'),
  i: head('i'),
  M: head('M'),
  b: head('b'),
  n: head('n'),
  e: head('e'),
  C: head('C'),
};
type Phase = keyof typeof HEADS;
const PROCESS = encoded(',"pid":1,"tid":');

function head(phase: string): Uint8Array {
  return encoded(`,\n{"ph":"${phase}","ts":`);
}

/** Viewers put what has one category and id on one track. */
function onTaskTrack(root: RootRef, name: string, args: Args): string {
  return named({ category: 'future', id: hex(root.key), name, args });
}

function makeWaitEnd(root: RootRef, name: string): Uint8Array {
  return encoded(onTaskTrack(root, name, {}));
}
