import { hex, lowHalf } from '../../../base/addr.js';
import type {
  AnyEnd,
  AwaitLink,
  Cancelled,
  DerivedPoll,
  FutureRef,
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
} from '../../events.js';
import { ChainTexts, rootText, stackText, stateText, wakerText } from '../../text.js';
import type { LifeEnd } from '../lanes.js';
import type { Annotations } from './annotations.js';
import type { Body } from './body.js';
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

/** The written bodies of one Future within the roots of one place. */
interface Kept {
  /** One of them. A Future that lies there anew has the same bodies. */
  readonly root: RootRef;
  readonly future: FutureRef;
  readonly address: bigint;
  readonly begins: Begin[];
  readonly ends: End[];
  readonly changes: Change[];
  readonly derived: Derived[];
}

const lifeText = { ready: 'completed', panicked: 'panicked', dropped: 'dropped before it was ready', lost: 'lost' };

/** Flows of tasks have the roots' keys, which are lower. */
const FIRST_WAKE = 2 ** 40;

/** Log2 of the number of Futures that are kept, one per hash. */
const keptShift = 12;
/** Begins, ends, ... that are kept for one Future; a full list is emptied. */
const waysKept = 16;
/** Wakes that are kept, one per hash: a power of two. */
const wakesKept = 1024;
/** The number of tasks whose flows are kept, a power of two. */
const flowsKept = 1024;

/**
 * The bodies of events of polls. A Future is polled in the same few ways over and over. So the last bodies are kept,
 * and found again by the identity of what an event names.
 */
export class PollBodies {
  readonly #sequence: PerfettoSequence;
  readonly #chains = new ChainTexts();
  readonly #kept: (Kept | undefined)[] = new Array(1 << keptShift).fill(undefined);
  readonly #flows: ({ readonly key: number; readonly body: Body } | undefined)[] = new Array(flowsKept).fill(undefined);
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
    notes.pointer('task_address', root.address);
    const body = this.#sequence.body({ category: 'poll', name: future.future, place: future, stack });
    if (!stack) keep(begins, { state, body });
    return body;
  }

  /** Connects the polls of a task, on all harts, and its waits between them. */
  flow({ key }: RootRef): Body {
    const slot = key & (flowsKept - 1);
    const known = this.#flows[slot];
    if (known?.key === key) return known.body;
    const body = this.#sequence.flowBody(key);
    this.#flows[slot] = { key, body };
    return body;
  }

  /** The same, and the end of the arrow from the wake that caused the poll. Valid until the next call. */
  wokenFlow({ key }: RootRef, wake: number): Body {
    return this.#sequence.passingFlowBody(key, FIRST_WAKE + wake);
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
    return this.#sequence.passingFlowBody(FIRST_WAKE + wake);
  }

  /** What was dropped, by whom, and where. */
  cancelled(event: Cancelled): Body {
    const { root, state, caller, future, implied } = event;
    const notes = this.#sequence.annotate();
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
   * and an instant will tell its end.
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

  #of({ root, future, address }: Pick<PollBegin, 'root' | 'future' | 'address'>): Kept {
    // A new root at a place takes the slot of the one before it: bodies of Futures that are gone do not pile up.
    const hash = Math.imul(Math.imul(lowHalf(root.address), 0x0100_0193) ^ future.key, 0x0100_0193) ^ lowHalf(address);
    const slot = Math.imul(hash, 0x9e37_79b1) >>> (32 - keptShift);
    const known = this.#kept[slot];
    if (known && isAlike(known.root, root) && known.future === future && known.address === address) return known;
    const kept: Kept = { root, future, address, begins: [], ends: [], changes: [], derived: [] };
    this.#kept[slot] = kept;
    return kept;
  }
}

function isAlike(one: RootRef, other: RootRef): boolean {
  return one === other || (one.future === other.future && one.address === other.address);
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

function noteFuture(notes: Annotations, { address, future }: Pick<PollBegin, 'address' | 'future'>): void {
  notes.pointer('address', address);
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
