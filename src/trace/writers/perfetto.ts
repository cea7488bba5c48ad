/*
 * The Perfetto trace of a recording. The packets' format, spec and field numbers: ./perfetto-packets.ts.
 *
 *   process   labkern                        one instant at 0: program, build id, architecture, clock
 *     hart 0                                 a slice a poll and a slice a call of a function, nested by call
 *     hart 1
 *     tasks
 *       labkern::work::chain_task @0x80412340   the same polls, and between them `waiting at FILE:LINE`;
 *                                               instants: state changes, derived polls
 *
 *     gaps                                   a slice where the link was broken; only where there is one
 *
 * Track uuids: 1 the process, 2 `tasks`, even from 4 harts, odd from 3 roots, GAPS_TRACK. Nothing of the host is written.
 */
import type {
  CallBegin,
  CallEnd,
  CallLost,
  DerivedPoll,
  Gap,
  GuestNanos,
  HartInfo,
  PollBegin,
  PollEnd,
  PollLost,
  PollResult,
  RootRef,
  StateChange,
  StateRef,
  TraceInfo,
} from '../events.js';
import type { OutputFile } from '../output-file.js';
import { ChainTexts, gapText, rootText, stackText, stateText } from '../text.js';
import type { LaneWriter } from './lanes.js';
import {
  type Annotations,
  CHILD_ORDERING,
  PerfettoSequence,
  PROCESS_DESCRIPTOR,
  TRACK_DESCRIPTOR,
} from './perfetto-packets.js';

const PROCESS_TRACK = 1;
const TASKS_TRACK = 2;
/** Ends of polls whose annotations are kept as they are written. */
const ENDS_KEPT = 4096;
/** After every hart. */
const TASKS_RANK = 0x7fff_ffff;

/** No hart has so high a number. */
const GAPS_TRACK = 0x7fff_fffe;

const hartTrack = (hart: number): number => 4 + 2 * hart;
const rootTrack = (root: RootRef): number => 3 + 2 * root.key;

/** Writes a Perfetto trace into `out`. Use through `Lanes`. */
export class PerfettoWriter implements LaneWriter {
  readonly #out: OutputFile;
  readonly #sequence: PerfettoSequence;
  readonly #chains = new ChainTexts();
  #hasGaps = false;
  /** The annotations of polls' ends, by the text of the await chain, then by state and result. */
  readonly #ends = new Map<string, Map<StateRef | undefined, Partial<Record<PollResult, Uint8Array>>>>();

  constructor(out: OutputFile) {
    this.#out = out;
    this.#sequence = new PerfettoSequence(out);
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
    const notes = this.#sequence.annotate();
    notes.text('program', info.program);
    if (info.buildId !== undefined) notes.text('build_id', info.buildId);
    notes.text('arch', info.arch);
    notes.text('clock', clock.name);
    notes.text('clock_resolution_ns', String(clock.resolutionNs));
    notes.bool('guest_clock', clock.guest);
    this.#sequence.instant(PROCESS_TRACK, 0, 'trace', 'rsptrace', undefined);
  }

  hart(hart: HartInfo): void {
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, hartTrack(hart.number));
      track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, hart.name);
      track.uint(TRACK_DESCRIPTOR.siblingOrderRank, hart.number);
    });
  }

  lifeBegin(root: RootRef): void {
    this.#sequence.descriptor((track) => {
      track.uint(TRACK_DESCRIPTOR.uuid, rootTrack(root));
      track.uint(TRACK_DESCRIPTOR.parentUuid, TASKS_TRACK);
      track.text(TRACK_DESCRIPTOR.name, rootText(root));
    });
  }

  lifeEnd(): void {
    // A Perfetto track has no end of its own.
  }

  pollBegin(event: PollBegin): void {
    const { future, root, time } = event;
    const notes = this.#sequence.annotate();
    notes.pointer('address', event.address);
    noteInstance(notes, event);
    noteState(notes, 'state_before', event.state);
    if (event.stack) notes.text('stack', stackText(event.stack));
    this.#sequence.sliceBegin(rootTrack(root), time, 'poll', future.future, future);
    notes.text('task', root.future.future);
    notes.pointer('task_address', root.address);
    this.#sequence.sliceBegin(hartTrack(event.hart), time, 'poll', future.future, future);
  }

  pollEnd(begin: PollBegin, end: PollEnd, onRootLane: boolean): void {
    this.#noteEnd(end);
    if (onRootLane) this.#sequence.sliceEnd(rootTrack(begin.root), end.time);
    this.#sequence.sliceEnd(hartTrack(begin.hart), end.time);
  }

  pollLost(begin: PollBegin, time: GuestNanos, lanes: 'hart' | 'root' | 'both'): void {
    this.#noteLost();
    if (lanes !== 'hart') this.#sequence.sliceEnd(rootTrack(begin.root), time);
    if (lanes !== 'root') this.#sequence.sliceEnd(hartTrack(begin.hart), time);
  }

  orphanEnd(event: PollEnd | PollLost): void {
    const notes = event.type === 'poll-end' ? this.#noteEnd(event) : this.#noteLost();
    notes.pointer('address', event.address);
    this.#sequence.instant(rootTrack(event.root), event.time, 'poll', event.future.future, undefined);
    this.#sequence.instant(hartTrack(event.hart), event.time, 'poll', event.future.future, undefined);
  }

  waitBegin(end: PollEnd, name: string, at: StateRef | undefined): void {
    this.#noteChain(this.#sequence.annotate(), end);
    this.#sequence.sliceBegin(rootTrack(end.root), end.time, 'wait', name, at);
  }

  waitEnd(root: RootRef, time: GuestNanos): void {
    this.#sequence.annotate();
    this.#sequence.sliceEnd(rootTrack(root), time);
  }

  callBegin(event: CallBegin): void {
    const { name, instance, address } = event.function;
    const notes = this.#sequence.annotate();
    notes.pointer('address', address);
    if (instance !== name) notes.text('instance', instance);
    for (const argument of event.arguments) notes.value(`arg_${argument.name}`, argument.value);
    this.#sequence.sliceBegin(hartTrack(event.hart), event.time, 'call', name, event.function);
  }

  callEnd(begin: CallBegin, end: CallEnd): void {
    const notes = this.#sequence.annotate();
    if (end.result !== undefined) notes.value('returned', end.result);
    this.#sequence.sliceEnd(hartTrack(begin.hart), end.time);
  }

  callLost(begin: CallBegin, time: GuestNanos): void {
    this.#noteLost();
    this.#sequence.sliceEnd(hartTrack(begin.hart), time);
  }

  orphanReturn(event: CallEnd | CallLost): void {
    const notes = event.type === 'call-lost' ? this.#noteLost() : this.#sequence.annotate();
    if (event.type === 'call-end' && event.result !== undefined) notes.value('returned', event.result);
    this.#sequence.instant(hartTrack(event.hart), event.time, 'call', event.function.name, undefined);
  }

  state(event: StateChange): void {
    const notes = this.#sequence.annotate();
    notes.pointer('address', event.address);
    noteInstance(notes, event);
    noteState(notes, 'state_before', event.from);
    noteState(notes, 'state_after', event.to);
    notes.bool('derived', event.derived);
    const category = event.derived ? 'derived' : 'state';
    const name = `${event.future.future}: ${event.to?.name ?? 'unknown state'}`;
    this.#sequence.instant(rootTrack(event.root), event.time, category, name, event.to);
  }

  derived(event: DerivedPoll): void {
    const notes = this.#sequence.annotate();
    notes.pointer('address', event.address);
    noteInstance(notes, event);
    notes.text('result', event.result);
    noteState(notes, 'state_after', event.state);
    notes.bool('derived', true);
    this.#sequence.instant(rootTrack(event.root), event.time, 'derived', event.future.future, event.future);
  }

  gap(event: Gap): void {
    if (!this.#hasGaps) {
      this.#hasGaps = true;
      this.#sequence.descriptor((track) => {
        track.uint(TRACK_DESCRIPTOR.uuid, GAPS_TRACK);
        track.uint(TRACK_DESCRIPTOR.parentUuid, PROCESS_TRACK);
        track.text(TRACK_DESCRIPTOR.name, 'gaps');
        track.uint(TRACK_DESCRIPTOR.siblingOrderRank, TASKS_RANK - 1);
      });
    }
    this.#sequence.annotate();
    this.#sequence.sliceBegin(GAPS_TRACK, event.from, 'gap', gapText, undefined);
    this.#sequence.sliceEnd(GAPS_TRACK, event.to);
  }

  flush(): void {
    this.#out.flush();
  }

  end(): void {
    this.#out.close();
  }

  /** Polls end in the same few ways over and over. */
  #noteEnd(end: PollEnd): Annotations {
    const chain = end.chain.length === 0 ? '' : this.#chains.text(end.chain);
    let ofChain = this.#ends.get(chain);
    if (ofChain === undefined || ofChain.size >= ENDS_KEPT) {
      if (this.#ends.size >= ENDS_KEPT) this.#ends.clear();
      ofChain = new Map();
      this.#ends.set(chain, ofChain);
    }
    const known = ofChain.get(end.state)?.[end.result];
    if (known !== undefined) return this.#sequence.annotateAgain(known);
    const notes = this.#sequence.annotate();
    notes.text('result', end.result);
    noteState(notes, 'state_after', end.state);
    if (chain !== '') notes.text('await_chain', chain);
    ofChain.set(end.state, { ...ofChain.get(end.state), [end.result]: this.#sequence.annotations() });
    return notes;
  }

  #noteChain(notes: Annotations, end: PollEnd): void {
    if (end.chain.length > 0) notes.text('await_chain', this.#chains.text(end.chain));
  }

  #noteLost(): Annotations {
    const notes = this.#sequence.annotate();
    notes.text('result', 'lost');
    return notes;
  }
}

function noteInstance(notes: Annotations, event: PollBegin | StateChange | DerivedPoll): void {
  if (event.future.instance !== event.future.future) notes.text('instance', event.future.instance);
}

function noteState(notes: Annotations, name: string, state: StateRef | undefined): void {
  if (state !== undefined) notes.text(name, stateText(state));
}
