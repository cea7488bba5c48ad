import type { StuckTask } from '../async/futures/index.js';
import type { Addr } from '../base/addr.js';
import type { Refusal, RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { HitObserver } from '../calls/index.js';
import type { ClockName, ClosedCounter, InstructionClock, StopLeak } from '../clock/index.js';
import type { EngineName, Hurdle } from '../engines/index.js';
import type { FunctionOptions } from '../probes/index.js';
import type { Session, Standing, StopReply } from '../rsp/index.js';
import type { ScratchSources } from '../scratch/index.js';
import type { LeftStop, OtherCounts } from '../stop/index.js';
import type { GuestRam, LetRun, ResetVector } from '../target/index.js';
import type {
  ClockInfo,
  Disturbance,
  OwnTime,
  ProbeFact,
  SampleFacts,
  StopError,
  TallyRow,
  TraceSink,
  WatchRef,
} from '../trace/index.js';
import type { Program } from './program.js';
import type { ForeignHits, Quiet, QuietOptions } from './quiet.js';
import type { LogRequest } from './recording-log.js';

export interface RecordOptions {
  readonly session: Session;
  readonly program: Program;
  readonly sink: TraceSink;
  readonly clock?: ClockName;
  /** Ticks a second of riscv's `time`; 10 MHz on QEMU's virt machine. */
  readonly timebaseHz?: number;
  /** Stop after this long, in milliseconds of the host. */
  readonly durationMs?: number;
  /** Somebody sees events as they come, so they are worth more of the core while the target runs. */
  readonly isShown?: boolean | undefined;
  /** Stop at the first hit at which this many events have been recorded. */
  readonly maxEvents?: number;
  /** Stop when the program reaches this address of its ELF. */
  readonly until?: Addr;
  /**
   * Stop where the program panics, at these addresses of its ELF: the target stands then, and the session stays open.
   */
  readonly panics?: readonly Addr[];
  /** Stop when this is aborted. */
  readonly signal?: AbortSignal;
  readonly hardware?: boolean;
  /** The target runs already: between two steps of its preparation it may run on for a moment by this. */
  readonly letRun?: LetRun | undefined;
  /** `auto` (the default): without stops if possible. */
  readonly engine?: EngineName;
  /** Each stop may damage the process: `auto` makes none where most probes need none. */
  readonly stopsHarm?: boolean | undefined;
  /** Take every stop before a kernel's last page table is in use, however many these are (`auto`). */
  readonly fromReset?: boolean;
  /** A process waits where records come faster than they are read, however long; as a machine always does. */
  readonly isLossless?: boolean;
  /** Where trampolines and the ring may be. */
  readonly scratch?: ScratchSources;
  /** Record the pollers: the stack of this many frames at the beginning of every poll. */
  readonly stackDepth?: number;
  /** The recording before, where this one goes on from what that has left. */
  readonly before?: Recording | undefined;
  /** For a machine that rsptrace started: the recording goes on after a reset. */
  readonly resetVector?: ResetVector | undefined;
  readonly functions?: FunctionOptions;
  /** How far its loader moves the kernel, where that is known before it is loaded. */
  readonly loadBias?: bigint | undefined;
  /** The guest's clock counts instructions, and each takes this long. */
  readonly nanosPerInstruction?: number | undefined;
  /** That clock follows the host's while no hart runs: `-icount` without `sleep=off`. */
  readonly clockSleeps?: boolean | undefined;
  /** What {@link record} has found out of that clock. */
  readonly counts?: InstructionClock | undefined;
  /** Drop calls of functions that last less, in guest nanoseconds. */
  readonly thresholdNs?: number;
  /** See `EnginePlanWishes`. */
  readonly returns?: boolean;
  /**
   * Connects again after the link has broken; rejects if the target has ended. Then the probes are inserted again,
   * and the trace has a gap. Without it, a broken link ends the recording.
   */
  readonly reconnect?: () => Promise<Session>;
  /** What the guest prints goes into the trace: called once with what takes it, as it comes. */
  readonly console?: ((take: (text: Uint8Array) => void) => void) | undefined;
  /** Sees every hit once its events are in the sink. */
  readonly observer?: HitObserver;
  /** Keep what was not understood yet in a file, for `rsptrace recover` if this process is killed. */
  readonly log?: LogRequest | undefined;
  /**
   * Looks at the tasks of the target where rsptrace itself ends the recording, before it is left. What it gives works
   * out, when the target runs again, which of them will not be polled again.
   */
  readonly look?: ((session: Session, program: Program) => Promise<() => Promise<readonly StuckTask[]>>) | undefined;
  /** The target stands when the recording has ended, and the session stays open. */
  readonly stays?: boolean;
  readonly logger?: Logger;
  /** Called before anything is written to the target, with what will keep probes from running without stops. */
  readonly onHurdles?: (hurdles: readonly Hurdle[]) => void;
  /** Called at a first hit, when the engine of each probe is known: anew in another program, and after a reset. */
  readonly onEngines?: (chosen: EnginesChosen) => void;
  /** Called when probes are left out from now on, because they had stopped the target too often (`auto`). */
  readonly onLeftOut?: (probes: readonly ProbeFact[]) => void;
  /** Called when nothing of ours is in the target any more, why the recording ended. Records may still be digested. */
  readonly onLeft?: (end: Recording['end']) => void;
  /**
   * By when records must be understood, as `performance.now` counts, once that is known. The rest stays in the log, for
   * `rsptrace recover`, and is missing in the trace.
   */
  readonly deadline?: (() => number | undefined) | undefined;
  /** When it is aborted, records that are not understood yet are left as behind the deadline. */
  readonly giveUp?: AbortSignal | undefined;
  /**
   * Called once if records are not understood a second after the target is left: so many are left then. How long they
   * take is not known, because a target that runs on takes any part of the core.
   */
  readonly onBacklog?: ((records: number) => void) | undefined;
  /** What to do about a time without events. `report` is called once for each; {@link Recording.quiet} has them all. */
  readonly quiet?: QuietOptions;
  /** Called once, when the guest is about to run. */
  readonly onStart?: (progress: () => Progress) => void;
}

export interface EnginesChosen {
  /** The engine of each probe. */
  readonly engines: readonly ProbeFact[];
  /** Why no probe can do without stops in this target. */
  readonly refusal: string | undefined;
  /** How the RAM of a machine of QEMU is read; undefined for other targets, and if the wire is recorded. */
  readonly ram: RamPastWire | Refusal | undefined;
}

/** RAM that is read past the wire. `source`: the file. */
type RamPastWire = Pick<GuestRam, 'source'>;

export interface Progress {
  readonly events: number;
  readonly stops: number;
  /** Events that were read out of the target's memory, without a stop. */
  readonly records: number;
  /** Those that wait for being understood. */
  readonly undigested: number;
  /** Stops and records so far: whether the program was seen to run. */
  readonly hits: number;
  /** None of the probed code was in the target's memory when the recording began. */
  readonly codeAbsent: boolean;
  /** Guest nanoseconds from the first event to the last. */
  readonly guestNs: number;
}

export interface Recording extends Progress, EnginesChosen {
  /** What kept probes from running without stops, as far as it was known beforehand or has shown itself. */
  readonly hurdles: readonly Hurdle[];
  readonly end: 'guest-ended' | 'until' | 'panicked' | 'duration' | 'max-events' | 'interrupted' | 'failed';
  readonly clock: ClockInfo;
  /** See `RecordingFacts`. */
  readonly recordsClock: string | undefined;
  /** How far the program was loaded from its own addresses. */
  readonly loadBias: bigint;
  /** Harts of the machine that its stub does not list, so that they were not traced. */
  readonly hartsUnseen: number;
  /** Stops have made its harts take long turns: see `takesTurns`. */
  readonly hartsInTurn: boolean;
  /** How the guest ended, if the stub reported it. */
  readonly stop: StopReply | undefined;
  /** What went wrong, if `end` is `failed`. Everything before is in the trace. */
  readonly error: RsptraceError | undefined;
  readonly hostMs: number;
  /** How often probes stopped the target with others that do not; undefined if nothing was recorded without stops. */
  readonly stopsBeside: number | undefined;
  /** Where tracing took time without a probe's stop. */
  readonly disturbance: Disturbance;
  /** How long the target stood while it was recorded, in milliseconds: at stops, and where memory was read. */
  readonly stoodMs: number;
  /** How long it stood from the connection to when it was left. */
  readonly standing: Pick<Standing, 'allMs' | 'longestMs'>;
  /** How long records were turned into events, in milliseconds. */
  readonly digestedMs: number;
  /** How much of that the target stood for, because stops wait for the records before them. */
  readonly heldMs: number;
  /** Stops that were understood after the target had run on, because records were before them. */
  readonly stopsQueued: number;
  /** How long it ran, in milliseconds of the host. */
  readonly ranMs: number;
  /** Where nothing was recorded, in guest nanoseconds: because of `why`, or because the link was broken. */
  readonly gaps: readonly { readonly from_ns: number; readonly to_ns: number; readonly why?: string }[];
  /** The target is a process: its harts are threads. */
  readonly isProcess: boolean;
  /** Results of probes that only count, in the order of the probes. */
  readonly tallies: readonly TallyRow[];
  /** What was watched. */
  readonly watches: readonly WatchRef[];
  /** How stacks were sampled; undefined if they were not. */
  readonly samples: SampleFacts | undefined;
  /** Where the trampolines were; undefined if every probe stopped the target. */
  readonly scratch: string | undefined;
  /** The overhead of trampolines that was subtracted from durations; undefined if it is not known. */
  readonly ownTime: OwnTime | undefined;
  /** What stops added to the guest's clock, where nothing was recorded without stops. */
  readonly leak: StopLeak | undefined;
  /** What they have left in durations. */
  readonly stopError: StopError | undefined;
  /** How often the ring of records was found full, so that the target waited. */
  readonly ringFull: number;
  /** How long its harts waited then, all together, in nanoseconds of its own clock. */
  readonly ringWaitedNs: number;
  /** Events known to be missing from the trace. */
  readonly missing: number;
  /** Of these, records that were not understood by the deadline. */
  readonly unread: number;
  /** Probes that were never inserted, because the target never loaded their code. */
  readonly neverLoaded: readonly string[];
  /** Of further programs; undefined without any. */
  readonly others: OtherCounts | undefined;
  /** Stops at a probe's address in other code; undefined without any. */
  readonly foreign: ForeignHits | undefined;
  /** A probe's place was reached, whether or not an event came of it. */
  readonly wasHit: boolean;
  /** The guest ended while its ring could only be read at stops: the ring's last records are lost. */
  readonly tailLost: boolean;
  /** Calls were open at the end that return through trampolines: these stay in the target, where `scratch` says. */
  readonly trampolinesStay: boolean;
  /** They could not be made to return past them. */
  readonly trampolinesNeeded: boolean;
  /** Functions that panic which had a breakpoint: see `panicPlaces`. */
  readonly panicPlaces: number;
  /** A counter that the kernel may read from now on, because such trampolines read it. */
  readonly openCounter: ClosedCounter | undefined;
  /** Times without events, where anybody asked for them. */
  readonly quiet: readonly Quiet[];
  /** The kernel's last page table is in use, as far as it is known when that is. */
  readonly isSettled: boolean;
  /** Where a hart was left at its last hit; undefined elsewhere. */
  readonly leftAt: LeftStop | undefined;
  /** How often the machine was reset, and booted once more. */
  readonly resets: number;
  /** Records were read past the stub: a recording of the wire does not have them. */
  readonly pastWire: boolean;
}
