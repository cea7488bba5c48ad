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
 *     (thread of a hart)            the samples of a profile: PerfSample (profiling/profile_packet.proto)
 *     tasks waiting, runnable       a counter each: tasks that wait for a wake, and for the poll that it causes
 *     console                       an instant a line of the guest's console
 *     gaps                          a slice where the link was broken; only where there is one
 *   shell                           a process of the kernel: its stacks and tasks, and a slice of the time it was seen
 *
 * A flow leads through all polls of a task that stand in no other poll of it, and its waits between them. Another leads
 * from a wake, an instant on its hart, to the poll that it causes. A third leads from a system call to what the kernel
 * runs first for it. A fourth leads from there back to the call's end.
 *
 * Track uuids are 1 (the process), 2 (`tasks`), odd numbers from 3 (roots), and even ones from 4 (harts). Even ones are
 * threads from FIRST_THREAD, and processes and their tasks from FIRST_PROCESS. Odd ones from FIRST_SAMPLED are harts of
 * a profile. From GAPS_TRACK even numbers down are watched places. Nothing of the host is written.
 */

import type { AwaitPlace } from '../../../events/await-place.js';
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
  type PollEnd,
  type Reset,
  type RootRef,
  type Sample,
  type StateChange,
  type Stuck,
  type ThreadRef,
  type TraceFacts,
  type TraceInfo,
  type Wake,
  type WatchHit,
  type WatchRef,
} from '../../../events/events.js';
import type { Track } from '../../../events/open-calls.js';
import type { Process, ProcessRef } from '../../../events/processes.js';
import { aboutText, gapText, resetText, rootText, threadText } from '../../../events/text.js';
import type { LaneWriter, LifeEnd } from '../../lane-writer.js';
import type { OutputFile } from '../../output/output-file.js';
import type { Served } from '../../served-calls.js';
import { clockText } from '../../text-lines.js';
import { putEngines, putHeading, putRecording } from '../facts.js';
import { CHILD_ORDERING, EVENT, type EventType, hartTrack, PERF_SAMPLE, TRACE_PACKET, TRACK } from '../fields.js';
import { Bodies } from './bodies.js';
import type { Body } from './body.js';
import { PerfettoSequence, type TrackAbout } from './packets.js';
import { ProcessTracks } from './process-tracks.js';

/** After every hart. */
const TASKS_RANK = 0x7fff_ffff;
/** Between threads and the tracks of tasks. */
const COUNTERS_RANK = 0x7fff_fff0;

const PID = 1;
/** Of the threads that stand for harts in a profile: below watched places, and odd, as no hart's is. */
const FIRST_SAMPLED = 0x7000_0001;
/** No hart has so high a number. */
const FIRST_THREAD = 0x10_0000;
/** No hart or thread has so high a number. */
const GAPS_TRACK = 0x7fff_fffe;

/** Numbers of tasks whose bodies are kept. */
const mostCounts = 256;
const counters = [
  ofProcess(TRACK.waiting, 'tasks waiting', COUNTERS_RANK, {}),
  ofProcess(TRACK.runnable, 'tasks runnable', COUNTERS_RANK + 1, {}),
] as const;

/** A track of the process that is none of a hart, a thread or a task. `counter`: it shows numbers. */
function ofProcess(uuid: number, name: string, siblingOrderRank: number, counter?: object) {
  return { uuid, parentUuid: TRACK.process, name, counter, siblingOrderRank };
}

const watchTrack = (watch: WatchRef): number => GAPS_TRACK - 2 - 2 * watch.key;
/** The track of a call. */
const callTrack = ({ hart, thread }: Track): number => (thread ? threadTrack(thread) : hartTrack(hart));
const threadTrack = ({ key }: ThreadRef): number => FIRST_THREAD + 2 * key;
const rootTrack = (root: RootRef): number => 3 + 2 * root.key;

/** Writes a Perfetto trace into `out`. Use through `Lanes`. */
export class PerfettoWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #sequence: PerfettoSequence;
  readonly #bodies: Bodies;
  readonly #processes: ProcessTracks;
  readonly #harts: string[] = [];
  /** Until it is written. */
  #info: TraceInfo | undefined;
  /** From the first event's time to the latest; undefined until the trace begins. */
  #span: { first: number; last: number } | undefined;
  /** Those of gaps, the console and watched places: declared when they are first used. */
  readonly #declared = new Set<number>();
  /** Tasks that wait, and that were woken and not polled yet: what the counters show. */
  readonly #shown = [0, 0];
  readonly #counts: (Body | undefined)[] = [];

  constructor(out: OutputFile) {
    this.#out = out;
    this.#sequence = new PerfettoSequence(out);
    this.#bodies = new Bodies(this.#sequence);
    this.#processes = new ProcessTracks(this.#sequence);
  }

  begin(info: TraceInfo): void {
    const { clock, program, arch } = info;
    const timed = clockText(clock);
    this.#sequence.descriptor({
      uuid: TRACK.process,
      name: program,
      process: { pid: PID, processName: program, processLabels: [arch, timed] },
      childOrdering: CHILD_ORDERING.explicit,
      description: `${arch}; times are of the ${timed}`,
    });
    const order = { siblingOrderRank: TASKS_RANK, childOrdering: CHILD_ORDERING.chronological };
    this.#sequence.descriptor({ uuid: TRACK.tasks, parentUuid: TRACK.process, name: 'tasks', ...order });
    this.#info = info;
    this.#span = { first: 0, last: 0 };
    this.#sequence.callstacks.program = program;
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
    this.#sequence.event(EVENT.instant, TRACK.process, time, body);
  }

  hart(hart: HartInfo): void {
    const { number, name } = hart;
    this.#harts[number] = name;
    this.#sequence.descriptor({
      uuid: hartTrack(number),
      parentUuid: TRACK.process,
      name,
      siblingOrderRank: number,
    });
  }

  process(process: ProcessRef): void {
    this.#processes.add(process);
  }

  processes(all: readonly Process[]): void {
    this.#processes.end(all);
  }

  thread(thread: ThreadRef): void {
    this.#sequence.descriptor({
      uuid: threadTrack(thread),
      parentUuid: this.#processes.around(thread.space),
      name: threadText(thread),
      siblingOrderRank: FIRST_THREAD + thread.key,
    });
  }

  lifeBegin(root: RootRef): void {
    const { isPart, about, space } = root;
    if (isPart) this.#declare(ofProcess(TRACK.parts, 'parts of tasks that are not known', TASKS_RANK - 4));
    const description = about && aboutText(about);
    const parentUuid = isPart ? TRACK.parts : this.#processes.aroundTask(space);
    this.#sequence.descriptor({ uuid: rootTrack(root), parentUuid, name: rootText(root), description });
  }

  lifeEnd(root: RootRef, time: GuestNanos, how: LifeEnd): void {
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.life(how));
  }

  enter(begin: AnyBegin, isOutermost?: boolean, wake?: number, served?: Served): void {
    const body = this.#bodies.begin(begin);
    const more = this.#bodies.moreOfBegin(begin, { isOutermost, wake, served });
    this.#event(EVENT.sliceBegin, callTrack(begin), begin.time, body, more);
  }

  leave(begin: AnyBegin, time: GuestNanos, how: PollEnd | CallEnd | 'lost' | 'cut', served?: number): void {
    const isText = typeof how === 'string';
    const body = isText ? this.#bodies.ended(how) : how.type === 'call-end' ? undefined : this.#bodies.end(how);
    const more = isText ? undefined : this.#bodies.moreOfEnd(how, served);
    this.#event(EVENT.sliceEnd, callTrack(begin), time, body, more);
  }

  orphan(event: AnyEnd): void {
    this.#event(EVENT.instant, callTrack(event), event.time, this.#bodies.orphan(event));
  }

  waitBegin(end: PollEnd, _name: string, at: AwaitPlace | undefined): void {
    const body = this.#bodies.wait(end, at);
    this.#event(EVENT.sliceBegin, rootTrack(end.root), end.time, body, this.#bodies.flow(end.root));
  }

  waitEnd(root: RootRef, time: GuestNanos): void {
    this.#event(EVENT.sliceEnd, rootTrack(root), time);
  }

  state(event: StateChange): void {
    const { root, time } = event;
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.state(event), this.#bodies.more(event));
  }

  derived(event: DerivedPoll): void {
    const { root, time } = event;
    this.#event(EVENT.instant, rootTrack(root), time, this.#bodies.derived(event), this.#bodies.more(event));
  }

  watch(event: WatchHit): void {
    const { watch, time } = event;
    this.#event(EVENT.instant, hartTrack(event.hart), time, this.#bodies.watch(event));
    if (event.number === undefined) return;
    this.#declare(ofProcess(watchTrack(watch), watch.name, TASKS_RANK - 2, {}));
    this.#event(EVENT.counter, watchTrack(watch), time, this.#sequence.counterBody(event.number));
  }

  place(event: PlaceHit): void {
    this.#event(EVENT.instant, hartTrack(event.hart), event.time, this.#bodies.place(event));
  }

  wake(event: Wake, number: number | undefined): void {
    const body = this.#bodies.wake(event);
    const flow = number === undefined ? undefined : this.#bodies.wakeFlow(number);
    this.#event(EVENT.instant, hartTrack(event.hart), event.time, body, flow);
  }

  sample(event: Sample): void {
    if (this.#info) this.#reportInfo(this.#info, event.time);
    this.#reach(event.time);
    const { time, hart, stack, periodNs } = event;
    // A hart is a thread of the one process, whose flame graph the viewer shows; 1 is the process's own.
    const thread = { pid: PID, tid: hart + 2, threadName: this.#harts[hart] ?? `hart ${hart}` };
    this.#declare({ uuid: FIRST_SAMPLED + 2 * hart, parentUuid: TRACK.process, thread });
    const callstackIid = this.#sequence.callstacks.of(stack);
    const sample = { cpu: hart, pid: PID, tid: thread.tid, callstackIid, timebaseCount: periodNs };
    this.#sequence.packet(time, (packet) => PERF_SAMPLE.put(packet, TRACE_PACKET.perfSample, sample));
  }

  cancelled(event: Cancelled): void {
    this.#event(EVENT.instant, hartTrack(event.hart), event.time, this.#bodies.cancelled(event));
  }

  stuck(event: Stuck): void {
    const track = event.root ? rootTrack(event.root) : TRACK.process;
    this.#event(EVENT.instant, track, event.time, this.#bodies.stuck(event));
  }

  /** A track that is none of a hart or a task, which is described when it is first used. */
  #declare(track: TrackAbout & { readonly uuid: number }): void {
    if (this.#declared.has(track.uuid)) return;
    this.#declared.add(track.uuid);
    this.#sequence.descriptor(track);
  }

  gap(event: Gap): void {
    this.#declare(ofProcess(GAPS_TRACK, 'gaps', TASKS_RANK - 1));
    const body = this.#sequence.body({ category: 'gap', name: gapText(event) });
    this.#event(EVENT.sliceBegin, GAPS_TRACK, event.from, body);
    this.#event(EVENT.sliceEnd, GAPS_TRACK, event.to);
  }

  reset({ time }: Reset): void {
    const body = this.#sequence.body({ category: 'reset', name: resetText });
    this.#event(EVENT.instant, TRACK.process, time, body);
  }

  console({ time, text }: ConsoleLine): void {
    this.#declare(ofProcess(TRACK.console, 'console', TASKS_RANK - 3));
    this.#event(EVENT.instant, TRACK.console, time, this.#sequence.body({ category: 'console', name: text }));
  }

  tasks(time: GuestNanos, waiting: number, runnable: number): void {
    this.#count(0, time, waiting);
    this.#count(1, time, runnable);
  }

  #count(which: 0 | 1, time: GuestNanos, value: number): void {
    // A trace without wakes has no track of runnable tasks.
    if (value === this.#shown[which]) return;
    const track = counters[which];
    this.#declare(track);
    this.#shown[which] = value;
    this.#event(EVENT.counter, track.uuid, time, this.#counterBody(value));
  }

  #counterBody(value: number): Body {
    if (value >= mostCounts) return this.#sequence.counterBody(value);
    this.#counts[value] ??= this.#sequence.counterBody(value);
    return this.#counts[value] as Body;
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
        putRecording(this.#sequence.annotate(), facts.recording);
        this.#ofTrace('recording', first);
      }
    }
    if (this.#span && !facts?.isCut) {
      // A trace without it was cut off: its recorder was killed, or found no room.
      this.#ofTrace('end', this.#span.last);
    }
    this.#out.close();
  }

  /** An instant about the whole trace, with the annotations so far. */
  #ofTrace(name: string, time: number): void {
    this.#event(EVENT.instant, TRACK.process, time, this.#sequence.body({ category: 'trace', name }));
  }
}
