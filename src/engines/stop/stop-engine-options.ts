import type { Addr } from '../../base/addr.js';
import type { ClockReader, SpaceNumbers } from '../../facts/index.js';
import type { StopObserver, Tracer } from '../../probes/index.js';
import type { StopReply } from '../../rsp/index.js';
import type { StopPointsOptions } from './breakpoints.js';
import type { Watchpoints } from './watchpoints.js';

/** A machine that may be reset: it begins anew then, with its program as it was at first. */
export interface ResetWatch {
  /** Whether a hart that stands at `pc` stands there since the machine was reset; `passed`: it only seemed so, and it stands further on now. */
  at(pc: bigint, hart: string | undefined): Promise<'reset' | 'passed' | 'elsewhere'>;
  /** Ends the old boot and prepares the new one. `time`: what the clock says, where one is in use. */
  again(time: number | undefined): Promise<void>;
}

export interface StopEngineOptions extends StopPointsOptions {
  readonly tracer: Tracer;
  /** Numbers of address spaces, for hits' `space`. */
  readonly spaces?: SpaceNumbers | undefined;
  /** Called once, at the first hit. */
  readonly findClock: () => Promise<ClockReader>;
  /** Of a machine that may be reset. */
  readonly resets?: ResetWatch | undefined;
  /**
   * Called at hits, before they are handled, until it gives true: what has to wait until the program runs. It may disarm. `inUserMode`: the program
   * runs in a kernel that is not the program.
   */
  readonly onFirstHit?: (inUserMode: boolean) => Promise<boolean>;
  readonly beside?: StopObserver;
  /** Called when the process runs another program, before what was open in the old one is given up; where else probes are to be planted now. */
  readonly onExec?: () => Promise<readonly Addr[]>;
  /** What is watched beside the probes. */
  readonly watches?: Watchpoints;
  /** Asked after an exec: whether the process runs the probed program again, at the same addresses. */
  readonly isSameProgram: () => Promise<boolean>;
  /** Called when a hart is seen for the first time; returns its number. */
  readonly hartNumber: (id: string | undefined) => number;
}

/** Why the engine stopped running the guest. */
export type EngineEnd =
  | { readonly kind: 'guest-ended'; readonly stop: StopReply }
  /** The guest is stopped and every breakpoint is still known to the session: detach or resume it. */
  | { readonly kind: 'asked' };
