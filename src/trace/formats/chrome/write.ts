/*
 * Chrome's "Trace Event Format" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), as a JSON
 * array. Its closing `]` may be missing, so that a file that is cut off after a record loads.
 *
 *   M        metadata
 *   B E      slices of a hart, or of a stack: strictly nested
 *   b n e    nestable async: of a root Future (one `cat` + `id` each), of gaps
 *   i        instants of a hart or a stack: accesses of watched places, hits of places, ends whose begin is unknown,
 *            `detail`s; of all harts: resets, lines of the console
 *   C        values of watched places
 *
 * `ts` is microseconds with the nanoseconds as decimals. `pid` is 1, or the number of a kernel's process. `tid` is the
 * hart's number + 1, because viewers take thread 0 as the idle thread; of a stack from 100001.
 *
 * In speedscope a slice's name and args are its frame, and the end must have the same args. So args of B and E have
 * what is the same for all calls of a function. Facts about one call are in an instant behind its begin and one
 * before its end (cat `detail`). It sorts begins and ends by time, apart from each other. So no two B and E of a
 * track have one time: picoseconds, below the clock's resolution, keep their order (`SliceTimes`).
 */

import { type Addr, hex } from '../../../base/addr.js';
import { startOf } from '../../../base/file-bytes.js';
import { chainText } from '../../events/await-ways.js';
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
import { calledOf } from '../../events/future-names.js';
import type { Track } from '../../events/open-calls.js';
import { type Process, type ProcessRef, processName } from '../../events/processes.js';
import {
  accessText,
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
import type { Format } from '../format.js';
import { FIRST_THREAD, type LaneWriter, type LifeEnd, tidOf } from '../lane-writer.js';
import { Lanes } from '../lanes.js';
import type { OutputFile } from '../output/output-file.js';
import { clockText, quote } from '../text-lines.js';
import { type Args, accessIn, named, rolesIn } from './fields.js';
import { ChromeRecords } from './records.js';

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
  readonly #out: ChromeRecords;
  /** Of processes, by their address spaces. */
  readonly #numbers = new Map<Addr | undefined, number>();

  constructor(out: OutputFile) {
    this.#out = new ChromeRecords(out);
  }

  begin(info: TraceInfo): void {
    const { clock, program, arch } = info;
    this.#out.begin({
      program,
      build_id: info.buildId,
      arch,
      clock: clock.name,
      clock_resolution_ns: clock.resolutionNs,
      guest_clock: clock.guest,
    });
    this.#out.metadata('process_name', 0, { name: program });
    this.#out.metadata('process_labels', 0, { labels: `${arch}, ${clockText(clock)}` });
  }

  hart(hart: HartInfo): void {
    this.#track(hart.number + 1, hart.name, hart.number);
  }

  process({ number, space }: ProcessRef): void {
    this.#numbers.set(space, number);
  }

  processes(all: readonly Process[]): void {
    for (const process of all) {
      const { number, space, programs } = process;
      const labels = [`page tables at ${hex(space)}`, ...programs].join(', ');
      this.#out.process(number, 'process_name', { name: processName(process) });
      this.#out.process(number, 'process_labels', { labels });
    }
  }

  thread(thread: ThreadRef): void {
    const tid = FIRST_THREAD + thread.key;
    const process = this.#numbers.get(thread.space);
    if (process !== undefined) this.#out.home(tid, process);
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
    this.#async('b', root, event, calledOf(future), {
      future: future.instance,
      address: hex(address),
      at: placeText(future),
      state_before: state && stateText(state),
      stack: stack && stackText(stack),
    });
  }

  rootLeave(begin: PollBegin, time: GuestNanos, end: PollEnd | undefined): void {
    const { root, future, hart } = begin;
    this.#async('e', root, { hart, time }, calledOf(future), this.#endArgs(end));
  }

  enter(begin: AnyBegin): void {
    const { time, thread } = begin;
    const hart = thread && begin.hart;
    this.#out.slice('B', begin, time);
    if (begin.type === 'poll-begin') {
      const { root, address, stack } = begin;
      const args = { task: rootText(root), address: hex(address), hart, stack: stack && stackText(stack) };
      this.#detail(begin, time, 'task', args);
      return;
    }
    const text = argumentsText(begin.arguments);
    if (text === '' && hart === undefined) return;
    const about = hart === undefined ? '' : `"hart":${hart}`;
    const quoted = quote(text || `hart ${hart}`);
    const given = text === '' ? '' : `"arguments":${quoted}${about && ','}`;
    this.#out.onTrack(tidOf(begin), time, `"cat":"detail","name":${quoted},"args":{${given}${about}}`);
  }

  leave(begin: AnyBegin, time: GuestNanos, how: PollEnd | CallEnd | 'lost' | 'cut'): void {
    const result = typeof how === 'string' ? 'lost' : how.result;
    const track = tidOf(begin);
    if (begin.type === 'poll-begin' || how === 'lost')
      this.#detail(begin, time, result ?? '', { result: result ?? '' });
    else if (how !== 'cut' && result !== undefined) {
      const quoted = [quote(`= ${result}`), quote(result)];
      this.#out.onTrack(track, time, `"cat":"detail","name":${quoted[0]},"args":{"returned":${quoted[1]}}`);
    }
    this.#out.slice('E', begin, time);
  }

  orphan(event: AnyEnd): void {
    if ('function' in event) {
      const args = event.type === 'call-end' ? { returned: event.result } : { result: 'lost' };
      this.#out.onTrack(tidOf(event), event.time, named({ category: 'call', name: event.function.name, args }));
      return;
    }
    const name = calledOf(event.future);
    const args = this.#endArgs(event.type === 'poll-end' ? event : undefined);
    this.#async('n', event.root, event, name, args);
    this.#out.onTrack(tidOf(event), event.time, named({ category: 'poll', name, args }));
  }

  waitBegin(end: PollEnd, name: string): void {
    const args = { await_chain: chainText(end) || undefined };
    this.#async('b', end.root, end, name, args);
  }

  waitEnd(root: RootRef, time: GuestNanos, name: string): void {
    this.#async('e', root, { hart: 0, time }, name, {});
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
    this.#out.ofAll('g', time, { category: 'stuck', name: stuckText(event), args });
  }

  state(event: StateChange): void {
    const { future, from, to, derived } = event;
    this.#ofFuture(event, `${calledOf(future)}: ${to?.name ?? 'unknown state'}`, {
      state_before: from && stateText(from),
      state_after: to && stateText(to),
      derived,
    });
  }

  derived(event: DerivedPoll): void {
    const { result, state, future } = event;
    this.#ofFuture(event, calledOf(future), { result, state_after: state && stateText(state), derived: true });
  }

  watch(event: WatchHit): void {
    const { watch, hart, time, number } = event;
    const name = `${watch.name}: ${accessText(event)}`;
    this.#out.onTrack(hart + 1, time, named({ category: 'watch', name, args: accessIn(event) }));
    if (number === undefined) return;
    const counter = { category: 'watch', id: hex(watch.address), name: watch.name, args: { value: number } };
    this.#out.event('C', time, hart + 1, named(counter));
  }

  place({ hart, time, place }: PlaceHit): void {
    const { name, category, by, address } = place;
    const args = { function: by.function, at: placeText(by), address: hex(address) };
    this.#out.onTrack(hart + 1, time, named({ category, name, args }));
  }

  gap(event: Gap): void {
    const gap = named({ category: 'gap', id: '0x0', name: gapText(event), args: {} });
    this.#out.event('b', event.from, 1, gap);
    this.#out.event('e', event.to, 1, gap);
  }

  console({ time, text }: ConsoleLine): void {
    this.#out.ofAll('p', time, { category: 'console', name: text, args: {} });
  }

  reset({ time }: Reset): void {
    this.#out.ofAll('g', time, { category: 'reset', name: resetText, args: {} });
  }

  flush(): void {
    this.#out.flush();
  }

  end(facts?: TraceFacts): void {
    const engines = facts && facts !== endMissing ? Object.fromEntries(engineTexts(facts)) : undefined;
    this.#out.end(engines);
  }

  #endArgs(end: PollEnd | undefined): Args {
    if (end === undefined) return { result: 'lost' };
    const { result, state } = end;
    return { result, state_after: state && stateText(state), await_chain: chainText(end) || undefined };
  }

  #ofFuture(event: StateChange | DerivedPoll, name: string, args: Args): void {
    const { root, future, address } = event;
    this.#async('n', root, event, name, { future: future.instance, address: hex(address), ...args });
  }

  #track(tid: number, name: string, order: number): void {
    this.#out.metadata('thread_name', tid, { name });
    this.#out.metadata('thread_sort_index', tid, { sort_index: order });
  }

  /** For one call, not for its function: belongs to the innermost open slice of the track. */
  #detail(track: Track, time: GuestNanos, name: string, args: Args): void {
    this.#out.onTrack(tidOf(track), time, named({ category: 'detail', name, args }));
  }

  /** On a root's track: viewers put what has one category and id on one. */
  #async(
    phase: 'b' | 'n' | 'e',
    { key, space }: RootRef,
    at: Pick<Wake, 'hart' | 'time'>,
    name: string,
    args: Args,
  ): void {
    this.#out.event(
      phase,
      at.time,
      at.hart + 1,
      named({ category: 'future', id: hex(key), name, args }),
      this.#numbers.get(space),
    );
  }
}
