// What is known of a whole trace.
import { type Addr, addr, hex } from '../../base/addr.js';
import { among, list, optional, type Read, shaped, text, word } from '../../base/json-shape.js';
import type { SampleFacts } from './sample-facts.js';

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
  /** Futures that were asked for and of which no poll can be seen: the compiler inlined them. */
  readonly unseen?: readonly string[] | undefined;
  /** A flight recorder's trace: events before its first one that it does not have. */
  readonly leftOut?: number | undefined;
  /** The guest's counter from which records without stops have their times; undefined if it is the trace's clock. */
  readonly recordsClock?: string | undefined;
  /** Why all times are upper bounds: stops have added to them what nothing says. Undefined if they are not. */
  readonly timesAtMost?: string | undefined;
  /** Stops beside probes that need none: they have added to the times of the calls that they are in. */
  readonly stopsBeside?: number | undefined;
  readonly stoppedAt?: readonly string[] | undefined; // See `Disturbance`, in guest nanoseconds.
  /** How often the ring of records was found full, so that the target waited; undefined if it never was. */
  readonly ringFull?: number | undefined;
  /** How long its harts waited then, all together; undefined if that is not known. */
  readonly ringWaitedNs?: number | undefined;
  /** How stacks were sampled where there are probes too. */
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
  /** What other probes at the same address are on: the function, and the Future whose poll it is. */
  readonly others?: readonly Pick<ProbeFact, 'name' | 'subject'>[] | undefined;
  readonly address: Addr;
  readonly engine: 'target' | 'stop' | 'none';
  /** Why not `target`. */
  readonly why: string | undefined;
  /**
   * What has left it out, although it may stop. `stops`: it stopped the target too often. `stub`: that has no
   * breakpoint for it. `number`: there are too many like it. `harm`: each stop may do some.
   */
  readonly leftOutBy?: 'stops' | 'stub' | 'number' | 'harm' | undefined;
  /** Of `target`: what is done to the target's code, and what is known that allows it. */
  readonly proof?: string | undefined;
  /** What the engine without stops does not see of it. */
  readonly partly?: string | undefined;
  /** Of a function whose calls are counted without durations: why only a stop could observe its return. */
  readonly unseenReturn?: string | undefined;
  /** Nobody asked for it by itself, and it is left out rather than have the target stop for it: `wakes`, `drops`. */
  readonly extra?: string | undefined;
}

/** A fact of a probe as JSON has it: with its address as text. */
export type SavedProbe = Omit<ProbeFact, 'address'> & { readonly address: string };

export const savedProbe: Read<SavedProbe> = shaped<SavedProbe>({
  ...{ name: text, subject: optional(text), address: word, engine: among('target', 'stop', 'none') },
  ...{ why: optional(text), leftOutBy: optional(among('stops', 'stub', 'number', 'harm')), proof: optional(text) },
  others: optional(list(shaped<Pick<ProbeFact, 'name' | 'subject'>>({ name: text, subject: optional(text) }))),
  ...{ partly: optional(text), unseenReturn: optional(text), extra: optional(text) },
});

/** In one order, so that a trace that is read and written again has the same bytes. */
export function probeJson(probe: ProbeFact): SavedProbe {
  const { name, subject, others, engine, why, leftOutBy, proof, partly, unseenReturn, extra } = probe;
  const address = hex(probe.address);
  return { name, subject, address, engine, why, leftOutBy, proof, partly, unseenReturn, extra, others };
}

export function probeFrom(saved: SavedProbe): ProbeFact {
  return { ...saved, address: addr(BigInt(saved.address)) };
}
