import type { Architecture } from '../arch/index.js';
import { addr, hex } from '../base/addr.js';
import type { CallTracer } from '../calls/index.js';
import {
  type AddedSteps,
  entryOnly,
  planFormats,
  RecordDispatcher,
  remembered,
  type ServedCode,
  type Site,
  type TimeScale,
  TrampolineOverhead,
  threadId,
  withThreadWords,
} from '../inject/index.js';
import type { OwnTime } from '../trace/index.js';
import { type EnginePlanOptions, recordSources } from './engine-choice.js';

/** What the records of an installation need to be understood: plain data, which a file can keep. */
export interface InstalledFacts {
  /** log2 of the bytes of a record's slot. */
  readonly slotShift: number;
  readonly harts: number;
  /** A process of Linux: how its threads are told apart. */
  readonly threads?:
    | { readonly offset: number; readonly free?: number | undefined; readonly process?: string | undefined }
    | undefined;
  /** The trampolines' own time was subtracted: what they add. */
  readonly ownTime?: { readonly nanosPerInstruction: number; readonly added: readonly AddedSteps[] } | undefined;
  readonly sites: readonly SiteFacts[];
  /** Where their trampolines are, in the order of memory. */
  readonly code?: readonly CodeFacts[] | undefined;
}

/** Code of the trampolines of a probe, by its index in the plan. */
interface CodeFacts {
  readonly index: number;
  readonly address: string;
  readonly length: number;
}

/**
 * A probe by its index in the plan, its address, the bytes of its two records, and whether its returns are observed.
 */
interface SiteFacts {
  readonly index: number;
  readonly address: string;
  readonly entry: number;
  readonly exit: number;
  readonly returns: boolean;
}

export function siteFacts({ index, plan, entry, exit }: Site): SiteFacts {
  return { index, address: hex(plan.address), entry: entry.size, exit: exit.size, returns: plan.seesReturn };
}

export function codeFacts({ site: { index }, address, length }: ServedCode): CodeFacts {
  return { index, address: hex(address), length };
}

interface RecoveredOptions {
  readonly plan: EnginePlanOptions;
  readonly facts: InstalledFacts;
  readonly tracer: CallTracer;
  readonly time: TimeScale;
  /** Trampolines' time that was subtracted before. */
  readonly earlier: OwnTime | undefined;
  /** The number of the hart that a record names. */
  readonly hartNumber: (word: bigint) => number;
  /** The number of a thread by the stub's name for it. */
  readonly threadNumber: (id: string) => number;
}

export interface RecoveredRecords {
  readonly dispatcher: RecordDispatcher;
  /** The trampolines' own time, if it is subtracted. */
  readonly own: TrampolineOverhead | undefined;
  readonly served: readonly ServedCode[];
}

/** Understands the records of an installation that is gone. Undefined if they are not of this program and plan. */
export function recoveredRecords(options: RecoveredOptions): RecoveredRecords | undefined {
  const { plan, facts, tracer, time } = options;
  const sites = sitesOf(plan, facts);
  if (sites === undefined) return undefined;
  const { threads } = facts;
  const hartNumber = threads
    ? remembered((word) => options.threadNumber(threadId(threads.process, word)))
    : options.hartNumber;
  const arch: Architecture = plan.arch;
  const own = ownTime(options, sites);
  const dispatcher = new RecordDispatcher({ arch, tracer, time: own?.over(time) ?? time, hartNumber }, sites);
  return { dispatcher, own, served: servedOf(facts, sites) };
}

function servedOf({ code = [] }: InstalledFacts, sites: readonly Site[]): readonly ServedCode[] {
  const byIndex = new Map(sites.map((site) => [site.index, site]));
  return code.flatMap(({ index, address, length }) => {
    const site = byIndex.get(index);
    return site ? { site, address: addr(BigInt(address)), length } : [];
  });
}

function ownTime({ plan, facts, earlier }: RecoveredOptions, sites: readonly Site[]): TrampolineOverhead | undefined {
  const { probeCode } = plan.arch;
  if (!facts.ownTime || !probeCode) return undefined;
  const { nanosPerInstruction, added } = facts.ownTime;
  const own = new TrampolineOverhead(nanosPerInstruction, earlier);
  own.learn(probeCode, sites, added);
  return own;
}

function sitesOf(plan: EnginePlanOptions, { sites: wanted, threads, slotShift }: InstalledFacts): Site[] | undefined {
  const sources = recordSources(plan);
  if (sources === undefined) return undefined;
  const all = planFormats(plan.plans, sources);
  const found = wanted.map(({ index, address, entry, exit, returns }) => {
    const site = all[index];
    const isSame = site?.plan.address === addr(BigInt(address)) && site.entry.size === entry && site.exit.size === exit;
    if (!isSame || Math.max(entry, exit) > 2 ** slotShift) return undefined;
    return returns ? site : { ...site, plan: entryOnly(site.plan) };
  });
  if (found.some((site) => site === undefined)) return undefined;
  const sites = found.filter((site) => site !== undefined);
  if (!threads) return sites;
  const { offset, free, process } = threads;
  return withThreadWords(sites, { offset, free, process, id: (word) => threadId(process, word) });
}
