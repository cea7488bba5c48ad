/*
 * The Perfetto trace of a recording. The packets' format, spec and field numbers: ./packets.ts.
 *
 *   labkern                         the process. Instants: program, build id, architecture and clock; resets; the end
 *     hart 0                        a slice a poll and a slice a call, nested; polls name their task
 *     hart 1
 *     stack 0xff20000000014000      the calls of a thread that is known by its stack, not on its harts' tracks
 *     tasks
 *       work::task @0x80412340      `waiting at FILE:LINE` from poll to poll; instants: states, derived polls, its end
 *     labkern::exec::POLLS          a counter a watched place that is a number; accesses are instants on the hart
 *     (thread of a hart)            the samples of a profile: ./samples.ts
 *     tasks waiting, runnable       a counter each: tasks that wait for a wake, and for the poll that it causes
 *     console                       an instant a line of the guest's console
 *     gaps                          a slice where the link was broken; only where there is one
 *
 * A flow leads through all polls of a task that stand in no other poll of it, and its waits between them. Another leads
 * from a wake, an instant on its hart, to the poll that it causes.
 *
 * Track uuids: 1 the process, 2 `tasks`, odd from 3 roots, even from 4 harts, even from FIRST_THREAD threads;
 * odd from FIRST_SAMPLED harts in a profile; GAPS_TRACK, and watched places in even numbers down
 * from there. Nothing of the host is written.
 */

import {
  type CallBegin,
  type CallEnd,
  type CallLost,
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
  type PollLost,
  type Reset,
  type RootRef,
  type Sample,
  type StateChange,
  type StateRef,
  type Stuck,
  type ThreadRef,
  type TraceFacts,
  type TraceInfo,
  type Wake,
  type WatchHit,
  type WatchRef,
} from '../../../events/events.js';
import type { Track } from '../../../events/open-calls.js';
import {
  aboutText,
  accessText,
  actorText,
  gapText,
  resetText,
  rootText,
  stackText,
  threadText,
} from '../../../events/text.js';
import type { LaneWriter, LifeEnd } from '../../lanes.js';
import type { OutputFile } from '../../output/output-file.js';
import { putEngines, putHeading, putRecording } from '../facts.js';
import { CHILD_ORDERING, EVENT, type EventType, PROCESS_DESCRIPTOR, TRACK_DESCRIPTOR } from '../fields.js';
import { TaskCounters } from '../task-counters.js';
import type { Body } from './body.js';
import { CallBodies } from './calls.js';
import { PerfettoSequence } from './packets.js';
import { PollBodies } from './polls.js';
import { SamplePackets } from './samples.js';

const PROCESS_TRACK = 1;
const TASKS_TRACK = 2;
/** After every hart. */
const TASKS_RANK = 0x7fff_ffff;

/** No hart has so high a number. */
const FIRST_THREAD = 0x10_0000;
/** No hart or thread has so high a number. */
const GAPS_TRACK = 0x7fff_fffe;

/** No hart has so high a number, and it takes two bytes. */
export const CONSOLE_TRACK = 0x3ffa;
/** The same, around the roots that are parts of tasks that are not known. */
export const PARTS_TRACK = 0x3ff8;

/** Of the threads that stand for harts in a profile: below watched places, and odd, as no hart's is. */
const FIRST_SAMPLED = 0x7000_0001;

const watchTrack = (watch: WatchRef): number => GAPS_TRACK - 2 - 2 * watch.key;
const hartTrack = (hart: number): number => 4 + 2 * hart;
/** The track of a call. */
const callTrack = ({ hart, thread }: Track): number => (thread ? threadTrack(thread) : hartTrack(hart));
const threadTrack = ({ key }: ThreadRef): number => FIRST_THREAD + 2 * key;
const rootTrack = (root: RootRef): number => 3 + 2 * root.key;

/** A track beside those of harts and tasks. */
interface ExtraTrack {
  readonly track: number;
  readonly name: string;
  readonly rank: number;
  readonly isCounter?: boolean;
}

/** Writes a Perfetto trace into `out`. Use through `Lanes`. */
export class PerfettoWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #sequence: PerfettoSequence;
  readonly #bodies: PollBodies;
  readonly #calls: CallBodies;
  readonly #samples: SamplePackets;
  /** Until it is written. */
  #info: TraceInfo | undefined;
  /** From the first event's time to the latest; undefined until the trace begins. */
  #span: { first: number; last: number } | undefined;
  /** Those of gaps, the console and watched places: declared when they are first used. */
  readonly #declared = new Set<number>();
  readonly #tasks: TaskCounters;

  constructor(out: OutputFile) {
    this.#out = out;
    this.#sequence = new PerfettoSequence(out);
    this.#bodies = new PollBodies(this.#sequence);
    this.#calls = new CallBodies(this.#sequence);
    this.#tasks = new TaskCounters(this.#sequence, PROCESS_TRACK, (track, time, body) =>
      this.#event(EVENT.counter, track, time, body),
    );
    this.#samples = new SamplePackets(this.#sequence, PROCESS_TRACK, (hart) => FIRST_SAMPLED + 2 * hart);
  }

  begin(info: TraceInfo): void {
    const { clock } = info;
    const clockText = clock.guest ? `guest clock ${clock.name}` : `clock ${clock.name}`;
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, info.program);
      const process = track.open(TRACK_DESCRIPTOR.process);
      track.uint(PROCESS_DESCRIPTOR.pid, 1);
      track.text(PROCESS_DESCRIPTOR.processName, info.program);
      track.text(PROCESS_DESCRIPTOR.processLabels, info.arch);
      track.text(PROCESS_DESCRIPTOR.processLabels, clockText);
      track.close(process);
      track.uint(TRACK_DESCRIPTOR.childOrdering, CHILD_ORDERING.explicit);
      track.text(TRACK_DESCRIPTOR.description, `${info.arch}; times are of the ${clockText}`);
    });
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, TASKS_TRACK);
      track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, 'tasks');
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, TASKS_RANK);
      track.uint(TRACK_DESCRIPTOR.childOrdering, CHILD_ORDERING.chronological);
    });
    this.#info = info;
    this.#span = { first: 0, last: 0 };
    this.#sequence.callstacks.program = info.program;
  }

  /** All events go through here: facts about the whole trace are written where it begins. */
  #event(type: EventType, track: number, time: number, body?: Body, more?: Body): void {
    if (this.#info) this.#reportInfo(this.#info, time);
    this.#reach(time);
    this.#sequence.event(type, track, time, body, more);
  }

  #reach(time: number): void {
    if (this.#span && time > this.#span.last) this.#span.last = time;
  }

  #reportInfo(info: TraceInfo, time: number): void {
    this.#info = undefined;
    if (this.#span) this.#span.first = time;
    putHeading(this.#sequence.annotate(), info);
    const body = this.#sequence.body({ category: 'trace', name: 'rsptrace' });
    this.#sequence.event(EVENT.instant, PROCESS_TRACK, time, body);
  }

  hart(hart: HartInfo): void {
    this.#samples.hart(hart);
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, hartTrack(hart.number));
      track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, hart.name);
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, hart.number);
    });
  }

  thread(thread: ThreadRef): void {
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, threadTrack(thread));
      track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, threadText(thread));
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, FIRST_THREAD + thread.key);
    });
  }

  lifeBegin(root: RootRef): void {
    if (root.isPart)
      this.#declareTrack({ track: PARTS_TRACK, name: 'parts of tasks that are not known', rank: TASKS_RANK - 4 });
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, rootTrack(root));
      track.uint(TRACK_DESCRIPTOR.parentUuid, root.isPart ? PARTS_TRACK : TASKS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, rootText(root));
      if (root.about) track.text(TRACK_DESCRIPTOR.description, aboutText(root.about));
    });
  }

  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void {
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.life(how));
  }

  pollBegin(event: PollBegin, isOutermost: boolean, wake?: number): void {
    const body = this.#bodies.begin(event);
    const beside = this.#bodies.besideBegin(event, isOutermost, wake);
    this.#event(EVENT.sliceBegin, callTrack(event), event.time, body, beside);
  }

  pollEnd(begin: PollBegin, end: PollEnd): void {
    this.#event(EVENT.sliceEnd, callTrack(begin), end.time, this.#bodies.end(end));
  }

  pollLost(begin: PollBegin, time: GuestNanos, lanes: 'hart' | 'root' | 'both', why: 'lost' | 'cut'): void {
    if (lanes !== 'root') this.#event(EVENT.sliceEnd, callTrack(begin), time, this.#bodies.ended(why));
  }

  orphanEnd(event: PollEnd | PollLost): void {
    this.#event(EVENT.instant, callTrack(event), event.time, this.#bodies.orphan(event));
  }

  waitBegin(end: PollEnd, name: string, at: StateRef | undefined): void {
    const body = this.#bodies.wait(end, name, at);
    this.#event(EVENT.sliceBegin, rootTrack(end.root), end.time, body, this.#bodies.flow(end.root));
  }

  waitEnd(root: RootRef, time: GuestNanos): void {
    this.#event(EVENT.sliceEnd, rootTrack(root), time);
  }

  callBegin(event: CallBegin): void {
    const body = this.#calls.begin(event);
    const more = this.#calls.besides(event);
    this.#event(EVENT.sliceBegin, callTrack(event), event.time, body, more);
  }

  callEnd(begin: CallBegin, end: CallEnd): void {
    const { result } = end;
    const body = result === undefined ? undefined : this.#calls.result(result);
    this.#event(EVENT.sliceEnd, callTrack(begin), end.time, body);
  }

  callLost(begin: CallBegin, time: GuestNanos): void {
    this.#event(EVENT.sliceEnd, callTrack(begin), time, this.#bodies.ended('lost'));
  }

  callCut(begin: CallBegin, time: GuestNanos): void {
    this.#event(EVENT.sliceEnd, callTrack(begin), time, this.#bodies.ended('cut'));
  }

  orphanReturn(event: CallEnd | CallLost): void {
    this.#event(EVENT.instant, callTrack(event), event.time, this.#calls.orphan(event));
  }

  state(event: StateChange): void {
    const { root, time } = event;
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.state(event), this.#bodies.beside(event));
  }

  derived(event: DerivedPoll): void {
    const { root, time } = event;
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.derived(event), this.#bodies.beside(event));
  }

  watch(event: WatchHit): void {
    const { watch, time, inlined } = event;
    const notes = this.#sequence.annotate();
    notes.text('watch', watch.name);
    notes.text('access', event.access);
    if (event.old !== undefined) notes.value('old', event.old);
    if (event.value !== undefined) notes.value('value', event.value);
    if (event.changed !== undefined) notes.bool('changed', event.changed);
    notes.text('by', actorText(event));
    if (inlined.length > 1) notes.text('inlined', stackText(inlined));
    notes.pointer('pc', event.pc);
    notes.pointer('address', watch.address);
    notes.text('type', watch.type);
    const body = this.#sequence.body({
      category: 'watch',
      name: `${watch.name}: ${accessText(event)}`,
      place: event.by,
    });
    this.#event(EVENT.instant, hartTrack(event.hart), time, body);
    if (event.number === undefined) return;
    this.#declareTrack({ track: watchTrack(watch), name: watch.name, rank: TASKS_RANK - 2, isCounter: true });
    this.#event(EVENT.counter, watchTrack(watch), time, this.#sequence.counterBody(event.number));
  }

  place({ hart, time, place: { name, category, by, address } }: PlaceHit): void {
    const notes = this.#sequence.annotate();
    if (by.function !== undefined) notes.text('function', by.function);
    notes.pointer('address', address);
    this.#event(EVENT.instant, hartTrack(hart), time, this.#sequence.body({ category, name, place: by }));
  }

  wake(event: Wake, number: number | undefined): void {
    const body = this.#bodies.wake(event);
    const flow = number === undefined ? undefined : this.#bodies.wakeFlow(number);
    this.#event(EVENT.instant, hartTrack(event.hart), event.time, body, flow);
  }

  sample(event: Sample): void {
    if (this.#info) this.#reportInfo(this.#info, event.time);
    this.#reach(event.time);
    this.#samples.write(event);
  }

  cancelled(event: Cancelled): void {
    this.#event(EVENT.instant, hartTrack(event.hart), event.time, this.#bodies.cancelled(event));
  }

  stuck(event: Stuck): void {
    const track = event.root ? rootTrack(event.root) : PROCESS_TRACK;
    this.#event(EVENT.instant, track, event.time, this.#bodies.stuck(event));
  }

  #declareTrack({ track: uuid, name, rank, isCounter = false }: ExtraTrack): void {
    if (this.#declared.has(uuid)) return;
    this.#declared.add(uuid);
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, uuid);
      track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, name);
      if (isCounter) track.close(track.open(TRACK_DESCRIPTOR.counter));
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, rank);
    });
  }

  gap(event: Gap): void {
    this.#declareTrack({ track: GAPS_TRACK, name: 'gaps', rank: TASKS_RANK - 1 });
    this.#sequence.annotate();
    const body = this.#sequence.body({ category: 'gap', name: gapText(event) });
    this.#event(EVENT.sliceBegin, GAPS_TRACK, event.from, body);
    this.#event(EVENT.sliceEnd, GAPS_TRACK, event.to);
  }

  reset({ time }: Reset): void {
    this.#sequence.annotate();
    const body = this.#sequence.body({ category: 'reset', name: resetText });
    this.#event(EVENT.instant, PROCESS_TRACK, time, body);
  }

  console({ time, text }: ConsoleLine): void {
    this.#declareTrack({ track: CONSOLE_TRACK, name: 'console', rank: TASKS_RANK - 3 });
    this.#sequence.annotate();
    this.#event(EVENT.instant, CONSOLE_TRACK, time, this.#sequence.body({ category: 'console', name: text }));
  }

  tasks(time: GuestNanos, waiting: number, runnable: number): void {
    this.#tasks.show(time, waiting, runnable);
  }

  flush(): void {
    // The clock of a process is 0 where its recording begins: a machine's may be anywhere before its first event.
    if (this.#info?.isProcess) this.#reportInfo(this.#info, 0);
    this.#out.flush();
  }

  end(facts?: TraceFacts): void {
    if (this.#info) this.#reportInfo(this.#info, 0);
    if (facts && facts !== endMissing) {
      const first = this.#span?.first ?? 0;
      putEngines(this.#sequence.annotate(), facts);
      this.#ofTrace('engines', first);
      if (facts.recording) {
        putRecording(this.#sequence.annotate(), facts.recording, facts.ownTime);
        this.#ofTrace('recording', first);
      }
    }
    if (this.#span && !facts?.isCut) {
      // A trace without it was cut off: its recorder was killed, or found no room.
      this.#sequence.annotate();
      this.#ofTrace('end', this.#span.last);
    }
    this.#out.close();
  }

  /** An instant about the whole trace, with the annotations so far. */
  #ofTrace(name: string, time: number): void {
    this.#event(EVENT.instant, PROCESS_TRACK, time, this.#sequence.body({ category: 'trace', name }));
  }
}
