import type { Addr } from '../base/addr.js';
import type { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import type { EngineName, ScratchSources } from '../engines/index.js';
import type { ClockName, ResetVector } from '../facts/index.js';
import type { FunctionOptions, HitObserver } from '../probes/index.js';
import type { Session, StopReply } from '../rsp/index.js';
import type { ClockInfo, OwnTime, ProbeFact, TallyRow, TraceSink, WatchRef } from '../trace/index.js';
import type { Program } from './program.js';

export interface RecordOptions {
  readonly session: Session;
  readonly program: Program;
  readonly sink: TraceSink;
  readonly clock?: ClockName;
  /** Ticks a second of riscv's `time`; 10 MHz on QEMU's virt machine. */
  readonly timebaseHz?: number;
  /** Stop after this long, in milliseconds of the host. */
  readonly durationMs?: number;
  /** Stop at the first hit at which this many events have been recorded. */
  readonly maxEvents?: number;
  /** Stop when the program comes to this address, counted as its ELF counts. */
  readonly until?: Addr;
  /** Stop when this is aborted. */
  readonly signal?: AbortSignal;
  readonly hardware?: boolean;
  /** `auto` (the default): without stops where that can be done. */
  readonly engine?: EngineName;
  /** Where trampolines and the ring may lie. */
  readonly scratch?: ScratchSources;
  /** Record who polls: the stack of so many frames at every poll's begin. */
  readonly stackDepth?: number;
  /** Of a machine that we started: it is traced on when it was reset. */
  readonly resetVector?: ResetVector | undefined;
  readonly functions?: FunctionOptions;
  /** The guest's clock counts instructions, each of which takes so long. */
  readonly nanosPerInstruction?: number | undefined;
  /** Leave out calls of functions that last less, in guest nanoseconds. */
  readonly thresholdNs?: number;
  /**
   * Connects again after the link has broken; rejects when the target is not there any more. Then the probes are planted again,
   * and the trace has a gap. Without it, a link that breaks ends the recording.
   */
  readonly reconnect?: () => Promise<Session>;
  /** Sees every hit once its events are in the sink. */
  readonly observer?: HitObserver;
  /** The target stands when the recording has ended, and the session stays open. */
  readonly stays?: boolean;
  readonly logger?: Logger;
  /** Called once, when the guest is about to run. */
  readonly onStart?: (progress: () => Progress) => void;
}

export interface Progress {
  readonly events: number;
  readonly stops: number;
  /** Events that were read out of the target's memory, without a stop. */
  readonly records: number;
  /** Stops and records so far: whether the program was seen to run. */
  readonly hits: number;
  /** None of the code that is probed was in the target's memory when the recording began. */
  readonly codeAbsent: boolean;
  /** Guest nanoseconds from the first event to the last. */
  readonly guestNs: number;
}

export interface Recording extends Progress {
  readonly end: 'guest-ended' | 'until' | 'duration' | 'max-events' | 'interrupted' | 'failed';
  readonly clock: ClockInfo;
  /** How the guest ended, where the stub said so. */
  readonly stop: StopReply | undefined;
  /** What went wrong, when `end` is `failed`. What came before is in the trace. */
  readonly error: RsptraceError | undefined;
  readonly hostMs: number;
  /** What carried each probe out. */
  readonly engines: readonly ProbeFact[];
  /** Where the link was broken, in guest nanoseconds. */
  readonly gaps: readonly { readonly from_ns: number; readonly to_ns: number }[];
  /** What was only counted, in the order of the probes. */
  readonly tallies: readonly TallyRow[];
  /** What was watched. */
  readonly watches: readonly WatchRef[];
  /** Where the trampolines lay; undefined where every probe stopped the target. */
  readonly scratch: string | undefined;
  /** What trampolines took of the guest's time and was taken out of durations; undefined where it is not known. */
  readonly ownTime: OwnTime | undefined;
  /** Events known to be missing from the trace. */
  readonly missing: number;
  /** Probes that were never planted, because the target never had their code. */
  readonly neverLoaded: readonly string[];
  /** Stops at a probe's address in other code, as another address space has it: not recorded. */
  readonly foreignHits: number;
  /** The guest ended with a ring that could only be read at stops: what was in it is lost. */
  readonly tailLost: boolean;
  /** How often the machine was reset, and booted once more. */
  readonly resets: number;
  /** Records were read past the stub: a recording of the wire does not have them. */
  readonly pastWire: boolean;
}
