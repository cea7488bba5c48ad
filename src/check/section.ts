import type { TraceEvent, TraceFacts, TraceInfo } from '../trace/index.js';
import type { Json } from './json.js';

/**
 * What became of one budget. `unseen`: it could not be checked, because the trace has nothing of what it names. That is
 * no failure unless the user says so.
 */
export type VerdictState = 'kept' | 'broken' | 'unseen';

/** A place in the source, for annotations. */
export interface Place {
  readonly file: string | undefined;
  readonly line: number | undefined;
}

export interface Verdict {
  /** The section of the budget file: `times`. */
  readonly section: string;
  /** What the budget is about: `poll:worker max`. */
  readonly subject: string;
  readonly state: VerdictState;
  /** What was asked for, and what was measured, as a person reads it. */
  readonly limit: string;
  readonly measured: string;
  /** Both as numbers, where they are numbers: nanoseconds, counts, instructions. */
  readonly bound?: number | undefined;
  readonly value?: number | undefined;
  readonly place?: Place | undefined;
}

/** What is known when a trace is over. */
export interface Ending {
  readonly info: TraceInfo;
  readonly facts: TraceFacts | undefined;
  /** Time of the last event, in nanoseconds. */
  readonly now: number;
  /** Names of what was seen, as selectors: `fn:labkern::work::deep0`. */
  readonly seen: ReadonlySet<string>;
  /** What the trace does not have: `3 records are missing`. Empty if it is whole. */
  readonly lacks: string;
}

/** Numbers that `--update` writes are so much above (or below) what was measured: 0.25 for a quarter. */
export type HeadRoom = number;

/** A section of a budget file while a trace is checked. It sees every event of the trace. */
export interface Section {
  event(event: TraceEvent): void;
  verdicts(end: Ending): readonly Verdict[];
  /** The section with numbers of this trace; undefined if it should be left out. */
  updated(end: Ending, headRoom: HeadRoom): Json | undefined;
}

/** A kind of budgets: one key of the budget file, one file in `sections/`, one entry in the list there. */
export interface SectionKind {
  readonly key: string;
  /** Reads the value of the key. Throws `BUDGET_INVALID`. */
  readonly parse: (value: Json, at: string) => Section;
  /** What a new budget file asks of a program whose trace has these names; undefined for nothing. */
  readonly proposed: (names: Names) => Json | undefined;
}

/** What a trace holds, as far as new budgets are made of it. */
export interface Names {
  /** Futures that an executor polled, and those of them of which one was ready. */
  readonly tasks: readonly string[];
  readonly ready: readonly string[];
  /** Functions that were called, and those that were called once, in the order of their calls. */
  readonly functions: readonly string[];
  readonly once: readonly string[];
}
