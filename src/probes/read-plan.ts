import type { Condition, Counted, FrameNote, InnerTrampoline } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { FunctionProbe } from './describer.js';

/** Bytes at a pointer. */
export interface PlannedLoad {
  readonly offset: number;
  readonly size: 1 | 2 | 4 | 8;
}

/** A size that one load can have; undefined for any other. */
export function loadSize(size: number): PlannedLoad['size'] | undefined {
  return size === 1 || size === 2 || size === 4 || size === 8 ? size : undefined;
}

/** The loads that fetch these bytes of an object, each aligned, to `align` at most. */
export function loadsOf(start: number, length: number, align = 8): PlannedLoad[] {
  const loads: PlannedLoad[] = [];
  for (let at = start; at < start + length; ) {
    const fits = (each: number): boolean => each <= align && at % each === 0 && at + each <= start + length;
    const size = ([8, 4, 2, 1] as const).find(fits) ?? 1;
    loads.push({ offset: at, size });
    at += size;
  }
  return loads;
}

/** A pointer that the program's own types declare as a reference, and what is read behind it. */
export interface PlannedReads {
  /** The register that holds the pointer at the probe's entry. */
  readonly pointer: string;
  /**
   * The object is reached through references: where each of them lies in what the one before points to. What they lie
   * in is read too, by reads of its own.
   */
  readonly through?: readonly number[];
  /** The object begins so many bytes behind what is pointed to; 0 unless given. */
  readonly from?: number;
  readonly align: number;
  /** Bytes of the object. */
  readonly size: number;
  readonly loads: readonly PlannedLoad[];
}

/** A word in a register; or in an object that references lead to from there. */
export interface PlannedWord {
  readonly register: string;
  readonly behind?: { readonly through: readonly number[]; readonly offset: number };
}

/** Elements one behind the other, by a pointer and their number: a text, a slice. The types declare them valid. */
export interface PlannedExtent {
  readonly pointer: PlannedWord;
  readonly count: PlannedWord;
  /** log2 of an element's bytes. */
  readonly shift: number;
  /** The most bytes that are read. */
  readonly bytes: number;
}

/** A place inside a function, not its entry: its hits begin and end no call. */
export interface InnerPlace {
  /** Whole instructions around it that a patch may replace: control enters them at the first one only. */
  readonly window: PatchWindow;
  /** Pointers that other places noted. Reads name them as {@link noteName} does. */
  readonly taken: readonly FrameNote[];
  readonly noted: InnerTrampoline['noted'];
  /** Places with a number in common are either all served without stops, or none is. */
  readonly groups: readonly number[];
}

/** Instructions that a patch may replace. */
export interface PatchWindow extends CodePiece {
  /** See `InnerPatch`. */
  readonly free: string | undefined;
}

export interface CodePiece {
  readonly address: Addr;
  readonly length: number;
}

/** Stands for a register in reads behind a noted pointer. */
export function noteName({ of }: FrameNote): string {
  return `noted:${of}`;
}

/** What counters in the target count of a probe. */
export type PlannedCount = Counted & {
  /** A call for which one of these does not hold is not counted. */
  readonly when: readonly Condition[];
  /** The kind of the probe knows its own by this object. */
  readonly probe: object;
};

/** The code that an engine without stops analyses. */
export function codeOf({ inside, address, codeSize }: Pick<ReadPlan, 'inside' | 'address' | 'codeSize'>): CodePiece {
  return inside?.window ?? { address, length: codeSize };
}

/**
 * Everything that a probe's two hits will read, known before the first one, for an engine that cannot ask again. The
 * engine that stops reads more (whole objects), because a longer read costs it nothing.
 */
export interface ReadPlan {
  readonly address: Addr;
  /** Bytes of the function's code. */
  readonly codeSize: number;
  readonly name: string;
  /** See `ProbeFact`. */
  readonly subject?: string | undefined;
  readonly others?: readonly Pick<ReadPlan, 'name' | 'subject'>[];
  /** Registers at the entry. */
  readonly entryRegisters: readonly string[];
  readonly entryReads: readonly PlannedReads[];
  /** Its words are among the registers and reads. */
  readonly entryExtents?: readonly PlannedExtent[];
  readonly exit: {
    /** Registers whose entry values the exit needs. */
    readonly keep: readonly string[];
    readonly registers: readonly string[];
    readonly reads: readonly PlannedReads[];
    /** In registers, as they are when it has returned. */
    readonly extents?: readonly PlannedExtent[];
  };
  /** Where a poll inside this one, with a probe of its own, finds what this one's Future holds. */
  readonly outer: PlannedReads | undefined;
  /** The poll around this one matters: its Future's bytes are read at the entry too. */
  readonly readsOuter: boolean;
  /** The compiler certainly keeps nothing in a scratch register across a call of this function. */
  readonly scratchIsFree: boolean;
  /** Why only a stop can read all of it. */
  readonly needsStop: string | undefined;
  /** The user has asked for something that needs a stop at each hit. */
  readonly stopIsAsked?: boolean;
  /** What a trampoline does not read of it, and a stop would; undefined if it reads all. */
  readonly partly?: string | undefined;
  /**
   * Why its return address must stay unchanged, so that its exits are patched instead; undefined: it may be replaced.
   */
  readonly returnStays: string | undefined;
  /** Calls for which one of these does not hold leave no record. */
  readonly when: readonly Condition[];
  /** The return of the call is observed. */
  readonly seesReturn: boolean;
  /** Why it is refused to who does not insist: it may be entered otherwise than by a call. */
  readonly insisted?: string | undefined;
  /**
   * The entry alone is worth having: where only a stop could observe the return, the call has no end and no duration.
   */
  readonly entryIsEnough?: boolean;
  /** Counters in the target are enough: nothing else is read. Empty if they are not. */
  readonly counts: readonly PlannedCount[];
  /** Undefined for a function's entry. */
  readonly inside?: InnerPlace | undefined;
  /** It is left out rather than have the target stop for it: what it is for, as `wakes`. */
  readonly notByStops?: string | undefined;
}

/** Why each trap stops the target. */
export const trapIsRead = 'what a trap is stands in registers of the system, which only a stop reads';

/** Ends the reason of a hit whose values only a stop reads. */
export const leavesValuesOut = '(--no-args leaves values out)';
/** Why a hit stops the target with `--bt`. */
export const stackIsRead = 'the stack is read at each hit (--bt)';

/** The plan of a probe at a function's entry that reads nothing: its hits show that it was called, and when. */
export function entryPlan({
  address,
  codeSize,
  name,
  scratchIsFree = true,
  needsStop,
}: Pick<ReadPlan, 'address' | 'codeSize' | 'name'> & Partial<Pick<ReadPlan, 'scratchIsFree' | 'needsStop'>>): ReadPlan {
  return {
    address,
    codeSize,
    name,
    entryRegisters: [],
    entryReads: [],
    exit: { keep: [], registers: [], reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree,
    needsStop,
    returnStays: undefined,
    when: [],
    seesReturn: false,
    counts: [],
  };
}

/** The same of a described function. `foreign`: the values lie in what is read at stops; `why`: a condition. */
export function functionPlan(probe: FunctionProbe, foreign: string | undefined, why?: string): ReadPlan {
  const { address, size, ref, scratchIsFree, unread } = probe;
  const noSize = size === 0 ? 'the size of its code is not known' : undefined;
  const needsStop = unread ?? foreign ?? noSize ?? why;
  return entryPlan({ address, codeSize: size, name: ref.name, scratchIsFree, needsStop });
}

/** Why a register is none that a trampoline reads. */
export function foreignIn(registers: readonly string[], general: ReadonlySet<string>): string | undefined {
  const foreign = registers.find((name) => !general.has(name));
  return foreign && `what is asked for lies in ${foreign}`;
}

/** Why a function's return address stays as it is. */
export function stackNote({ stackArguments }: Pick<FunctionProbe, 'stackArguments'>): string | undefined {
  return stackArguments ? 'it may have arguments on the stack' : undefined;
}

/** One plan per place: a function that is probed twice, as a poll and as a function, is read once. */
export function mergePlans(plans: readonly ReadPlan[]): ReadPlan[] {
  const merged = new Map<bigint, ReadPlan>();
  for (const plan of plans) {
    const known = merged.get(plan.address);
    merged.set(plan.address, known ? joined(known, plan) : plan);
  }
  return [...merged.values()];
}

function joined(a: ReadPlan, b: ReadPlan): ReadPlan {
  const union = (one: readonly string[], other: readonly string[]): string[] => [...new Set([...one, ...other])];
  const onlyCounts = a.counts.length > 0 && b.counts.length > 0;
  const { name, subject } = b;
  const isMixed = (a.inside === undefined) !== (b.inside === undefined);
  return {
    ...a,
    others: [...(a.others ?? []), { name, subject }],
    inside: a.inside && b.inside && insideOfBoth(a.inside, b.inside),
    codeSize: Math.max(a.codeSize, b.codeSize),
    entryRegisters: union(a.entryRegisters, b.entryRegisters),
    entryReads: [...a.entryReads, ...b.entryReads],
    entryExtents: [...(a.entryExtents ?? []), ...(b.entryExtents ?? [])],
    exit: {
      keep: union(a.exit.keep, b.exit.keep),
      registers: union(a.exit.registers, b.exit.registers),
      reads: [...a.exit.reads, ...b.exit.reads],
      extents: [...(a.exit.extents ?? []), ...(b.exit.extents ?? [])],
    },
    outer: a.outer ?? b.outer,
    readsOuter: a.readsOuter || b.readsOuter,
    scratchIsFree: a.scratchIsFree && b.scratchIsFree,
    needsStop: a.needsStop ?? b.needsStop ?? (isMixed ? "it is a function's entry and a place inside one" : undefined),
    stopIsAsked: (a.stopIsAsked ?? false) || (b.stopIsAsked ?? false),
    partly: a.partly ?? b.partly,
    returnStays: a.returnStays ?? b.returnStays,
    // Each of the two has its own calls to see.
    when: [],
    seesReturn: a.seesReturn || b.seesReturn,
    insisted: a.insisted ?? b.insisted,
    entryIsEnough: [a, b].every((plan) => !plan.seesReturn || plan.entryIsEnough === true),
    counts: onlyCounts ? [...a.counts, ...b.counts] : [],
    notByStops: a.notByStops && b.notByStops,
  };
}

function insideOfBoth(a: InnerPlace, b: InnerPlace): InnerPlace {
  const { window } = a;
  const taken = [...a.taken, ...b.taken];
  return { window, taken, noted: [...a.noted, ...b.noted], groups: [...new Set([...a.groups, ...b.groups])] };
}
