import { madeOnce } from '../../../../base/made-once.js';
import type {
  AnyBegin,
  CallBegin,
  CallEnd,
  CallLost,
  GuestNanos,
  PollBegin,
  PollEnd,
  PollLost,
  PollResult,
  ThreadRef,
  TraceEvent,
} from '../../../events/events.js';
import { gapReason } from '../../../events/text.js';
import { Damage } from '../../read/fields.js';
import { EVENT, FIRST_WAKE, TRACK } from '../fields.js';
import type { TrackDescriptor, Uuid } from './descriptors.js';
import { OwnInstants } from './own-instants.js';
import { addressNote, learnt, noAddress, OwnRefs, type Root, textNote } from './own-refs.js';
import { addressOf, stackOf } from './refs.js';
import { NOTE } from './sequence.js';
import type { PerfSample, TrackEvent } from './track-event.js';

/** An open slice; without a begin it is none of a poll or a call. */
interface Slice {
  readonly begin: AnyBegin | undefined;
  /** For a gap. */
  readonly from: number;
  readonly name: string;
}

type Outcome = Pick<PollEnd, 'result' | 'state' | 'chain'>;

interface Track {
  readonly open: Slice[];
  /** Where its last event was. */
  hart: number;
  readonly thread: ThreadRef | undefined;
  readonly root: Root | undefined;
}

/**
 * The events of a trace that rsptrace wrote, from its TrackEvents: what `formats/perfetto/writer.ts` does, backwards.
 * Addresses of links of a chain are not in a trace. The hart of a state's change is that of the task's last poll.
 */
export class OwnTrace {
  readonly #emit: (event: TraceEvent) => void;
  readonly #refs = new OwnRefs();
  readonly #instants: OwnInstants;
  readonly #tracks = new Map<Uuid, Track>();
  #gaps: Uuid | undefined;
  /** Calls and polls whose slices were ended while they went on. */
  readonly #cut = new Map<string, AnyBegin[]>();

  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
    this.#instants = new OwnInstants(emit, this.#refs);
  }

  hart(uuid: Uuid, hart: number): void {
    this.#add(uuid, { hart });
  }

  /** A track of a thread: `stack 0xff20000000014000 of space 0x80254000`. */
  thread(uuid: Uuid, key: number, name: string): void {
    const [, called, at, among] = /^thread (.*) at (0x[0-9a-f]+)(?: in (.+))?$/s.exec(name) ?? [];
    const [, stack, space, program] = /^stack (\w+)(?: of space (\w+))?(?: in (.+))?$/s.exec(name) ?? [];
    const thread = {
      key,
      stack: addressOf(stack ?? at) ?? noAddress,
      name: called,
      space: addressOf(space),
      program: program ?? among,
    };
    this.#add(uuid, { thread });
  }

  root(descriptor: TrackDescriptor): void {
    const root = this.#refs.root(descriptor);
    const forgotten = this.#refs.forgetBefore(root);
    if (forgotten !== undefined) this.#tracks.delete(2 * forgotten + 3);
    this.#add(descriptor.uuid, { root });
  }

  gapsTrack(uuid: Uuid): void {
    this.#gaps = uuid;
    this.other(uuid);
  }

  other(uuid: Uuid): void {
    this.#add(uuid, {});
  }

  #add(uuid: Uuid, { hart = 0, thread, root }: Partial<Track>): void {
    this.#tracks.set(uuid, { open: [], hart, thread, root });
  }

  event(event: TrackEvent): void {
    if (event.type === EVENT.counter) {
      // Numbers of tasks follow from the other events.
      if (event.track === TRACK.waiting || event.track === TRACK.runnable) return;
      this.#instants.flush(event.counter);
      return;
    }
    this.#instants.flush(undefined);
    const track = this.#tracks.get(event.track);
    if (track === undefined) return;
    if (event.type === EVENT.sliceBegin) this.#begin(track, event);
    else if (event.type === EVENT.sliceEnd) this.#end(track, event);
    else if (event.type !== EVENT.instant) return;
    else if (event.category === 'call' || event.category === 'poll') this.#orphan(track, event);
    else this.#instants.take(track, event);
  }

  sample({ time, cpu, stack, count }: PerfSample): void {
    const frames = stack.map((frame) => this.#refs.frame(frame));
    this.#emit({ type: 'sample', time: time as GuestNanos, hart: cpu, stack: frames, periodNs: count });
  }

  end(): void {
    this.#instants.flush(undefined);
  }

  #begin(track: Track, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    // Ranks of harts have 20 bits, too.
    if (track.thread !== undefined) track.hart = Number(event.notes[NOTE.hart] ?? track.hart) & 0xf_ffff;
    let begin: AnyBegin | undefined;
    if (event.category === 'call') begin = this.#callBegin(track, event, time);
    else if (event.category === 'poll') begin = this.#pollBegin(track, event, time);
    track.open.push({ begin, from: time, name: event.name });
    if (begin !== undefined) this.#emit(begin);
  }

  #callBegin(track: Track, event: TrackEvent, time: GuestNanos): CallBegin {
    const { hart, thread } = track;
    return {
      type: 'call-begin',
      time,
      hart,
      thread,
      function: this.#refs.functionOf(event),
      arguments: event.arguments,
      around: aroundOf(track),
      depth: track.open.length,
    };
  }

  #pollBegin(track: Track, event: TrackEvent, time: GuestNanos): PollBegin {
    const { hart, thread } = track;
    const stack = textNote(event, NOTE.stack);
    const future = this.#refs.futureOf(event, event.place);
    const address = addressNote(event, NOTE.address);
    const root = this.#rootOf(track, event);
    root.hart = hart;
    const begin: PollBegin = {
      type: 'poll-begin',
      time,
      hart,
      thread,
      root,
      future: learnt(root, future, address),
      address,
      state: this.#refs.stateOf(event, NOTE.state_before),
      around: aroundOf(track),
      depth: track.open.length,
    };
    return stack === undefined ? begin : { ...begin, stack: stackOf(stack) };
  }

  /** The flow of an outermost poll is its task's key; one inside belongs to the poll around it, if that is alike. */
  #rootOf({ open, thread, hart }: Track, event: TrackEvent): Root {
    // A flow of another number leads from a system call.
    const flow = event.flow !== undefined && event.flow < FIRST_WAKE ? event.flow : undefined;
    const known = this.#refs.rootOfFlow(flow);
    if (known !== undefined) return known;
    const address = addressNote(event, NOTE.task_address);
    for (let i = open.length - 1; i >= 0; i--) {
      const begin = open[i]?.begin;
      if (begin?.type === 'poll-begin' && begin.root.address === address) return begin.root as Root;
    }
    return this.#refs.rootAt(flow, address, thread?.space, textNote(event, NOTE.task) ?? '', hart);
  }

  #end(track: Track, event: TrackEvent): void {
    const slice = track.open.pop();
    if (slice === undefined) return;
    const { begin } = slice;
    const time = event.time as GuestNanos;
    const result = textNote(event, NOTE.result);
    if (begin === undefined) {
      if (event.track === this.#gaps) this.#emitGap(slice, time);
    } else if (result === 'cut') this.#keepCut(begin);
    else this.#emit(this.#endOf(begin, event, result === 'lost'));
  }

  #emitGap({ from, name }: Slice, to: GuestNanos): void {
    const why = gapReason(name);
    this.#emit({ type: 'gap', from: from as GuestNanos, to, why });
  }

  #endOf(begin: AnyBegin, event: TrackEvent, isLost: boolean): PollEnd | PollLost | CallEnd | CallLost {
    const { hart, thread, depth, time: began } = begin;
    const time = Math.max(event.time, began) as GuestNanos;
    const stopped = stoppedIn(event);
    // Written out, because copying a common part costs as much as reading the event.
    if (begin.type === 'call-begin') {
      const { function: fn } = begin;
      if (isLost) return { type: 'call-lost', time, hart, thread, function: fn, depth, began, begin };
      const result = textNote(event, NOTE.returned);
      return { type: 'call-end', time, hart, thread, function: fn, depth, began, begin, stopped, result };
    }
    const { root, future, address } = begin;
    if (isLost) return { type: 'poll-lost', time, hart, thread, root, future, address, depth, began, begin };
    const { result, state, chain } = this.#outcome(event);
    return {
      type: 'poll-end',
      time,
      hart,
      thread,
      root,
      future,
      address,
      depth,
      began,
      begin,
      stopped,
      result,
      state,
      chain,
    };
  }

  #outcome(event: TrackEvent): Outcome {
    const chain = textNote(event, NOTE.await_chain);
    return {
      result: (textNote(event, NOTE.result) as PollResult | undefined) ?? 'unknown',
      state: this.#refs.stateOf(event, NOTE.state_after),
      chain: chain === undefined ? noChain : this.#refs.chain(chain),
    };
  }

  #keepCut(begin: AnyBegin): void {
    const name = cutName(begin.type === 'call-begin' ? begin.function.name : begin.future.future, begin.time);
    madeOnce(this.#cut, name, () => []).push(begin);
  }

  #takeCut(name: string, began: number, thread: ThreadRef | undefined): AnyBegin | undefined {
    const key = cutName(name, began);
    const list = this.#cut.get(key) ?? [];
    const at = list.findLastIndex((begin) => begin.thread === thread);
    const begin = at < 0 ? undefined : list.splice(at, 1)[0];
    if (list.length === 0) this.#cut.delete(key);
    return begin;
  }

  /** An end whose slice has ended, or never was. */
  #orphan(track: Track, event: TrackEvent): void {
    const { notes, category } = event;
    const name = textNote(event, NOTE.future) ?? event.name;
    const isLost = notes[NOTE.result] === 'lost';
    const time = event.time as GuestNanos;
    const noted = notes[NOTE.began];
    const began = Number(noted ?? time) as GuestNanos;
    if (!Number.isSafeInteger(began) || began < 0) throw new Damage(`no call or poll can have begun at ${noted}`);
    const begin = noted === undefined ? undefined : this.#takeCut(name, began, track.thread);
    if (begin !== undefined) {
      this.#emit(this.#endOf(begin, event, isLost));
      return;
    }
    const { hart, thread } = track;
    const wasLost = notes[NOTE.was_lost] === true ? true : undefined;
    const common = { time, hart, thread, depth: track.open.length, began };
    const bounds = { wasLost, stopped: stoppedIn(event) };
    if (category === 'call') {
      const fn = this.#refs.functionOf(event);
      if (isLost) this.#emit({ type: 'call-lost', ...common, function: fn });
      else this.#emit({ type: 'call-end', ...common, function: fn, result: textNote(event, NOTE.returned), ...bounds });
      return;
    }
    const root = this.#rootOf(track, event);
    const future = this.#refs.futureOf(event, event.place);
    const whose = { root, future, address: addressNote(event, NOTE.address) };
    if (isLost) this.#emit({ type: 'poll-lost', ...common, ...whose });
    else this.#emit({ type: 'poll-end', ...common, ...whose, ...this.#outcome(event), ...bounds });
  }
}

const noChain: PollEnd['chain'] = [];

function stoppedIn({ notes }: TrackEvent): true | undefined {
  return notes[NOTE.stopped] === undefined ? undefined : true;
}

function aroundOf({ open }: Track): AnyBegin | undefined {
  for (let i = open.length - 1; i >= 0; i--) {
    const begin = open[i]?.begin;
    if (begin !== undefined) return begin;
  }
  return undefined;
}

function cutName(name: string, began: number): string {
  return `${began} ${name}`;
}
