import type { MemoryReader } from '../base/memory-reader.js';
import type {
  AwaitLink,
  FunctionRef,
  FutureRef,
  PlaceRef,
  PollResult,
  RootRef,
  StateRef,
  TraceEvent,
  WatchHit,
} from '../trace/index.js';
import type { PlainValue } from '../values/index.js';

/** One hit of a probe. */
export interface AnyHit {
  /** Guest nanoseconds since the first event of the run. */
  readonly time: number;
  /** The hart's number, from 0. */
  readonly hart: number;
  /** What was captured, by the text of each capture. */
  readonly values: Readonly<Record<string, PlainValue>>;
  /** The target's memory, where the hit is a stop; it can be read until the handler's promise resolves. */
  readonly memory: MemoryReader | undefined;
  /** The event as traces have it. */
  readonly event: TraceEvent;
  /** Of `fn:` probes. */
  readonly function?: FunctionRef;
  /** Of `poll:` probes. */
  readonly future?: FutureRef;
  /** Of `line:` probes, and of kinds of one's own that emit places. */
  readonly place?: PlaceRef;
  /** Of `watch:` probes. */
  readonly access?: WatchHit;
}

/** A function is entered. */
export interface CallHit extends AnyHit {
  /** With the file and line of its declaration. */
  readonly function: FunctionRef;
}

/** A Future is polled. */
export interface PollHit extends AnyHit {
  /** With the file and line of its declaration. */
  readonly future: FutureRef;
  /** Where it stands before this poll, with the file and line of that await. */
  readonly state: StateRef | undefined;
  /** Its task: the outermost Future. */
  readonly task: RootRef;
  /** The Futures that await it, from the task down to itself, as far as their polls were seen. */
  readonly chain: readonly FutureRef[];
  /**
   * The compiler inlined this poll. It was worked out from the bytes of the Future around it, so nothing is captured.
   */
  readonly derived: boolean;
}

/** How a poll ended. */
export interface PollReturn {
  readonly result: PollResult;
  readonly state: StateRef | undefined;
  /** What the Future awaits now, outermost first; empty when ready. */
  readonly chain: readonly AwaitLink[];
}

/** Called at each hit. Where the hit is a stop, the target stands until the promise resolves. */
export type Handler<H> = (hit: H) => unknown;

export interface ProbeOptions<H, R> {
  /** Member expressions over the function's arguments, or over the Future's own members at a poll: `self.header.id`. */
  readonly capture?: readonly string[];
  /** Stop the target at each hit, so that `hit.memory` is there. */
  readonly stop?: boolean;
  /** Called when the call or poll has returned. The duration is in guest nanoseconds. */
  readonly onReturn?: (hit: H, result: R, duration: number) => unknown;
}
