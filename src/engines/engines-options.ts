import type { Addr } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import type { CallTracer } from '../calls/index.js';
import type { ElfFile } from '../elf/index.js';
import type { RawLog, RecordCounter, TraceTime } from '../inject/index.js';
import type { PlannedStop } from '../probes/index.js';
import type { Session } from '../rsp/index.js';
import type { Scratch, ScratchSources } from '../scratch/index.js';
import type { GuestRam, LetRun } from '../target/index.js';
import type { ProbeFact } from '../trace/index.js';
import type { EnginePlanOptions } from './engine-choice.js';
import type { InstalledFacts } from './recovered-records.js';

export interface EnginesOptions extends EnginePlanOptions {
  readonly session: Session;
  readonly scratch: ScratchSources;
  /** Between two steps of the installation: a process that runs already may run on for a moment by this. */
  readonly letRun?: LetRun | undefined;
  /** The machine's RAM, if it can be read past the wire. */
  readonly ram?: GuestRam | undefined;
  readonly elf: ElfFile;
  /** Wait for {@link Engines.settle}, because before that the program's page table is not its last one. */
  readonly settles: boolean;
  /** What the ticks of the records' counter mean; asked for at the first hit. */
  readonly counter: (scratch: Scratch) => Promise<RecordCounter>;
  /** The target's clock counts instructions, and each takes this long. */
  readonly nanosPerInstruction?: number | undefined;
  /** Two runs are to be alike: the host's time decides nothing that the target could notice. */
  readonly isRepeatable?: boolean;
  /** A process waits for room in the ring as long as this client lives, and loses no record. */
  readonly isLossless?: boolean;
  readonly tracer: CallTracer;
  readonly hartNumber: (word: bigint) => number;
  /** Takes the words of the target's counters, with the probe of a {@link PlannedCount}: once for each program. */
  readonly counted: (probe: object, words: BigUint64Array) => void;
  /** Whether open calls should end before the target is left, because something stays open for their trampolines. */
  readonly mustEnd?: (() => boolean) | undefined;
  /** Whether the target is to stay where it stands when the recording ends. */
  readonly staysHere?: (() => boolean) | undefined;
  /** Whether the target is ended as soon as it is left: nobody waits for its open calls. */
  readonly endsSoon?: (() => boolean) | undefined;
  /** Functions at which the recording ends. */
  readonly ends: readonly PlannedStop[];
  /** Plans stops at places inside functions. */
  readonly planStops: (places: readonly Addr[]) => readonly PlannedStop[];
  /** Called when probes are left out from now on, because they had stopped the target too often. */
  readonly leftOut?: ((probes: readonly ProbeFact[]) => void) | undefined;
  /** A process of Linux, with what only the recording knows about it. */
  readonly inProcess?: {
    /** The number of a thread by the stub's name for it. */
    readonly threadNumber: (id: string) => number;
    readonly traceTime: TraceTime;
  };
  /** Keeps records, and what is needed to understand them; asked for when trampolines are installed. */
  readonly log?: (() => InstallationLog | undefined) | undefined;
  /** A number of events ends the recording, so they are counted soon, although the target waits for that. */
  readonly isCounted?: boolean;
  /** Somebody sees events as they come: records wait less for a core. */
  readonly isShown?: boolean | undefined;
  readonly logger?: Logger;
}

/** What the ticks of records mean from now on, in nanoseconds. */
export interface CounterScale {
  /** One moment in both. */
  readonly ticks: number;
  readonly nanos: number;
  readonly nanosPerTick: number;
  /** See {@link RecordCounter}. */
  readonly behindStops?: boolean | undefined;
}

/** Where an installation's records wait, and what they need to be understood without this process. */
export interface InstallationLog {
  readonly raw: RawLog;
  installed(facts: InstalledFacts): void;
  clock(scale: CounterScale): void;
}
