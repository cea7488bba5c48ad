import { addr } from '../../../../base/addr.js';
import { inSpace } from '../../../../base/address-map.js';
import { madeOnce } from '../../../../base/made-once.js';
import type {
  AnyBegin,
  CallBegin,
  CallEnd,
  CallLost,
  FunctionRef,
  FutureRef,
  GuestNanos,
  PlaceRef,
  PollBegin,
  PollEnd,
  PollLost,
  PollResult,
  RootRef,
  StackEntry,
  StateRef,
  ThreadRef,
  TraceEvent,
  Wake,
  WatchHit,
  WatchRef,
} from '../../../events/events.js';
import { placeOf } from '../../../events/roots.js';
import { aboutOf, gapReason, rootOf } from '../../../events/text.js';
import { EVENT, TRACK } from '../fields.js';
import { addressOf, entryOf, Refs, stackOf } from './refs.js';
import { NOTE } from './sequence.js';
import type { PerfSample, TrackDescriptor, TrackEvent, Uuid } from './track-events.js';

/** An open slice; without a begin it is none of a poll or a call. */
interface Slice {
  readonly begin: AnyBegin | undefined;
  /** For a gap. */
  readonly from: number;
  readonly name: string;
}

/** `before`: the one that was at its address before. */
type Root = { -readonly [K in keyof RootRef]: RootRef[K] } & { hart: number; before: Root | undefined };

type Outcome = Pick<PollEnd, 'result' | 'state' | 'chain'>;

/** What a poll's begin says. */
interface Polled extends Pick<PollBegin, 'future' | 'address' | 'state' | 'stack'> {
  readonly rootAddress: PollBegin['address'];
  /** The Future of its task. */
  readonly task: string | undefined;
}

interface Track {
  readonly open: Slice[];
  /** Where its last event was. */
  hart: number;
  readonly thread: ThreadRef | undefined;
  readonly root: Root | undefined;
}

const none = addr(0n);

/**
 * The events of a trace that rsptrace wrote, from its TrackEvents: what `formats/perfetto/writer.ts` does, backwards.
 * Addresses of links of a chain are not in a trace. The hart of a state's change is that of the task's last poll.
 */
export class OwnTrace {
  readonly #emit: (event: TraceEvent) => void;
  readonly #refs = new Refs();
  readonly #tracks = new Map<Uuid, Track>();
  /** The newest at each address of a space, and each by its key. */
  readonly #rootsAt = new Map<bigint, Root>();
  readonly #roots = new Map<number, Root>();
  #gaps: Uuid | undefined;
  /** Calls and polls whose slices were ended while they went on. */
  readonly #cut = new Map<string, AnyBegin[]>();
  readonly #places = new Map<string, PlaceRef>();
  readonly #watches = new Map<string, WatchRef>();
  /** Its value as a number comes in the next packet. */
  #watch: WatchHit | undefined;

  constructor(emit: (event: TraceEvent) => void) {
    this.#emit = emit;
  }

  hart(uuid: Uuid, hart: number): void {
    this.#tracks.set(uuid, { open: [], hart, thread: undefined, root: undefined });
  }

  /** A track of a thread: `stack 0xff20000000014000 of space 0x80254000`. */
  thread(uuid: Uuid, key: number, name: string): void {
    const [, stack, space] = /^stack (\w+)(?: of space (\w+))?$/.exec(name) ?? [];
    const thread = { key, stack: addressOf(stack) ?? none, space: addressOf(space) };
    this.#tracks.set(uuid, { open: [], hart: 0, thread, root: undefined });
  }

  /** A track of a task: `labkern::work::chain_task @0x80412340`. */
  root({ uuid, name, description }: TrackDescriptor): void {
    const { name: of, ...at } = rootOf(name) ?? { name, address: none };
    const place = placeOf(at);
    const key = (Number(uuid) - 3) / 2;
    const [future, about] = [this.#refs.future(of, undefined, undefined), aboutOf(description ?? '')];
    const root: Root = { ...at, key, future, about, hart: 0, before: this.#rootsAt.get(place) };
    this.#forgetBefore(root.before);
    this.#rootsAt.set(place, root);
    this.#roots.set(key, root);
    this.#tracks.set(uuid, { open: [], hart: 0, thread: undefined, root });
  }

  /** A task may be polled when the next one is at its address, as stacks go, but not two later. */
  #forgetBefore(root: Root | undefined): void {
    if (root?.before === undefined) return;
    this.#roots.delete(root.before.key);
    this.#tracks.delete(2 * root.before.key + 3);
    root.before = undefined;
  }

  gapsTrack(uuid: Uuid): void {
    this.#gaps = uuid;
    this.other(uuid);
  }

  other(uuid: Uuid): void {
    this.#tracks.set(uuid, { open: [], hart: 0, thread: undefined, root: undefined });
  }

  event(event: TrackEvent): void {
    if (event.type === EVENT.counter) {
      // Numbers of tasks follow from the other events.
      if (event.track === TRACK.waiting || event.track === TRACK.runnable) return;
      if (this.#watch) this.#emitWatch(event.counter);
      return;
    }
    if (this.#watch) this.#emitWatch(undefined);
    const track = this.#tracks.get(event.track);
    if (track === undefined) return;
    if (event.type === EVENT.sliceBegin) this.#begin(track, event);
    else if (event.type === EVENT.sliceEnd) this.#end(track, event);
    else if (event.type === EVENT.instant) this.#instant(track, event);
  }

  sample({ time, cpu, stack, count }: PerfSample): void {
    const frames = stack.map((frame) => this.#refs.frame(frame));
    this.#emit({ type: 'sample', time: time as GuestNanos, hart: cpu, stack: frames, periodNs: count });
  }

  /** The trace is over. */
  end(): void {
    if (this.#watch) this.#emitWatch(undefined);
  }

  #emitWatch(number: number | undefined): void {
    const watch = this.#watch as WatchHit;
    this.#watch = undefined;
    this.#emit(number === undefined ? watch : { ...watch, number });
  }

  #begin(track: Track, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    let begin: AnyBegin | undefined;
    if (event.category === 'call') begin = this.#callBegin(track, event, time);
    else if (event.category === 'poll') begin = this.#pollBegin(track, event, time);
    track.open.push({ begin, from: time, name: event.name });
    if (begin !== undefined) this.#emit(begin);
  }

  #callBegin(track: Track, event: TrackEvent, time: GuestNanos): CallBegin {
    const { thread } = track;
    if (thread !== undefined) track.hart = Number(event.notes[NOTE.hart] ?? 0);
    event.memo ??= this.#functionOf(event);
    return {
      type: 'call-begin',
      time,
      hart: track.hart,
      thread,
      function: event.memo as FunctionRef,
      arguments: event.arguments,
      around: aroundOf(track),
      depth: track.open.length,
    };
  }

  #functionOf(event: TrackEvent, place = event.place): FunctionRef {
    return this.#refs.function(event.name, addressNote(event, NOTE.address), textNote(event, NOTE.instance), place);
  }

  /** `place`: where it is declared, if the event says that. */
  #futureOf(event: TrackEvent, place?: TrackEvent['place'], name = event.name): FutureRef {
    const { notes } = event;
    const hidden = { polls: notes[NOTE.inlined_polls] === true, drops: notes[NOTE.hides_drops] === true };
    return this.#refs.future(name, textNote(event, NOTE.instance), place, hidden);
  }

  #stateOf(event: TrackEvent, note: number): StateRef | undefined {
    const text = textNote(event, note);
    return text === undefined ? undefined : this.#refs.state(text);
  }

  #polledOf(event: TrackEvent): Polled {
    const stack = textNote(event, NOTE.stack);
    return {
      future: this.#futureOf(event, event.place),
      address: addressNote(event, NOTE.address),
      rootAddress: addressNote(event, NOTE.task_address),
      task: textNote(event, NOTE.task),
      state: this.#stateOf(event, NOTE.state_before),
      stack: stack === undefined ? undefined : stackOf(stack),
    };
  }

  #pollBegin(track: Track, event: TrackEvent, time: GuestNanos): PollBegin {
    event.memo ??= this.#polledOf(event);
    const { future, address, rootAddress, task, state, stack } = event.memo as Polled;
    const { hart, thread } = track;
    const root = this.#rootOf(track, event, rootAddress, task);
    root.hart = hart;
    const begin: PollBegin = {
      type: 'poll-begin',
      time,
      hart,
      thread,
      root,
      future: learnt(root, future, address),
      address,
      state,
      around: aroundOf(track),
      depth: track.open.length,
    };
    return stack === undefined ? begin : { ...begin, stack };
  }

  /** The flow of an outermost poll is its task's key; one inside belongs to the poll around it, if that is alike. */
  #rootOf(track: Track, { flow }: TrackEvent, address: bigint, task = ''): Root {
    if (flow !== undefined) {
      const known = this.#roots.get(flow);
      if (known !== undefined) return known;
    }
    for (let i = track.open.length - 1; i >= 0; i--) {
      const begin = track.open[i]?.begin;
      if (begin?.type === 'poll-begin' && begin.root.address === address) return begin.root as Root;
    }
    const space = track.thread?.space;
    const place = inSpace(addr(address), space);
    const known = this.#rootsAt.get(place);
    if (known !== undefined) return known;
    const key = flow ?? this.#roots.size;
    const root: Root = {
      key,
      address: addr(address),
      space,
      future: this.#refs.future(task, undefined, undefined),
      hart: track.hart,
      before: undefined,
    };
    this.#rootsAt.set(place, root);
    this.#roots.set(key, root);
    return root;
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
    // Written out, because copying a common part costs as much as reading the event.
    if (begin.type === 'call-begin') {
      const { function: fn } = begin;
      if (isLost) return { type: 'call-lost', time, hart, thread, function: fn, depth, began, begin };
      const result = textNote(event, NOTE.returned);
      return { type: 'call-end', time, hart, thread, function: fn, depth, began, begin, result };
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
      result,
      state,
      chain,
    };
  }

  /** Events of one meaning ask for one thing alone, so the memo is that. */
  #outcome(event: TrackEvent): Outcome {
    if (event.type !== EVENT.sliceEnd) return this.#outcomeOf(event);
    event.memo ??= this.#outcomeOf(event);
    return event.memo as Outcome;
  }

  #outcomeOf(event: TrackEvent): Outcome {
    const chain = textNote(event, NOTE.await_chain);
    return {
      result: (textNote(event, NOTE.result) as PollResult | undefined) ?? 'unknown',
      state: this.#stateOf(event, NOTE.state_after),
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

  #instant(track: Track, event: TrackEvent): void {
    switch (event.category) {
      case 'call':
      case 'poll':
        this.#orphan(track, event);
        break;
      case 'state':
        this.#state(track, event, false);
        break;
      case 'derived':
        // A poll that was derived has a result, a change of a state has none.
        if (event.notes[NOTE.result] === undefined) this.#state(track, event, true);
        else this.#derivedPoll(track, event);
        break;
      case 'watch':
        this.#watchHit(track, event);
        break;
      case 'wake':
        this.#wake(track, event);
        break;
      case 'cancelled':
        this.#cancelled(track, event);
        break;
      case 'stuck':
        this.#stuck(event);
        break;
      case 'reset':
        this.#emit({ type: 'reset', time: event.time as GuestNanos });
        break;
      case 'console':
        this.#emit({ type: 'console', time: event.time as GuestNanos, text: event.name });
        break;
      default:
        if (track.root === undefined && track.thread === undefined) this.#placeHit(track, event);
    }
  }

  /** An end whose slice has ended, or never was. */
  #orphan(track: Track, event: TrackEvent): void {
    const { name, notes, category } = event;
    const isLost = notes[NOTE.result] === 'lost';
    const time = event.time as GuestNanos;
    const noted = notes[NOTE.began];
    const began = (noted === undefined ? time : Number(noted)) as GuestNanos;
    const begin = noted === undefined ? undefined : this.#takeCut(name, began, track.thread);
    if (begin !== undefined) {
      this.#emit(this.#endOf(begin, event, isLost));
      return;
    }
    const { hart, thread } = track;
    const wasLost = notes[NOTE.was_lost] === true ? true : undefined;
    const common = { time, hart, thread, depth: track.open.length, began };
    if (category === 'call') {
      const fn = this.#functionOf(event, undefined);
      if (isLost) this.#emit({ type: 'call-lost', ...common, function: fn });
      else this.#emit({ type: 'call-end', ...common, function: fn, result: textNote(event, NOTE.returned), wasLost });
      return;
    }
    const root = this.#rootOf(track, event, addressNote(event, NOTE.task_address), textNote(event, NOTE.task));
    const whose = { root, future: this.#futureOf(event), address: addressNote(event, NOTE.address) };
    if (isLost) this.#emit({ type: 'poll-lost', ...common, ...whose });
    else this.#emit({ type: 'poll-end', ...common, ...whose, ...this.#outcome(event), wasLost });
  }

  #state({ root }: Track, event: TrackEvent, derived: boolean): void {
    if (root === undefined) return;
    const [from, to] = [this.#stateOf(event, NOTE.state_before), this.#stateOf(event, NOTE.state_after)];
    const suffix = `: ${to?.name ?? 'unknown state'}`;
    const name = event.name.endsWith(suffix) ? event.name.slice(0, -suffix.length) : event.name;
    this.#emit({
      type: 'state',
      ...this.#ofRoot(root, event, this.#futureOf(event, undefined, name)),
      from,
      to,
      derived,
    });
  }

  #derivedPoll({ root }: Track, event: TrackEvent): void {
    if (root === undefined) return;
    const { result, state } = this.#outcome(event);
    const future = this.#futureOf(event, event.place);
    this.#emit({ type: 'derived-poll', ...this.#ofRoot(root, event, future), result, state });
  }

  #ofRoot(root: Root, event: TrackEvent, future: PollBegin['future']) {
    const address = addressNote(event, NOTE.address);
    const time = event.time as GuestNanos;
    return { time, hart: root.hart, root, future: learnt(root, future, address), address };
  }

  #watchHit({ hart }: Track, event: TrackEvent): void {
    const { notes } = event;
    const name = textNote(event, NOTE.watch) ?? event.name;
    const address = addressNote(event, NOTE.address);
    const watch = madeOnce<string, WatchRef>(this.#watches, `${name} ${address}`, () => {
      const type = textNote(event, NOTE.type) ?? '';
      return { key: this.#watches.size, name, access: 'rw', asked: 'rw', address, size: 8, type };
    });
    const by = entryOf(textNote(event, NOTE.by) ?? '??');
    const inlined = textNote(event, NOTE.inlined);
    const changed = notes[NOTE.changed];
    this.#watch = {
      type: 'watch',
      time: event.time as GuestNanos,
      hart,
      watch,
      access: (textNote(event, NOTE.access) as WatchHit['access'] | undefined) ?? 'access',
      old: textNote(event, NOTE.old),
      value: textNote(event, NOTE.value),
      number: undefined,
      changed: typeof changed === 'boolean' ? changed : undefined,
      pc: addressNote(event, NOTE.pc),
      by: by.function?.startsWith('0x') ? { ...by, function: undefined } : by,
      inlined: inlined === undefined ? [by] : stackOf(inlined),
    };
  }

  /** The task that something happens to, who does it, and where. */
  #roles(event: TrackEvent): Pick<Wake, 'root' | 'by' | 'caller'> {
    const root = this.#rootNamed(event);
    const by = textNote(event, NOTE.by);
    return { root, by: by === 'itself' ? root : this.#rootOfText(by), caller: callerOf(event) };
  }

  #wake({ hart }: Track, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    this.#emit({ type: 'wake', time, hart, waker: addressNote(event, NOTE.waker), ...this.#roles(event) });
  }

  #cancelled({ hart }: Track, event: TrackEvent): void {
    const time = event.time as GuestNanos;
    const roles = this.#roles(event);
    const address = addressNote(event, NOTE.address);
    const future = learnt(roles.root, this.#futureOf(event), address);
    const state = this.#stateOf(event, NOTE.state_before);
    const text = textNote(event, NOTE.implied);
    const implied = text === 'replaced' || text === 'holder-ended' ? text : undefined;
    this.#emit({ type: 'cancelled', time, hart, ...roles, future, address, state, implied });
  }

  #stuck(event: TrackEvent): void {
    const { name: why, place } = event;
    if (why !== 'deadlock' && why !== 'likely-deadlock' && why !== 'lost-wake') return;
    const time = event.time as GuestNanos;
    const root = this.#rootNamed(event);
    const address = addressNote(event, NOTE.task_address);
    const future = learnt(root, this.#futureOf(event, undefined, textNote(event, NOTE.future)), address);
    const wait = textNote(event, NOTE.wait) ?? '';
    this.#emit({ type: 'stuck', time, root, address, why, future, wait, file: place?.file, line: place?.line });
  }

  #rootNamed(event: TrackEvent): Root | undefined {
    return this.#rootOfText(textNote(event, NOTE.task));
  }

  /** The newest root at the address in a task's name. */
  #rootOfText(text = ''): Root | undefined {
    const named = rootOf(text);
    return named && this.#rootsAt.get(placeOf(named));
  }

  #placeHit({ hart }: Track, event: TrackEvent): void {
    const { name, category, notes } = event;
    const address = notes[NOTE.address];
    if (typeof address !== 'bigint') return;
    const place = madeOnce(this.#places, `${category} ${name} ${address}`, () => {
      return { key: this.#places.size, name, category, address: addr(address), by: callerOf(event) };
    });
    this.#emit({ type: 'place', time: event.time as GuestNanos, hart, place });
  }
}

const noChain: PollEnd['chain'] = [];

function aroundOf({ open }: Track): AnyBegin | undefined {
  for (let i = open.length - 1; i >= 0; i--) {
    const begin = open[i]?.begin;
    if (begin !== undefined) return begin;
  }
  return undefined;
}

/** A task's track names its Future without the instance: what is polled at its address is that Future. */
function learnt(root: RootRef | undefined, future: FutureRef, address: bigint): FutureRef {
  const isRoot = root?.address === address && root.future !== future && root.future.future === future.future;
  if (isRoot) (root as Root).future = future;
  return future;
}

function cutName(name: string, began: number): string {
  return `${began} ${name}`;
}

function callerOf(event: TrackEvent): StackEntry {
  return { function: textNote(event, NOTE.function), file: event.place?.file, line: event.place?.line };
}

function textNote({ notes }: TrackEvent, note: number): string | undefined {
  const value = notes[note];
  return typeof value === 'string' ? value : undefined;
}

function addressNote({ notes }: TrackEvent, note: number): PollBegin['address'] {
  const value = notes[note];
  return typeof value === 'bigint' ? value : none;
}
