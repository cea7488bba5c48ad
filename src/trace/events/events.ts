import type { Addr } from '../../base/addr.js';
import type { HartInfo, TraceFacts, TraceInfo } from './facts.js';
import type {
  ArgumentValue,
  AwaitLink,
  FunctionRef,
  FutureRef,
  PlaceRef,
  RootRef,
  SampledFrame,
  StackEntry,
  StateRef,
  ThreadRef,
  WatchRef,
} from './refs.js';

export * from './facts.js';
export type {
  ArgumentValue,
  AwaitLink,
  AwaitPlace,
  FunctionRef,
  FutureKind,
  FutureRef,
  PlaceRef,
  RootRef,
  SampledFrame,
  StackEntry,
  StateRef,
  TaskAbout,
  ThreadRef,
  WatchAccess,
  WatchRef,
} from './refs.js';

/**
 * The event model: everything that formats, tables and checks know. The source of events is not known here, so a
 * recording can be reported on without a stub. Times are guest nanoseconds since the trace's first event, below 2^53
 * (104 days).
 */
export type GuestNanos = number & { readonly __guestNanos: true };

export type PollResult = 'ready' | 'pending' | 'panicked' | 'unknown';

/** Of which program it is, from 0, where several are traced. */
interface OfProgram {
  readonly program?: number | undefined;
}

interface At extends OfProgram {
  readonly time: GuestNanos;
  /** The hart's number in the trace, from 0. */
  readonly hart: number;
  readonly root: RootRef;
  readonly future: FutureRef;
  readonly address: Addr;
}

/** What begins. */
interface Beginning {
  /** Its thread, which may wait while others run, and continue on another hart. Undefined if only harts are known. */
  readonly thread?: ThreadRef | undefined;
  /** The innermost poll or call around it that was emitted, and was open. */
  readonly around?: AnyBegin | undefined;
  /** Polls and calls around it. */
  readonly depth: number;
}

/** What ends that has begun. It may end on another hart than where it began. */
interface Ending<B extends AnyBegin> {
  /** Undefined if the begin was not seen. */
  readonly begin?: B | undefined;
  readonly thread?: ThreadRef | undefined;
  /** As it began. */
  readonly depth: number;
  /** When it began. */
  readonly began: GuestNanos;
  /** A breakpoint has stopped the target in it. Formats other than `.pftrace` do not have it. */
  readonly stopped?: true | undefined;
}

export interface PollBegin extends At, Beginning {
  readonly type: 'poll-begin';
  readonly state: StateRef | undefined;
  /** The poller, if stacks were asked for: the poll function first, then its callers, including inlined ones. */
  readonly stack?: readonly StackEntry[] | undefined;
}

export interface PollEnd extends At, Ending<PollBegin> {
  readonly type: 'poll-end';
  /** It was emitted as lost, too early. */
  readonly wasLost?: boolean | undefined;
  readonly result: PollResult;
  readonly state: StateRef | undefined;
  /** What the Future awaits now, outermost first; empty when ready. */
  readonly chain: readonly AwaitLink[];
}

/** A Future's state after something that changed it. */
export interface StateChange extends At {
  readonly type: 'state';
  readonly from: StateRef | undefined;
  readonly to: StateRef | undefined;
  /** Derived from an outer Future's bytes, because this one's poll was inlined. */
  readonly derived: boolean;
}

/** A poll that the compiler inlined, so that no breakpoint saw it: derived from the bytes of the outer Future. */
export interface DerivedPoll extends At {
  readonly type: 'derived-poll';
  readonly result: PollResult;
  readonly state: StateRef | undefined;
}

/** A poll whose end was not seen: it was left in an unknown way, or cut off by the end of the trace. */
export interface PollLost extends At, Ending<PollBegin> {
  readonly type: 'poll-lost';
}

interface OfCall extends OfProgram {
  readonly time: GuestNanos;
  readonly hart: number;
  readonly function: FunctionRef;
}

/** A function is entered. */
export interface CallBegin extends OfCall, Beginning {
  readonly type: 'call-begin';
  /** In the order of the source; those that are not in registers are left out. */
  readonly arguments: readonly ArgumentValue[];
}

/** It has returned. */
export interface CallEnd extends OfCall, Ending<CallBegin> {
  readonly type: 'call-end';
  /** It was emitted as lost, too early. */
  readonly wasLost?: boolean | undefined;
  /** What it returned, if that is in registers. */
  readonly result?: string | undefined;
}

/**
 * A call whose return was not seen: it never returns, was unwound, or was cut off by the end of the trace. Or nothing
 * observes returns of the function: then this comes where it began.
 */
export interface CallLost extends OfCall, Ending<CallBegin> {
  readonly type: 'call-lost';
  /** Nothing observes returns of the function. Known while recording. */
  readonly entryOnly?: true | undefined;
}

export type AnyBegin = PollBegin | CallBegin;
export type AnyEnd = PollEnd | PollLost | CallEnd | CallLost;
export type CallEvent = CallBegin | CallEnd | CallLost;

/** A place that is watched was read or written. */
export interface WatchHit {
  readonly type: 'watch';
  readonly time: GuestNanos;
  readonly hart: number;
  readonly watch: WatchRef;
  /** `access`: a read, or a write of the same value, which the target does not report apart. */
  readonly access: 'read' | 'write' | 'access';
  /** The old value, as Rust would print it; undefined for a read, and if it could not be read. */
  readonly old: string | undefined;
  /** The value after the access; for a read, the value that was read. */
  readonly value: string | undefined;
  /** The value as a number, if it is one. */
  readonly number: number | undefined;
  /** Whether the bytes differ from those before; undefined for a read, and if they could not be read. */
  readonly changed: boolean | undefined;
  /** The instruction, or the next one if the target stops after the access. */
  readonly pc: Addr;
  /**
   * The function that accessed: among those inlined into each other there, the innermost of its own code, else of a
   * library.
   */
  readonly by: StackEntry;
  /** All of these functions, the innermost first. */
  readonly inlined: readonly StackEntry[];
}

/** A hart reached a place: an instant, which neither begins nor ends anything. */
export interface PlaceHit extends OfProgram {
  readonly type: 'place';
  readonly time: GuestNanos;
  readonly hart: number;
  readonly place: PlaceRef;
}

/** A waker was used: the executor is to poll the task again. */
export interface Wake extends OfProgram {
  readonly type: 'wake';
  readonly time: GuestNanos;
  readonly hart: number;
  /** What the waker points to, as the executor knows its task. */
  readonly waker: Addr;
  /** The task that is woken; undefined if no poll of it was seen, or nothing says which it is. */
  readonly root: RootRef | undefined;
  /** The task whose poll was open there; undefined if none was: an interrupt's handler, or other code. */
  readonly by: RootRef | undefined;
  /**
   * The function that used the waker: among those inlined there, the innermost of its own code, else of a library.
   */
  readonly caller: StackEntry;
}

/** What a hart ran when a sampling profile stopped it; or a task's wait, in an off-CPU profile. */
export interface Sample {
  readonly type: 'sample';
  readonly time: GuestNanos;
  readonly hart: number;
  /** The innermost first, with those that are inlined. Frames without a function name their kind: `[firmware]`. */
  readonly stack: readonly SampledFrame[];
  /** What a sample stands for, in nanoseconds: the sampling period, or the length of a wait. */
  readonly periodNs: number;
  /** Of an off-CPU profile: what the task awaits, and on top of that who woke it. */
  readonly isWait?: true | undefined;
}

/** A Future was dropped before it was ready. */
export interface Cancelled extends OfProgram {
  readonly type: 'cancelled';
  readonly time: GuestNanos;
  readonly hart: number;
  /** The task that it was, or belonged to; undefined if no poll of it was seen. */
  readonly root: RootRef | undefined;
  readonly future: FutureRef;
  readonly address: Addr;
  /** Where it waited; undefined if only its task's polls have shown that it was not ready. */
  readonly state: StateRef | undefined;
  /** The task whose poll was open there; undefined if none was. */
  readonly by: RootRef | undefined;
  /** Who dropped it: among the functions inlined there, the innermost of its own code, else of a library. */
  readonly caller: StackEntry;
  /**
   * Nothing has shown the drop itself, which was some time before. `replaced`: another Future is polled for the first
   * time at its address. `holder-ended`: the Future that held it has ended.
   */
  readonly implied?: 'replaced' | 'holder-ended' | undefined;
}

/**
 * At the end of the recording memory has shown that a task will not be polled again. `deadlock`: it waits for tasks
 * that wait for it. `likely-deadlock`: the same, unless somebody else can end a wait. `lost-wake`: no waker of it is
 * left.
 */
export interface Stuck extends OfProgram {
  readonly type: 'stuck';
  readonly time: GuestNanos;
  /** Undefined if no poll of it was seen. */
  readonly root: RootRef | undefined;
  readonly future: FutureRef;
  readonly address: Addr;
  readonly why: 'deadlock' | 'likely-deadlock' | 'lost-wake';
  /** In words: `waits for Mutex at 0x80208050, held by task 3 (app::worker, src/work.rs:51)`. */
  readonly wait: string;
  /** The await in the program's own code. */
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** Events in between are missing. If the link to the stub was broken, open polls are emitted as lost. */
export interface Gap {
  readonly type: 'gap';
  /** Undefined if the link to the stub was broken. */
  readonly why?: string | undefined;
  /** The last known time before, and the time at which recording continued. */
  readonly from: GuestNanos;
  readonly to: GuestNanos;
}

/** The machine was reset and boots again. Everything open was emitted as lost before. */
export interface Reset {
  readonly type: 'reset';
  readonly time: GuestNanos;
}

/** A line that the guest has written to its console. It stands behind the last event that is known to be before it. */
export interface ConsoleLine {
  readonly type: 'console';
  readonly time: GuestNanos;
  readonly text: string;
}

export type TraceEvent =
  | PollBegin
  | PollEnd
  | StateChange
  | DerivedPoll
  | PollLost
  | CallEvent
  | WatchHit
  | PlaceHit
  | Wake
  | Sample
  | Cancelled
  | Stuck
  | Gap
  | Reset
  | ConsoleLine;

/** When it was; of a gap, when recording continued. */
export function timeOf(event: TraceEvent): GuestNanos {
  return event.type === 'gap' ? event.to : event.time;
}

/** Takes events: a file format, a table. Synchronous, because events come in bursts while the guest runs. */
export interface TraceSink {
  begin(info: TraceInfo): void;
  event(event: TraceEvent): void;
  /** A hart seen for the first time after `begin`. */
  hart(hart: HartInfo): void;
  /** Writes buffered events: called before the guest runs for long, and at least every 200 ms. */
  flush(): void;
  /** `facts`: undefined if nothing was recorded. Where something fails it may come without `begin`, or once more. */
  end(facts?: TraceFacts): void;
}
