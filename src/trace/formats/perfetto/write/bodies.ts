import { hex, lowHalf } from '../../../../base/addr.js';
import { madeOnce } from '../../../../base/made-once.js';
import { type AwaitPlace, waitText } from '../../../events/await-place.js';
import { chainText, wayOf } from '../../../events/await-ways.js';
import type {
  AnyBegin,
  AnyEnd,
  CallBegin,
  CallEnd,
  Cancelled,
  DerivedPoll,
  FunctionRef,
  PlaceHit,
  PollBegin,
  PollEnd,
  RootRef,
  StackEntry,
  StateChange,
  StateRef,
  Stuck,
  Wake,
  WatchHit,
} from '../../../events/events.js';
import { calledOf, isPointer } from '../../../events/future-names.js';
import { accessText, actorText, rootText, stackText, stateText, wakerText } from '../../../events/text.js';
import type { LifeEnd } from '../../lane-writer.js';
import type { Served } from '../../served-calls.js';
import { FIRST_WAKE } from '../fields.js';
import type { Annotations } from './annotations.js';
import type { Body, More } from './body.js';
import { KeptBodies } from './kept-bodies.js';
import type { PerfettoSequence } from './packets.js';

/** What leads to a begin. */
interface Comes {
  readonly isOutermost: boolean | undefined;
  readonly wake: number | undefined;
  readonly served: Served | undefined;
}

interface KeptWake extends Pick<Wake, 'root' | 'waker' | 'by' | 'caller'> {
  readonly body: Body;
}

const lifeText = {
  ready: 'completed',
  panicked: 'panicked',
  dropped: 'dropped before it was ready',
  lost: 'lost',
  reset: 'the machine was reset',
};

/** The way into a system call, and the way back. */
const FIRST_SERVED = 2 ** 41;
const FIRST_SERVING = 2 ** 42;

/** Wakes that are kept, one per hash: a power of two. */
const wakesKept = 1024;

/**
 * The bodies of events. A Future is polled in the same few ways over and over, and calls of a function begin alike. So
 * the last bodies are kept, and found again by the identity of what an event names. Where the Future and its task lie,
 * and values of arguments, are next to them. A server has a hundred thousand places for the Futures of its requests:
 * bodies of each would seldom come again.
 */
export class Bodies {
  readonly #sequence: PerfettoSequence;
  /** By the function's key. */
  readonly #calls: ({ readonly function: FunctionRef; readonly body: Body } | undefined)[] = [];
  readonly #wakes: (KeptWake | undefined)[] = new Array(wakesKept).fill(undefined);
  /** By their names. */
  readonly #fixed = new Map<string, Body>();
  readonly #kept = {
    polls: new KeptBodies((event: PollBegin) => this.#makePoll(event)),
    ends: new KeptBodies((event: PollEnd) => this.#makeEnd(event)),
    waits: new KeptBodies((event: PollEnd, at: AwaitPlace | undefined) => this.#makeWait(event, at)),
    states: new KeptBodies((event: StateChange) => this.#makeState(event)),
    derivedStates: new KeptBodies((event: StateChange) => this.#makeState(event)),
    derived: new KeptBodies((event: DerivedPoll) => this.#makeDerived(event)),
  };

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  begin(begin: AnyBegin): Body {
    return begin.type === 'call-begin'
      ? this.#call(begin.function)
      : begin.stack
        ? this.#makePoll(begin)
        : this.#kept.polls.of(begin, begin.state, undefined);
  }

  /**
   * What is behind the body of a begin. A flow connects the polls of a task, on all harts, and its waits between them.
   * An arrow from the wake that caused the poll ends there. So does one from the system call that is served; another
   * leads back. Valid until the next call.
   */
  moreOfBegin(begin: AnyBegin, { isOutermost, wake, served }: Comes): Body | undefined {
    const more = begin.type === 'call-begin' ? this.#moreOfCall(begin) : this.#moreOfPoll(begin, isOutermost, wake);
    if (served === undefined) return more;
    const { call, by } = served;
    const all = more ?? this.#sequence.more();
    if (call !== undefined) all.flow(FIRST_SERVED + call);
    return by === undefined ? all : all.flow(FIRST_SERVING + by).endOfFlow(FIRST_SERVED + by);
  }

  #moreOfPoll(begin: PollBegin, isOutermost?: boolean, wake?: number): More {
    const { root, thread, hart } = begin;
    const more = this.more(begin).pointer(this.#sequence.nameField('task_address'), root.address);
    if (thread !== undefined) more.value(this.#sequence.nameField('hart'), String(hart));
    if (isOutermost || wake !== undefined) more.flow(root.key);
    return wake === undefined ? more : more.endOfFlow(FIRST_WAKE + wake);
  }

  /** What is behind the body of another event of a Future. Valid until the next call. */
  more({ address }: Pick<PollBegin, 'address'>): More {
    return this.#sequence.more().pointer(this.#sequence.nameField('address'), address);
  }

  /** The flow that connects the polls of a task. Valid until the next call. */
  flow({ key }: RootRef): Body {
    return this.#sequence.more().flow(key);
  }

  /** The begin of the arrow to the poll that a wake causes. Valid until the next call. */
  wakeFlow(wake: number): Body {
    return this.#sequence.more().flow(FIRST_WAKE + wake);
  }

  /** What a call returned, and that a stop was in it; `served`: a system call's number. Valid until the next call. */
  moreOfEnd(event: PollEnd | CallEnd, served: number | undefined): Body | undefined {
    const value = event.type === 'call-end' ? event.result : undefined;
    if (value === undefined && served === undefined && event.stopped === undefined) return undefined;
    const more = this.#sequence.more();
    if (value !== undefined) more.value(this.#sequence.nameField('returned'), value);
    if (event.stopped) more.value(this.#sequence.nameField('stopped'), 'true');
    return served === undefined ? more : more.endOfFlow(FIRST_SERVING + served);
  }

  end(event: PollEnd): Body {
    return this.#kept.ends.of(event, event.result, event.chain.length > 0 ? wayOf(event) : event.state);
  }

  #makeEnd(event: PollEnd): Body {
    this.#noteEnd(this.#sequence.annotate(), event);
    return this.#sequence.body();
  }

  wait(event: PollEnd, at: AwaitPlace | undefined): Body {
    return this.#kept.waits.of(event, at, event.chain.length > 0 ? wayOf(event) : undefined);
  }

  #makeWait(event: PollEnd, at: AwaitPlace | undefined): Body {
    const notes = this.#sequence.annotate();
    if (event.chain.length > 0) notes.text('await_chain', chainText(event));
    return this.#sequence.body({ category: 'wait', name: waitText(at), place: at });
  }

  state(event: StateChange): Body {
    return (event.derived ? this.#kept.derivedStates : this.#kept.states).of(event, event.from, event.to);
  }

  #makeState(event: StateChange): Body {
    const { from, to, derived, future } = event;
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    noteState(notes, 'state_before', from);
    noteState(notes, 'state_after', to);
    notes.bool('derived', derived);
    const name = `${calledOf(future)}: ${to?.name ?? 'unknown state'}`;
    return this.#sequence.body({ category: derived ? 'derived' : 'state', name, place: to });
  }

  derived(event: DerivedPoll): Body {
    return this.#kept.derived.of(event, event.state, event.result);
  }

  #makeDerived(event: DerivedPoll): Body {
    const { state, result, future } = event;
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    notes.text('result', result);
    noteState(notes, 'state_after', state);
    notes.bool('derived', true);
    return this.#sequence.body({ category: 'derived', name: calledOf(future), place: future });
  }

  /** What was woken, by whom, and where. */
  wake(event: Wake): Body {
    const { root, waker, by, caller } = event;
    const slot = (Math.imul(lowHalf(waker), 0x9e37_79b1) >>> 16) & (wakesKept - 1);
    const known = this.#wakes[slot];
    const isSame = known?.root === root && known?.waker === waker && known.by === by;
    if (isSame && isSamePlace(known.caller, caller)) return known.body;
    const notes = this.#sequence.annotate();
    if (root) notes.text('task', rootText(root));
    notes.pointer('waker', waker);
    notes.text('by', wakerText(event));
    if (caller.function !== undefined) notes.text('function', caller.function);
    const name = `wake ${root ? calledOf(root.future) : hex(waker)}`;
    const body = this.#sequence.body({ category: 'wake', name, place: caller });
    this.#wakes[slot] = { root, waker, by, caller, body };
    return body;
  }

  /** What was dropped, by whom, and where. */
  cancelled(event: Cancelled): Body {
    const { root, state, caller, future, implied } = event;
    const notes = this.#sequence.annotate();
    notes.pointer('address', event.address);
    noteFuture(notes, event);
    noteState(notes, 'state_before', state);
    if (root) notes.text('task', rootText(root));
    notes.text('by', wakerText(event));
    if (caller.function !== undefined) notes.text('function', caller.function);
    if (implied !== undefined) notes.text('implied', implied);
    return this.#sequence.body({ category: 'cancelled', name: calledOf(future), place: caller });
  }

  /** That a task will not be polled again, and why. */
  stuck({ root, future, address, why, wait, file, line }: Stuck): Body {
    const notes = this.#sequence.annotate();
    notes.text('future', future.future);
    if (future.instance !== future.future) notes.text('instance', future.instance);
    notes.pointer('task_address', address);
    if (root) notes.text('task', rootText(root));
    notes.text('wait', wait);
    return this.#sequence.body({ category: 'stuck', name: why, place: { file, line } });
  }

  watch(event: WatchHit): Body {
    const { watch, access, old, value, changed, inlined, pc, by } = event;
    const notes = this.#sequence.annotate();
    notes.text('watch', watch.name);
    notes.text('access', access);
    if (old !== undefined) notes.value('old', old);
    if (value !== undefined) notes.value('value', value);
    if (changed !== undefined) notes.bool('changed', changed);
    notes.text('by', actorText(event));
    if (inlined.length > 1) notes.text('inlined', stackText(inlined));
    notes.pointer('pc', pc);
    notes.pointer('address', watch.address);
    notes.text('type', watch.type);
    return this.#sequence.body({ category: 'watch', name: `${watch.name}: ${accessText(event)}`, place: by });
  }

  place({ place: { name, category, by, address, lock } }: PlaceHit): Body {
    const notes = this.#sequence.annotate();
    if (by.function !== undefined) notes.text('function', by.function);
    notes.pointer('address', address);
    if (lock !== undefined) notes.text('lock', lock);
    return this.#sequence.body({ category, name, place: by });
  }

  /** The end of a task. */
  life(how: LifeEnd): Body {
    return madeOnce(this.#fixed, `task ${how}`, () => this.#sequence.body({ category: 'task', name: lifeText[how] }));
  }

  /**
   * The end of a slice whose poll or call was lost: its end was not seen. Or of one that was cut: it goes on elsewhere,
   * and an instant will say its end.
   */
  ended(why: 'lost' | 'cut'): Body {
    return madeOnce(this.#fixed, why, () => {
      this.#sequence.annotate().text('result', why);
      return this.#sequence.body();
    });
  }

  /** An end whose begin was not seen. */
  orphan(event: AnyEnd): Body {
    const notes = this.#sequence.annotate();
    if (event.type === 'poll-end') this.#noteEnd(notes, event);
    else if (event.type !== 'call-end') notes.text('result', 'lost');
    else if (event.result !== undefined) notes.value('returned', event.result);
    if ('function' in event) noteFunction(notes, event.function);
    else {
      notes.pointer('address', event.address);
      noteFuture(notes, event);
      notes.pointer('task_address', event.root.address);
    }
    // When it began, by which a reader finds the begin.
    notes.value('began', String(event.began));
    if ('wasLost' in event && event.wasLost) notes.bool('was_lost', true);
    if ('stopped' in event && event.stopped) notes.text('stopped', 'true');
    const place = 'function' in event ? event.function : event.future;
    if ('future' in place) return this.#sequence.body({ category: 'poll', name: calledOf(place), place });
    return this.#sequence.body({ category: 'call', name: place.name, place });
  }

  #call(fn: FunctionRef): Body {
    const known = this.#calls[fn.key];
    if (known?.function === fn) return known.body;
    noteFunction(this.#sequence.annotate(), fn);
    const body = this.#sequence.body({ category: 'call', name: fn.name, place: fn });
    this.#calls[fn.key] = { function: fn, body };
    return body;
  }

  #moreOfCall({ thread, hart, arguments: values }: CallBegin): More | undefined {
    if (values.length === 0 && thread === undefined) return undefined;
    const more = this.#sequence.more();
    if (thread !== undefined) more.value(this.#sequence.nameField('hart'), String(hart));
    for (const { name, value } of values) more.value(this.#sequence.argumentField(name), value);
    return more;
  }

  #makePoll(event: PollBegin): Body {
    const { state, stack, future, root } = event;
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    noteState(notes, 'state_before', state);
    if (stack) notes.text('stack', stackText(stack));
    notes.text('task', calledOf(root.future));
    return this.#sequence.body({ category: 'poll', name: calledOf(future), place: future, stack });
  }

  #noteEnd(notes: Annotations, event: PollEnd): void {
    notes.text('result', event.result);
    noteState(notes, 'state_after', event.state);
    if (event.chain.length > 0) notes.text('await_chain', chainText(event));
  }
}

function isSamePlace(one: StackEntry, other: StackEntry): boolean {
  return one === other || (one.function === other.function && one.file === other.file && one.line === other.line);
}

function noteFunction(notes: Annotations, { address, instance, name, kind, type }: FunctionRef): void {
  notes.pointer('address', address);
  if (instance !== name) notes.text('instance', instance);
  if (kind !== undefined) notes.text('kind', kind);
  if (type !== undefined) notes.text('type', type);
}

function noteFuture(notes: Annotations, { future }: Pick<PollBegin, 'future'>): void {
  if (isPointer(future)) notes.text('future', future.future);
  if (future.instance !== future.future) notes.text('instance', future.instance);
  if (future.inlined) notes.bool('inlined_polls', true);
  if (future.hidesDrops) notes.bool('hides_drops', true);
}

function noteState(notes: Annotations, name: string, state: StateRef | undefined): void {
  if (state !== undefined) notes.text(name, stateText(state));
}
