import type { Batch, Resume, StopReply } from '../rsp/index.js';

/** What stops have added to the guest's clock, in nanoseconds. */
export interface StopLeak {
  /** What was taken out. */
  readonly totalNs: number;
  /** Of one stop: the mean, or the least that was measured. */
  readonly perStopNs: number;
  /** How often it was measured. */
  readonly measured: number;
  /** Stops with nothing to do that it took: they are among the stops of the recording. */
  readonly stops: number;
  /** What remains in durations: a tick of the clock a stop; or nobody knows how much, and they are upper bounds. */
  readonly rest: 'tick' | UnknownRest;
}

export interface UnknownRest {
  /** Half of the stops have added at most so much; undefined if nothing says. */
  readonly perStopNs: number | undefined;
  readonly why: string;
  /** What to do for durations that are known. */
  readonly wayOut: string;
}

/** Sends a batch and lets the target run; undefined, and it stands, if it is to go on no more. */
export type GoOn = (batch: Batch) => Promise<StopReply | undefined>;

/** Takes out of a machine's clock what its stops add. */
export interface ClockLeak {
  /** Undefined before the first stop. */
  readonly facts: StopLeak | undefined;
  /** At a stop. No call is open: the guest makes up for lost time where it waits for its clock. */
  nothingIsOpen(): void;
  /** At a breakpoint, before its time is that of an event. `time`: nanoseconds of the trace. */
  arrived(pc: bigint, hart: string | undefined, time: number): void;
  /** At a probe, before it is handled. True: the guest is to go on, and will stop here again. */
  wantsAgain(pc: bigint, hart: string | undefined): boolean;
  /**
   * Goes on from a stop with nothing but what has been handled. The last step is `goOn`, which resumes as `how` says.
   * @param stepped since this time, by a single step that was necessary
   */
  resume(batch: Batch, how: Resume, goOn: GoOn, stepped?: number): Promise<StopReply | undefined>;
}
