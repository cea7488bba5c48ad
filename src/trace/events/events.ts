import type { Addr } from '../../base/addr.js';
import type { SampleFacts } from './sample-facts.js';

/**
 * The event model: everything that formats, tables and checks know. The source of events is not known here, so a
 * recording can be reported on without a stub. Times are guest nanoseconds since the trace's first event, below 2^53
 * (104 days).
 */
export type GuestNanos = number & { readonly __guestNanos: true };

/** The clock that a trace's times come from. */
export interface ClockInfo {
  /** `riscv-time`, `riscv-mtime`, `x86-hpet`, `x86-acpi-pm`, or `running-intervals`: the host's while the guest ran. */
  readonly name: string;
  /** Nanoseconds a tick. */
  readonly resolutionNs: number;
  /** True if it stands still while the guest is stopped: the guest's own clock, not the host's. */
  readonly guest: boolean;
  /** It counts instructions, as under QEMU's -icount, and each takes so long. */
  readonly nanosPerInstruction?: number | undefined;
}

export type FutureKind = 'async_fn' | 'async_block' | 'async_closure' | 'impl';

/** A type of Future as traces name it; one object an instance, so identity is a key. */
export interface FutureRef {
  readonly key: number;
  /** `labkern::work::level3`: no generic arguments, no `{async_fn#0}`. */
  readonly future: string;
  /** The full type name as DWARF spells it, with generic arguments. */
  readonly instance: string;
  readonly kind: FutureKind;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** Bytes, if they are known. */
  readonly size?: number | undefined;
  /** The compiler inlined its poll at some places, so not every poll is visible. */
  readonly inlined?: boolean | undefined;
  /** The same of the function that drops it, or it has none that is called. */
  readonly hidesDrops?: boolean | undefined;
  /** It is one of these, whose poll functions the compiler merged, and nothing says which. Known while recording. */
  readonly oneOf?: readonly FutureRef[] | undefined;
}

/** A state of a compiler-made Future: `Unresumed`, `Returned`, `Panicked`, `Suspend0`...; where it awaits. */
export interface StateRef {
  readonly name: string;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** One link of an await chain: a Future that the one before it awaits. */
export interface AwaitLink {
  /** Undefined if its type implements Future in a way that DWARF does not describe. */
  readonly future: FutureRef | undefined;
  readonly typeName: string;
  /** Its address; undefined if the pointer to it was not read. */
  readonly address: Addr | undefined;
  readonly state: StateRef | undefined;
}

/** What a task's runtime knows of it. Members that the runtime does not keep are left out. */
export interface TaskAbout {
  readonly runtime: string;
  readonly id?: number;
  readonly name?: string;
  /** Where it was spawned: `src/main.rs:12:5`. */
  readonly spawned?: string;
}

/** The outermost Future of a poll: what an executor polls. One object per lifetime, so identity is a key. */
export interface RootRef {
  readonly key: number;
  readonly future: FutureRef;
  readonly address: Addr;
  /** As of a thread: there may be another one at the same address of another space. */
  readonly space?: Addr | undefined;
  readonly about?: TaskAbout | undefined;
  /** It is no task, but part of one that is not known: no poll of the Future around it was seen. */
  readonly isPart?: boolean | undefined;
}

/** A function as traces name it; one object a function, so identity is a key. */
export interface FunctionRef {
  readonly key: number;
  /** `labkern::work::deep0`, `<labkern::work::Disk as labkern::work::BlockDev>::read`: no generic arguments. */
  readonly name: string;
  /** The full name, with generic arguments, as the mangled name spells it. */
  readonly instance: string;
  readonly address: Addr;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** An argument from the registers at the entry, as Rust would print it; an address if it lies in memory. */
export interface ArgumentValue {
  readonly name: string;
  readonly value: string;
}

export type PollResult = 'ready' | 'pending' | 'panicked' | 'unknown';

interface At {
  readonly time: GuestNanos;
  /** The hart's number in the trace, from 0. */
  readonly hart: number;
  readonly root: RootRef;
  readonly future: FutureRef;
  readonly address: Addr;
}

/** A function on a stack. */
export interface StackEntry {
  readonly function: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** What begins. */
interface Beginning {
  /** Its thread, which may wait while others run, and continue on another hart. Undefined if only harts are known. */
  readonly thread?: ThreadRef | undefined;
  /** The innermost poll or call around it that was emitted, and was open. */
  readonly around?: AnyBegin | undefined;
  /** Polls and calls around it. */
  readonly depth: number;
}

/** What ends that has begun. It may end on another hart than where it began. */
interface Ending<B extends AnyBegin> {
  /** Undefined if the begin was not seen. */
  readonly begin?: B | undefined;
  readonly thread?: ThreadRef | undefined;
  /** As it began. */
  readonly depth: number;
  /** When it began. */
  readonly began: GuestNanos;
}

export interface PollBegin extends At, Beginning {
  readonly type: 'poll-begin';
  readonly state: StateRef | undefined;
  /** The poller, if stacks were asked for: the poll function first, then its callers, including inlined ones. */
  readonly stack?: readonly StackEntry[] | undefined;
}

export interface PollEnd extends At, Ending<PollBegin> {
  readonly type: 'poll-end';
  /** It was emitted as lost, too early. */
  readonly wasLost?: boolean | undefined;
  readonly result: PollResult;
  readonly state: StateRef | undefined;
  /** What the Future awaits now, outermost first; empty when ready. */
  readonly chain: readonly AwaitLink[];
}

/** A Future's state after something that changed it. */
export interface StateChange extends At {
  readonly type: 'state';
  readonly from: StateRef | undefined;
  readonly to: StateRef | undefined;
  /** Derived from an outer Future's bytes, because this one's poll was inlined. */
  readonly derived: boolean;
}

/** A poll that the compiler inlined, so that no breakpoint saw it: derived from the bytes of the outer Future. */
export interface DerivedPoll extends At {
  readonly type: 'derived-poll';
  readonly result: PollResult;
  readonly state: StateRef | undefined;
}

/** A poll whose end was not seen: it was left in an unknown way, or cut off by the end of the trace. */
export interface PollLost extends At, Ending<PollBegin> {
  readonly type: 'poll-lost';
}

/** A thread of the target, where threads are known by their stacks; one object a stack, so identity is a key. */
export interface ThreadRef {
  readonly key: number;
  /** The lowest address of its stack. */
  readonly stack: Addr;
  /** For a program that a kernel runs: the physical address of its page tables' root. */
  readonly space?: Addr | undefined;
}

interface OfCall {
  readonly time: GuestNanos;
  readonly hart: number;
  readonly function: FunctionRef;
}

/** A function is entered. */
export interface CallBegin extends OfCall, Beginning {
  readonly type: 'call-begin';
  /** In the order of the source; those that are not in registers are left out. */
  readonly arguments: readonly ArgumentValue[];
}

/** It has returned. */
export interface CallEnd extends OfCall, Ending<CallBegin> {
  readonly type: 'call-end';
  /** It was emitted as lost, too early. */
  readonly wasLost?: boolean | undefined;
  /** What it returned, if that is in registers. */
  readonly result?: string | undefined;
}

/**
 * A call whose return was not seen: it never returns, was unwound, or was cut off by the end of the trace. Or nothing
 * observes returns of the function: then this comes where it began.
 */
export interface CallLost extends OfCall, Ending<CallBegin> {
  readonly type: 'call-lost';
  /** Nothing observes returns of the function. Known while recording. */
  readonly entryOnly?: true | undefined;
}

export type AnyBegin = PollBegin | CallBegin;
export type AnyEnd = PollEnd | PollLost | CallEnd | CallLost;
export type CallEvent = CallBegin | CallEnd | CallLost;

/** Which accesses are watched: reads, writes, both. */
export type WatchAccess = 'r' | 'w' | 'rw';

/** A place in memory that is watched; one object a place, so identity is a key. */
export interface WatchRef {
  readonly key: number;
  /** The user's text: `labkern::exec::POLLS`, `0x80001000,8`. */
  readonly name: string;
  /** What the target reports; not every target can report reads alone. */
  readonly access: WatchAccess;
  /** What was asked for. */
  readonly asked: WatchAccess;
  readonly address: Addr;
  /** Bytes: 1, 2, 4 or 8. */
  readonly size: number;
  /** The full type name as DWARF spells it. */
  readonly type: string;
}

/** A place that is watched was read or written. */
export interface WatchHit {
  readonly type: 'watch';
  readonly time: GuestNanos;
  readonly hart: number;
  readonly watch: WatchRef;
  /** `access`: a read, or a write of the same value, which the target does not report apart. */
  readonly access: 'read' | 'write' | 'access';
  /** The old value, as Rust would print it; undefined for a read, and if it could not be read. */
  readonly old: string | undefined;
  /** The value after the access; for a read, the value that was read. */
  readonly value: string | undefined;
  /** The value as a number, if it is one. */
  readonly number: number | undefined;
  /** Whether the bytes differ from those before; undefined for a read, and if they could not be read. */
  readonly changed: boolean | undefined;
  /** The instruction, or the next one if the target stops after the access. */
  readonly pc: Addr;
  /** The function that accessed: among those inlined into each other there, the innermost outside of Rust's library. */
  readonly by: StackEntry;
  /** All of these functions, the innermost first. */
  readonly inlined: readonly StackEntry[];
}

/** A place in the code that a probe names; one object a place, so identity is a key. */
export interface PlaceRef {
  readonly key: number;
  /** The user's text: `src/work.rs:42`. */
  readonly name: string;
  /** The kind of probe: a category of the trace's formats. */
  readonly category: string;
  readonly address: Addr;
  /** The function there, the innermost of those that are inlined into each other. */
  readonly by: StackEntry;
}

/** A hart reached a place: an instant, which neither begins nor ends anything. */
export interface PlaceHit {
  readonly type: 'place';
  readonly time: GuestNanos;
  readonly hart: number;
  readonly place: PlaceRef;
}

/** A waker was used: the executor is to poll the task again. */
export interface Wake {
  readonly type: 'wake';
  readonly time: GuestNanos;
  readonly hart: number;
  /** What the waker points to, as the executor knows its task. */
  readonly waker: Addr;
  /** The task that is woken; undefined if no poll of it was seen, or nothing says which it is. */
  readonly root: RootRef | undefined;
  /** The task whose poll was open there; undefined if none was: an interrupt's handler, or other code. */
  readonly by: RootRef | undefined;
  /** The function that used the waker: among those inlined there, the innermost outside of Rust's library. */
  readonly caller: StackEntry;
}

/** A function of sampled stacks; one object a function, so identity is a key. */
export interface SampledFrame {
  readonly name: string;
  readonly instance: string;
  readonly address: Addr | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** What a hart ran when a sampling profile stopped it; or a task's wait, in an off-CPU profile. */
export interface Sample {
  readonly type: 'sample';
  readonly time: GuestNanos;
  readonly hart: number;
  /** The innermost first, with those that are inlined. Frames without a function name their kind: `[firmware]`. */
  readonly stack: readonly SampledFrame[];
  /** What a sample stands for, in nanoseconds: the sampling period, or the length of a wait. */
  readonly periodNs: number;
  /** Of an off-CPU profile: what the task awaits, and on top of that who woke it. */
  readonly isWait?: true | undefined;
}

/** A Future was dropped before it was ready. */
export interface Cancelled {
  readonly type: 'cancelled';
  readonly time: GuestNanos;
  readonly hart: number;
  /** The task that it was, or belonged to; undefined if no poll of it was seen. */
  readonly root: RootRef | undefined;
  readonly future: FutureRef;
  readonly address: Addr;
  /** Where it waited; undefined if only its task's polls have told that it was not ready. */
  readonly state: StateRef | undefined;
  /** The task whose poll was open there; undefined if none was. */
  readonly by: RootRef | undefined;
  /** Who dropped it: among the functions inlined there, the innermost outside of Rust's library. */
  readonly caller: StackEntry;
  /**
   * Nothing has shown the drop itself, which was some time before. `replaced`: another Future is polled for the first
   * time at its address. `holder-ended`: the Future that held it has ended.
   */
  readonly implied?: 'replaced' | 'holder-ended' | undefined;
}

/**
 * At the end of the recording memory has shown that a task will not be polled again. `deadlock`: it waits for tasks
 * that wait for it. `likely-deadlock`: the same, unless somebody else can end a wait. `lost-wake`: no waker of it is
 * left.
 */
export interface Stuck {
  readonly type: 'stuck';
  readonly time: GuestNanos;
  /** Undefined if no poll of it was seen. */
  readonly root: RootRef | undefined;
  readonly future: FutureRef;
  readonly address: Addr;
  readonly why: 'deadlock' | 'likely-deadlock' | 'lost-wake';
  /** In words: `waits for Mutex at 0x80208050, held by task 3 (app::worker, src/work.rs:51)`. */
  readonly wait: string;
  /** The await in the program's own code. */
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** Events in between are missing. If the link to the stub was broken, open polls are emitted as lost. */
export interface Gap {
  readonly type: 'gap';
  /** Undefined if the link to the stub was broken. */
  readonly why?: string | undefined;
  /** The last known time before, and the time at which recording continued. */
  readonly from: GuestNanos;
  readonly to: GuestNanos;
}

/** The machine was reset and boots again. Everything open was emitted as lost before. */
export interface Reset {
  readonly type: 'reset';
  readonly time: GuestNanos;
}

/** A line that the guest has written to its console. It stands behind the last event that is known to be before it. */
export interface ConsoleLine {
  readonly type: 'console';
  readonly time: GuestNanos;
  readonly text: string;
}

export type TraceEvent =
  | PollBegin
  | PollEnd
  | StateChange
  | DerivedPoll
  | PollLost
  | CallEvent
  | WatchHit
  | PlaceHit
  | Wake
  | Sample
  | Cancelled
  | Stuck
  | Gap
  | Reset
  | ConsoleLine;

/** When it was; of a gap, when recording continued. */
export function timeOf(event: TraceEvent): GuestNanos {
  return event.type === 'gap' ? event.to : event.time;
}

export interface HartInfo {
  readonly number: number;
  readonly name: string;
}

/** What is known at the first event, with nothing of the host: two runs of a deterministic guest give the same. */
export interface TraceInfo {
  readonly program: string;
  readonly buildId: string | undefined;
  readonly arch: string;
  readonly clock: ClockInfo;
  /** The target is a process: its harts are threads. Undefined if not. */
  readonly isProcess?: boolean | undefined;
  readonly harts: readonly HartInfo[];
}

/** What is known at the end about how a recording was made. */
export interface TraceFacts {
  readonly probes: readonly ProbeFact[];
  /** Undefined if it is not known; then durations include it. */
  readonly ownTime?: OwnTime | undefined;
  readonly recording?: RecordingFacts | undefined;
  /** The end of what was recorded is missing: its trace was cut off, or could not be read to its end. */
  readonly isCut?: boolean | undefined;
}

/** For a trace whose end is missing, and with it what is known at the end. */
export const endMissing: TraceFacts = { probes: [], isCut: true };

/** How a recording went. Nothing of the host, except for samples: two runs of a deterministic guest have the same. */
export interface RecordingFacts {
  /** Why it ended: `guest-ended`, `duration`, ... */
  readonly end: string;
  /** The RSP server: `QEMU`. */
  readonly stub: string | undefined;
  readonly events: number;
  /** Events that stopped the target, and those that did not. */
  readonly stops: number;
  readonly records: number;
  /** Records that were written and could not be read. */
  readonly missing: number;
  /** Times that another program's code came to a probe's address. */
  readonly foreignHits: number;
  /** Probes whose code was never loaded. */
  readonly neverLoaded: readonly string[];
  /** The guest ended with records that were not read. */
  readonly tailLost: boolean;
  /** A flight recorder's trace: events before its first one that it does not have. */
  readonly leftOut?: number | undefined;
  /** Why all times are upper bounds: stops have added to them what nothing says. Undefined if they are not. */
  readonly timesAtMost?: string | undefined;
  /** Stops beside probes that need none: they have added to the times of the calls that they are in. */
  readonly stopsBeside?: number | undefined;
  readonly stoppedAt?: readonly string[] | undefined; // See `Disturbance`, in guest nanoseconds.
  /** How often the ring of records was found full, so that the target waited; undefined if it never was. */
  readonly ringFull?: number | undefined;
  /** How long its harts waited then, all together; undefined if that is not known. */
  readonly ringWaitedNs?: number | undefined;
  /** How stacks were sampled beside probes. */
  readonly samples?: SampleFacts | undefined;
}

/** The guest nanoseconds of overhead that durations leave out: the least and the most for one event, and the total. */
export interface OwnTime {
  readonly leastNs: number;
  readonly mostNs: number;
  readonly totalNs: number;
}

/**
 * The engine of a probe: `target` without stops, `stop` with one at each hit. `none`: the probe was left out, because
 * it would stop a target that must not be stopped. `why`: why not without stops.
 */
export interface ProbeFact {
  readonly name: string;
  /** The function or the Future that it is on, where its name says more: of a poll that was inlined. */
  readonly subject?: string | undefined;
  readonly address: Addr;
  readonly engine: 'target' | 'stop' | 'none';
  /** Why not `target`. */
  readonly why: string | undefined;
  /** Of `target`: what is done to the target's code, and what is known that allows it. */
  readonly proof?: string | undefined;
  /** What the engine without stops does not see of it. */
  readonly partly?: string | undefined;
  /** Nobody asked for it by itself, and it is left out rather than have the target stop for it: `wakes`, `drops`. */
  readonly extra?: string | undefined;
}

/** Takes events: a file format, a table. Synchronous, because events come in bursts while the guest runs. */
export interface TraceSink {
  begin(info: TraceInfo): void;
  event(event: TraceEvent): void;
  /** A hart seen for the first time after `begin`. */
  hart(hart: HartInfo): void;
  /** Writes buffered events: called before the guest runs for long, and at least every 200 ms. */
  flush(): void;
  /** `facts`: undefined if nothing was recorded. */
  end(facts?: TraceFacts): void;
}
