import { hex, lowHalf } from '../../../../base/addr.js';
import type {
  AnyEnd,
  AwaitLink,
  Cancelled,
  DerivedPoll,
  PollBegin,
  PollEnd,
  PollLost,
  PollResult,
  RootRef,
  StackEntry,
  StateChange,
  StateRef,
  Stuck,
  Wake,
} from '../../../events/events.js';
import { ChainTexts, rootText, stackText, stateText, wakerText } from '../../../events/text.js';
import type { LifeEnd } from '../../lanes.js';
import type { Annotations } from './annotations.js';
import { type Body, PassingBody } from './body.js';
import type { PerfettoSequence } from './packets.js';

interface Begin {
  readonly state: StateRef | undefined;
  readonly body: Body;
}
interface End {
  readonly chain: readonly AwaitLink[];
  readonly state: StateRef | undefined;
  readonly result: PollResult;
  readonly body: Body;
  /** The body of the following wait, if its `name` is this. */
  wait: { readonly name: string; readonly body: Body } | undefined;
}
interface Change {
  readonly from: StateRef | undefined;
  readonly to: StateRef | undefined;
  readonly derived: boolean;
  readonly body: Body;
}
interface KeptWake extends Pick<Wake, 'root' | 'waker' | 'by' | 'caller'> {
  readonly body: Body;
}
interface Derived {
  readonly state: StateRef | undefined;
  readonly result: PollResult;
  readonly body: Body;
}

/** The written bodies of one Future within the roots of one type. */
interface Kept {
  readonly begins: Begin[];
  readonly ends: End[];
  readonly changes: Change[];
  readonly derived: Derived[];
}

const lifeText = { ready: 'completed', panicked: 'panicked', dropped: 'dropped before it was ready', lost: 'lost' };

/** Flows of tasks have the roots' keys, which are lower. */
const FIRST_WAKE = 2 ** 40;

/** Begins, ends, ... that are kept for one Future; a full list is emptied. */
const waysKept = 32;
/** Wakes that are kept, one per hash: a power of two. */
const wakesKept = 1024;
/**
 * The bodies of events of polls. A Future is polled in the same few ways over and over. So the last bodies are kept,
 * and found again by the identity of what an event names. Where the Future and its task lie is next to them. A server
 * has a hundred thousand places for the Futures of its requests: bodies of each would seldom come again.
 */
export class PollBodies {
  readonly #sequence: PerfettoSequence;
  readonly #chains = new ChainTexts();
  /** By the keys of the Future and of its root's. */
  readonly #kept = new Map<number, Kept>();
  readonly #beside = new PassingBody();
  #names: { readonly address: Uint8Array; readonly task: Uint8Array } | undefined;
  readonly #wakes: (KeptWake | undefined)[] = new Array(wakesKept).fill(undefined);
  #ended: { readonly lost: Body; readonly cut: Body } | undefined;
  readonly #lives = new Map<LifeEnd, Body>();

  constructor(sequence: PerfettoSequence) {
    this.#sequence = sequence;
  }

  begin(event: PollBegin): Body {
    const { begins } = this.#of(event);
    const { state, stack } = event;
    if (!stack) for (const known of begins) if (known.state === state) return known.body;
    const { future, root } = event;
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    noteState(notes, 'state_before', state);
    if (stack) notes.text('stack', stackText(stack));
    notes.text('task', root.future.future);
    const body = this.#sequence.body({ category: 'poll', name: future.future, place: future, stack });
    if (!stack) keep(begins, { state, body });
    return body;
  }

  /**
   * What is beside the body of a begin. A flow connects the polls of a task, on all harts, and its waits between them.
   * An arrow from the wake that caused the poll ends there. Valid until the next call.
   */
  besideBegin({ address, root }: PollBegin, isOutermost: boolean, wake?: number): Body {
    const { address: name, task } = this.#addressNames();
    const beside = this.#beside.clear().pointer(name, address).pointer(task, root.address);
    if (isOutermost || wake !== undefined) beside.flow(root.key);
    return wake === undefined ? beside : beside.endOfFlow(FIRST_WAKE + wake);
  }

  /** What is beside the body of another event of a Future. Valid until the next call. */
  beside({ address }: Pick<PollBegin, 'address'>): Body {
    return this.#beside.clear().pointer(this.#addressNames().address, address);
  }

  /** The flow that connects the polls of a task. Valid until the next call. */
  flow({ key }: RootRef): Body {
    return this.#beside.clear().flow(key);
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
    const name = `wake ${root?.future.future ?? hex(waker)}`;
    const body = this.#sequence.body({ category: 'wake', name, place: caller });
    this.#wakes[slot] = { root, waker, by, caller, body };
    return body;
  }

  /** The begin of the arrow to the poll that a wake causes. Valid until the next call. */
  wakeFlow(wake: number): Body {
    return this.#beside.clear().flow(FIRST_WAKE + wake);
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
    return this.#sequence.body({ category: 'cancelled', name: future.future, place: caller });
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

  end(event: PollEnd): Body {
    return this.#end(event).body;
  }

  wait(event: PollEnd, name: string, at: StateRef | undefined): Body {
    const end = this.#end(event);
    if (end.wait?.name === name) return end.wait.body;
    const notes = this.#sequence.annotate();
    if (event.chain.length > 0) notes.text('await_chain', this.#chains.text(event.chain));
    const body = this.#sequence.body({ category: 'wait', name, place: at });
    end.wait = { name, body };
    return body;
  }

  state(event: StateChange): Body {
    const { changes } = this.#of(event);
    const { from, to, derived } = event;
    for (const known of changes) {
      if (known.from === from && known.to === to && known.derived === derived) return known.body;
    }
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    noteState(notes, 'state_before', from);
    noteState(notes, 'state_after', to);
    notes.bool('derived', derived);
    const name = `${event.future.future}: ${to?.name ?? 'unknown state'}`;
    const body = this.#sequence.body({ category: derived ? 'derived' : 'state', name, place: to });
    keep(changes, { from, to, derived, body });
    return body;
  }

  derived(event: DerivedPoll): Body {
    const { derived } = this.#of(event);
    const { state, result, future } = event;
    for (const known of derived) if (known.state === state && known.result === result) return known.body;
    const notes = this.#sequence.annotate();
    noteFuture(notes, event);
    notes.text('result', result);
    noteState(notes, 'state_after', state);
    notes.bool('derived', true);
    const body = this.#sequence.body({ category: 'derived', name: future.future, place: future });
    keep(derived, { state, result, body });
    return body;
  }

  /** The end of a task. */
  life(how: LifeEnd): Body {
    const known = this.#lives.get(how);
    if (known) return known;
    this.#sequence.annotate();
    const body = this.#sequence.body({ category: 'task', name: lifeText[how] });
    this.#lives.set(how, body);
    return body;
  }

  /**
   * The end of a slice whose poll or call was lost: its end was not seen. Or of one that was cut: it goes on elsewhere,
   * and an instant will say its end.
   */
  ended(why: 'lost' | 'cut'): Body {
    this.#ended ??= { lost: this.#endBody('lost'), cut: this.#endBody('cut') };
    return this.#ended[why];
  }

  #endBody(result: string): Body {
    this.#sequence.annotate().text('result', result);
    return this.#sequence.body();
  }

  /** An end whose begin was not seen. */
  orphan(event: PollEnd | PollLost): Body {
    const notes = this.#sequence.annotate();
    if (event.type === 'poll-end') this.#noteEnd(notes, event);
    else notes.text('result', 'lost');
    notes.pointer('address', event.address);
    noteFuture(notes, event);
    notes.pointer('task_address', event.root.address);
    noteBegan(notes, event);
    return this.#sequence.body({ category: 'poll', name: event.future.future });
  }

  #end(event: PollEnd): End {
    const { ends } = this.#of(event);
    const { chain, state, result } = event;
    for (const known of ends) {
      if (known.state === state && known.result === result && isSameChain(known.chain, chain)) return known;
    }
    this.#noteEnd(this.#sequence.annotate(), event);
    const end: End = { chain, state, result, body: this.#sequence.body(), wait: undefined };
    keep(ends, end);
    return end;
  }

  #noteEnd(notes: Annotations, { result, state, chain }: PollEnd): void {
    notes.text('result', result);
    noteState(notes, 'state_after', state);
    if (chain.length > 0) notes.text('await_chain', this.#chains.text(chain));
  }

  #addressNames(): { readonly address: Uint8Array; readonly task: Uint8Array } {
    this.#names ??= { address: this.#sequence.nameField('address'), task: this.#sequence.nameField('task_address') };
    return this.#names;
  }

  #of({ root, future }: Pick<PollBegin, 'root' | 'future'>): Kept {
    const key = future.key * 2 ** 20 + root.future.key;
    const known = this.#kept.get(key);
    if (known) return known;
    const kept: Kept = { begins: [], ends: [], changes: [], derived: [] };
    this.#kept.set(key, kept);
    return kept;
  }
}

function isSamePlace(one: StackEntry, other: StackEntry): boolean {
  return one === other || (one.function === other.function && one.file === other.file && one.line === other.line);
}

/** Equal in everything that is written about them; the places of their links are not. */
function isSameChain(one: readonly AwaitLink[], other: readonly AwaitLink[]): boolean {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) {
    const [a, b] = [one[i] as AwaitLink, other[i] as AwaitLink];
    if (a.future !== b.future || a.state !== b.state || a.typeName !== b.typeName) return false;
  }
  return true;
}

function keep<T>(list: T[], item: T): void {
  if (list.length === waysKept) list.length = 0;
  list.push(item);
}

function noteFuture(notes: Annotations, { future }: Pick<PollBegin, 'future'>): void {
  if (future.instance !== future.future) notes.text('instance', future.instance);
  if (future.inlined) notes.bool('inlined_polls', true);
  if (future.hidesDrops) notes.bool('hides_drops', true);
}

/** Of an end without a slice: when it began, by which a reader finds the begin. */
export function noteBegan(notes: Annotations, event: AnyEnd): void {
  notes.value('began', String(event.began));
  if ('wasLost' in event && event.wasLost) notes.bool('was_lost', true);
}

function noteState(notes: Annotations, name: string, state: StateRef | undefined): void {
  if (state !== undefined) notes.text(name, stateText(state));
}
