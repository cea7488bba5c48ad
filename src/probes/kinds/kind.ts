import type { Architecture } from '../../arch/index.js';
import type { FutureSet, StuckTask, TaskPlaces } from '../../async/futures/index.js';
import type { Addr } from '../../base/addr.js';
import type { MemoryReader, RegisterReader } from '../../base/memory-reader.js';
import type { CallKind, CrossingKind, EventOutput, InstantKind, SpaceNumbers } from '../../calls/index.js';
import { DebugInfo } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import type { Hooked } from '../../target/unwind/index.js';
import type {
  Disturbance,
  OpenLockWait,
  ProbeFact,
  SampleFacts,
  StopError,
  TableOptions,
  TallyRow,
  TraceSink,
  WatchRef,
} from '../../trace/index.js';
import type { ExcludedFunction } from '../inlined-functions.js';
import type { ReadPlan } from '../read-plan.js';
import type { PlannedWatch, WatchPlace } from './watch/resolve.js';

/** One `--probe`, parsed. Each kind adds what its own text says. */
export interface AnyProbe {
  /** The name of its kind. */
  readonly kind: string;
  /** As the user wrote it. */
  readonly text: string;
}

/** A `--probe` cut at its first colon: `!hist(len):GLOB`. */
export interface ProbeText {
  /** As the user wrote it. */
  readonly text: string;
  /** An exclamation mark precedes it. */
  readonly excludes: boolean;
  /** The text in brackets behind the kind. */
  readonly argument: string | undefined;
  /** The text behind the colon, trimmed. */
  readonly rest: string;
}

/**
 * Which inlined polls are traced at their place inside a function. `all`: wherever that is possible. `needed`: where
 * the Future around shows nothing of them. `patched`: where a patch can do that without stops. `auto`: where one of
 * the last two holds.
 */
export type InlinedPolls = 'all' | 'auto' | 'needed' | 'patched' | 'none';

/** Whether wakes are traced with polls: `auto` only where that needs no stop. */
export type Wakes = 'auto' | 'always' | 'never';

/** A program in which probes are to be found. Its architecture is prepared. */
export interface ProbedProgram {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** Undefined for a program without debug info. */
  readonly debug: DebugInfo | undefined;
  /** Without it, `auto`. */
  readonly inlined?: InlinedPolls | undefined;
  /** Without it, `never`. */
  readonly wakes?: Wakes | undefined;
  /** Where the program's runtimes put the Futures of their tasks. */
  readonly places?: (debug: DebugInfo, futures: FutureSet) => Promise<TaskPlaces>;
}

/** The probes of one kind, resolved in a program. Each kind adds what its tracer needs. */
export interface Found {
  /** Where breakpoints go. */
  readonly addresses: readonly Addr[];
  /** Probes that match nothing, while others of the kind do. */
  readonly unmatched?: readonly string[];
  /** Functions that match and are not probed all the same, with the reason. */
  readonly excluded?: readonly ExcludedFunction[];
  /** Functions that are probed, and of which copies are inlined into others. */
  readonly inlinedToo?: readonly ExcludedFunction[];
  /** How many keys of functions it uses, from 0. */
  readonly keys?: number;
  /** Functions that run when a panic has been caught, and at no other time. */
  readonly catches?: readonly Addr[];
  /** Data that watchpoints trace: it needs no breakpoint in code, and each access stops the target. */
  readonly watches?: FoundWatches;
  /** Every hart's stack is sampled. */
  readonly samples?: FoundSamples;
  /** System calls of a process stop it, with the probe that asks for them. */
  readonly systemCalls?: { readonly of: 'all' | readonly number[]; readonly text: string };
}

/** How often stacks are sampled. */
export interface FoundSamples {
  /** Of the time that the target runs, on average. */
  readonly periodMs: number;
}

/** Places in memory whose accesses the target reports. */
export interface FoundWatches {
  readonly planned: readonly PlannedWatch[];
  /**
   * Their addresses, according to the target's memory now.
   * @throws RsptraceError `WATCH_*`, `EXPRESSION_*`
   */
  locate(memory: MemoryReader): Promise<readonly WatchPlace[]>;
}

/** The options of a recording that decide what a hit reads. */
export interface PlanWishes {
  readonly arch: Architecture;
  /** Registers that a trampoline can record. */
  readonly general: ReadonlySet<string>;
  /** Floating-point registers that can be read without a stop, up to a word. */
  readonly floats: ReadonlySet<string>;
  /** Frames of the stack that a hit records. */
  readonly stackDepth: number | undefined;
  /** Arguments and results are recorded. */
  readonly values: boolean;
  /** Every return is wanted, where it takes a stop too. */
  readonly returns?: boolean | undefined;
}

/** What a tracer is made from, in addition to its probes. */
export interface TracerContext extends ProbedProgram {
  readonly output: EventOutput;
  readonly stackDepth: number | undefined;
  /** The original of a return address that belongs to a trampoline. */
  readonly hooked: Hooked;
  /** Whose trampoline lies at an address: a function's, or one of a place inside it. */
  readonly served: (pc: bigint) => { readonly site: { readonly plan: Pick<ReadPlan, 'name' | 'address'> } } | undefined;
  /** Names the address spaces of hits. */
  readonly spaces: SpaceNumbers;
  /** See `FunctionOptions`. */
  readonly values: boolean | undefined;
  readonly maxDepth: number | undefined;
  /** A key for what only the target shows, like a function's: nothing else has it. */
  readonly nextKey: () => number;
}

/** Turns the hits of one kind into events, or counts them. Each member is for kinds that need it. */
export interface KindTracer {
  /** Entries that are matched with their returns. */
  readonly calls?: CallKind;
  /** Places where a hit is no call. */
  readonly instants?: InstantKind | readonly InstantKind[];
  /** Places at which a hart leaves whatever it runs. */
  readonly crossings?: CrossingKind;
  /** Harts change their stacks in the middle of calls: calls belong to stacks from the begin. */
  readonly switchesStacks?: true;
  /** Places that the registers of a hart name before the recording begins. */
  current?(registers: RegisterReader): readonly Addr[];
  /** The recording ends: memory shows that these tasks will not be polled again. */
  stuck?(tasks: readonly StuckTask[]): void;
  /** Names of what was asked for and cannot be seen. */
  readonly unseen?: readonly string[];
  /** Counts, to which counters in the target add. */
  readonly counts?: {
    /**
     * What the target's counters have counted, with the probe of a `PlannedCount`. Those of other kinds are ignored.
     */
    add(probe: object, words: BigUint64Array): void;
    rows(): readonly TallyRow[];
  };
}

/** What a report needs of a recording that has ended. */
export interface Outcome {
  readonly engines: readonly ProbeFact[];
  /** The target is a process: its harts are threads. */
  readonly isProcess?: boolean | undefined;
  readonly tallies: readonly TallyRow[];
  readonly watches: readonly WatchRef[];
  /** How stacks were sampled; undefined if they were not. */
  readonly samples: SampleFacts | undefined;
  /** How often probes stopped the target with others that do not; undefined if nothing was recorded without stops. */
  readonly stopsBeside?: number | undefined;
  /** What stops leave in the times of the trace, where all was recorded by stops. */
  readonly stopError?: StopError | undefined;
  /** Where tracing took time without a probe's stop. */
  readonly disturbance?: Disturbance | undefined;
  /** The target ended with events that were not read. */
  readonly tailLost?: boolean;
  /** Records that were dropped, or never finished. */
  readonly missing?: number;
}

/** What a report is to hold. */
export interface ReportWishes {
  /** Whether findings are looked for; without it they are not. */
  readonly findings?: boolean;
  /** Polls that take longer are findings. With stops too, where it is given. */
  readonly longPollNs?: number | undefined;
}

/** A kind's part of a recording's final report. */
export interface KindReport {
  /** Receives every event of the trace. */
  readonly sink?: TraceSink;
  /** Members of the `--json` object. */
  json(outcome: Outcome): object;
  /** Tables for the user, each ended by a newline. */
  tables(outcome: Outcome, options: TableOptions): readonly string[];
  /** The number of findings. */
  findings?(outcome: Outcome): number;
  /** While it is recorded: who waits for a lock, the newest wait first. */
  lockWaits?(): readonly OpenLockWait[];
}

/** The part of `--dry-run` for probes that have no engine. */
export interface KindPreview {
  /** Members of the `--json` object. */
  readonly json: object;
  /** A table for people. */
  readonly table: string | undefined;
}

/**
 * One kind of probe: its text, its places in a program, what a hit reads, and what it reports. A kind is one such
 * object in the list of `kinds/index.ts`; everything else goes over that list.
 *
 * To trace code, a kind needs `parse`, `resolve`, `plans` and `tracer`. To trace memory, `resolve` gives `watches`
 * instead. A kind sees places, system calls and memory. Signals, fork and exec are handled in `stop/process-events.ts`.
 */
export interface ProbeKind<P extends AnyProbe = AnyProbe, F extends Found = Found> {
  /** The text before the colon: `fn`. */
  readonly name: string;
  /** For `--help`: `'fn:GLOB' these functions`. */
  readonly help: string;
  /** The purpose of `NAME:PATH`, in the hint for text that is no probe: `for functions`. */
  readonly purpose?: string;
  /** It takes neither an exclamation mark nor brackets. */
  readonly isPlain?: boolean;
  /** The default if there is no probe. */
  readonly isDefault?: boolean;
  /** Its hits can record the stack (`--bt`). */
  readonly readsStacks?: boolean;
  /** It only counts: a trace has no events of it. */
  readonly onlyCounts?: boolean;
  /** @throws RsptraceError `PROBE_SYNTAX`, `EXPRESSION_SYNTAX`, `WATCH_SIZE` */
  parse(text: ProbeText): P;
  /**
   * Refuses probes that make no sense together. `asked`: the kinds of all probes.
   * @throws RsptraceError `PROBE_SYNTAX`
   */
  check?(probes: readonly P[], asked: ReadonlySet<string>): void;
  /**
   * Finds the probes in a program.
   * @throws RsptraceError `PROBE_*`, `DWARF_MISSING`, `EXPRESSION_*`, `WATCH_*`
   */
  resolve(program: ProbedProgram, probes: readonly P[]): F | Promise<F>;
  /**
   * What the hits read, for the engine without stops, or why that engine cannot read it; at least one plan per
   * address.
   */
  plans?(found: F, wishes: PlanWishes): readonly ReadPlan[];
  tracer?(found: F, context: TracerContext): KindTracer;
  /** `found`: undefined if the kind is not asked for. */
  report(found: F | undefined, wishes?: ReportWishes): KindReport;
  /** The same. For kinds whose probes have no plan. */
  preview?(found: F | undefined): KindPreview;
}

/** One kind that is asked for, and its resolved probes. */
export interface FoundKind {
  readonly kind: ProbeKind;
  readonly found: Found;
}

/**
 * The debug info of a program that cannot be probed without.
 * @throws RsptraceError `DWARF_MISSING`, `DWARF_SPLIT`
 */
export function neededDebugInfo({ debug, elf }: ProbedProgram): DebugInfo {
  return debug ?? DebugInfo.load(elf);
}
