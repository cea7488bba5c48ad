import type { MemoryReader } from '../base/memory-reader.js';
import type { AnyProbe } from '../probes/index.js';
import type {
  AwaitLink,
  FunctionRef,
  FutureRef,
  PlaceRef,
  PollResult,
  ProbeFact,
  RootRef,
  StateRef,
  TraceEvent,
  WatchHit,
} from '../trace/index.js';
import type { PlainValue } from '../values/index.js';
import { type Capture, parseCapture } from './captures.js';

/** A Future whose polls a `poll:` probe does not see, or not all of them, and why. */
export interface UnseenFuture {
  readonly future: string;
  readonly instance: string;
  readonly seen: 'lower-bound' | 'not' | 'no-code';
  readonly reason: string;
}

/** A probe of a target, and what is known of it. */
export class Probe {
  /** As it was asked for: `fn:labkern::work::deep0`. */
  readonly text: string;
  /** Hits so far. */
  hits = 0;
  /** Calls and polls whose return was seen. */
  returns = 0;
  /** Calls and polls whose return was not seen: they never return, were unwound, or the run ended before. */
  lost = 0;
  /** How each place of it is carried out, and why so; known once a run has begun. */
  places: readonly ProbeFact[] = [];
  /** Of `poll:` probes: Futures of whose polls some call no handler, and why; known once a run has begun. */
  unseen: readonly UnseenFuture[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /**
   * How it is carried out: without stops (`target`), with one at each hit (`stop`), both in different places (`mixed`),
   * or not at all (`none`). Undefined before the first run, and for what has no choice (`watch:` stops at each access).
   */
  get engine(): ProbeFact['engine'] | 'mixed' | undefined {
    const engines = new Set(this.places.map(({ engine }) => engine));
    return engines.size > 1 ? 'mixed' : [...engines][0];
  }

  /** Why it is not carried out without stops, of the first place that is not. */
  get reason(): string | undefined {
    return this.places.find(({ why }) => why !== undefined)?.why;
  }
}

/** A probe with what its user wants of it. */
export interface Asked {
  readonly probe: Probe;
  readonly spec: AnyProbe;
  readonly captures: readonly Capture[];
  readonly stop: boolean;
  readonly handler: Handler<AnyHit> | undefined;
  readonly onReturn: ((hit: AnyHit, result: unknown, duration: number) => unknown) | undefined;
}

/** What the two forms of `Target.probe` come to. */
export function askedProbe(
  spec: AnyProbe,
  options: ProbeOptions<AnyHit, unknown>,
  handler: Handler<AnyHit> | undefined,
): Asked {
  const { capture = [], stop = false, onReturn } = options;
  return { probe: new Probe(spec.text), spec, captures: capture.map(parseCapture), stop, handler, onReturn };
}

/** One hit of a probe. */
export interface AnyHit {
  /** Guest nanoseconds since the first event of the run. */
  readonly time: number;
  /** The hart's number in the trace, from 0. Of a process it is a thread, whose id is only in `HartInfo.name`. */
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
