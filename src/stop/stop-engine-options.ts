import { type Addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { SpaceNumbers, StopObserver, Tracer } from '../calls/index.js';
import type { ClockLeak, ClockReader } from '../clock/index.js';
import type { ElfFile } from '../elf/index.js';
import type { Breakpoint, SignalStop, StopReply } from '../rsp/index.js';
import type { GuestRam } from '../target/index.js';
import type { Breakpoints, StopPointsOptions } from './breakpoints.js';
import type { FirstReads } from './first-reads.js';
import type { HitChecks } from './hit-checks.js';
import type { OtherProgram } from './other-programs.js';
import type { ProcessEvents } from './process-events.js';
import type { Resuming } from './resuming.js';
import type { Stepper } from './stepping.js';
import type { Watchpoints } from './watchpoints.js';

/** A machine that may be reset: it boots again, with its program as it was at first. */
export interface ResetWatch {
  /**
   * Whether a hart at `pc` is there because the machine was reset. `passed`: it was not, and the hart is further on
   * now.
   */
  at(pc: bigint, hart: string | undefined): Promise<'reset' | 'passed' | 'elsewhere'>;
  /** Ends the old boot and prepares the new one. `time`: the clock's value, if a clock is in use. */
  again(time: number | undefined): Promise<void>;
}

/** Takes samples at stops, and interrupts the target for them. */
export interface StopSampler {
  /** The target runs until the returned function is called. */
  runs(): () => void;
  /** It is time for a sample, at whatever stop. */
  readonly isDue: boolean;
  /** The last run ended with its interrupt, or with a stop that came in the same moment. */
  readonly hasInterrupted: boolean;
  /** The target stands. `atProbe`: a probe's place has stopped it. */
  take(time: number, atProbe: boolean): Promise<void>;
  /** The process runs another program. */
  forget(): void;
}

/** A stop that was handled, and whose instruction was not run: the hart stands there. */
export interface LeftStop {
  readonly hart: string | undefined;
  /** The pc, and what `Passing.standing` gives. */
  readonly at: string;
  /** It was a hit; else only a place where the recording was to end. */
  readonly isHit: boolean;
}

export interface StopEngineOptions extends StopPointsOptions {
  /** Where the recording before this one has left the target. */
  readonly leftAt?: LeftStop | undefined;
  /** Those that probes' values are in, except for the general ones. */
  readonly valueRegisters?: readonly string[];
  readonly tracer: Tracer;
  /** The machine's RAM, if it can be read past the wire. */
  readonly ram?: GuestRam | undefined;
  /** Numbers of address spaces, for hits' `space`. */
  readonly spaces?: SpaceNumbers | undefined;
  /** Called once, at the first hit. */
  readonly findClock: () => Promise<ClockReader>;
  /** For a machine that may be reset. */
  readonly resets?: ResetWatch | undefined;
  /**
   * Called at hits, before they are handled, until it returns true. It does what must wait until the program runs,
   * and may disarm probes. `inUserMode`: the program runs in a kernel that is not the program.
   */
  readonly onFirstHit?: (inUserMode: boolean) => Promise<boolean>;
  readonly observer?: StopObserver;
  /** The target stands at a place of ours, at this time of its clock. */
  readonly onStop?: (time: number) => void;
  readonly sampler?: StopSampler | undefined;
  /** Takes what stops add to the clock out of it; undefined where nobody can. Asked at each stop. */
  readonly leak?: (() => ClockLeak | undefined) | undefined;
  /**
   * Called when the process runs another program, before the open calls of the old one are closed. Returns further
   * places for probes.
   */
  readonly onExec?: () => Promise<readonly Addr[]>;
  /** What is watched in addition to the probes. */
  readonly watches?: Watchpoints;
  /** Further programs of a machine, each with probes of its own. `elf`: the program itself, whose code differs. */
  readonly others?: readonly OtherProgram[] | undefined;
  readonly elf?: ElfFile | undefined;
  /** Asked after an exec: whether the process runs the probed program again, at the same addresses. */
  readonly isSameProgram: () => Promise<boolean>;
  /** Called when a hart is seen for the first time; returns its number. */
  readonly hartNumber: (id: string | undefined) => number;
}

/** What the engine's parts share. */
export interface StopParts {
  readonly options: StopEngineOptions;
  /** Where it stops. */
  readonly points: Breakpoints;
  readonly stepper: Stepper;
  readonly resuming: Resuming;
  readonly events: ProcessEvents;
  readonly unexpected: UnexpectedStops;
  readonly firstReads: FirstReads;
  /** All breakpoints at an address, whoever's. */
  readonly inserted: (pc: bigint) => readonly Breakpoint[];
  /** Undefined for a process, which has one address space. */
  readonly checks: HitChecks | undefined;
}

/** Why the engine stopped running the guest. */
export type EngineEnd =
  | { readonly kind: 'guest-ended'; readonly stop: StopReply }
  /** The guest is stopped, and the session still knows every breakpoint: detach or resume it. */
  | { readonly kind: 'asked' };

/** After this many consecutive stops without a probe, the target is considered stuck. */
const limit = 1000;

/** Counts stops that no probe caused. */
export class UnexpectedStops {
  readonly #logger: Logger;
  #inARow = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A stop that a probe caused. */
  expected(): void {
    this.#inARow = 0;
  }

  /** @throws RsptraceError `TARGET_STUCK` */
  seen(stop: SignalStop, pc: bigint | undefined): void {
    const where = pc === undefined ? undefined : hex(pc);
    this.#logger.debug({ stop: stop.signal, pc: where }, 'a stop without a probe');
    if (++this.#inARow <= limit) return;
    throw new RsptraceError('TARGET_STUCK', `the target keeps stopping at ${where ?? '?'}, where no probe is`, {
      hint: 'is another debugger using this stub, or does the program trap on its own?',
    });
  }
}
