import type { Condition, IntegerIn } from '../arch/index.js';
import type { Addr } from '../base/addr.js';

/** Bytes at a pointer. */
export interface PlannedLoad {
  readonly offset: number;
  readonly size: 1 | 2 | 4 | 8;
}

/** A pointer that the program's own types say is a reference, and what is read behind it. */
export interface PlannedReads {
  /** The register that holds the pointer at the probe's entry. */
  readonly pointer: string;
  readonly align: number;
  /** Bytes of what it points to. */
  readonly size: number;
  readonly loads: readonly PlannedLoad[];
}

/**
 * All that a probe's two hits will want, known before the first one: what an engine that cannot ask back compiles.
 * The engine that stops reads more than this, whole objects, since a longer read costs it nothing.
 */
export interface ReadPlan {
  readonly address: Addr;
  /** Bytes of the function's code. */
  readonly codeSize: number;
  readonly name: string;
  /** Registers at the entry. */
  readonly entryRegisters: readonly string[];
  readonly entryReads: readonly PlannedReads[];
  readonly exit: {
    /** Registers of the entry that the exit wants again. */
    readonly keep: readonly string[];
    readonly registers: readonly string[];
    readonly reads: readonly PlannedReads[];
  };
  /** Where a poll inside this one, with a probe of its own, finds what this one's Future holds. */
  readonly outer: PlannedReads | undefined;
  /** The poll around this one matters: its Future's bytes are read at the entry too. */
  readonly readsOuter: boolean;
  /** The compiler surely keeps nothing in a scratch register across a call of this function. */
  readonly scratchIsFree: boolean;
  /** Why only a stop can read all of it. */
  readonly needsStop: string | undefined;
  /**
   * Why its return address must stay where it is, so that its ends are patched to see it return; undefined: it may be
   * replaced.
   */
  readonly returnStays: string | undefined;
  /** Calls for which one of these does not hold are left out in the target. */
  readonly when: readonly Condition[];
  /** Somebody wants to know when the call returns. */
  readonly seesReturn: boolean;
  /** Nothing is wanted but a number, or one for each size of an integer: a counter in the target does. */
  readonly count: { readonly by: IntegerIn | undefined } | undefined;
  /** Calls are left out that are shorter than a threshold, where one is asked for. */
  readonly hasThreshold: boolean;
}

/** Why a hit stops the target with `--bt`. */
export const stackIsRead = 'the stack is read at each hit (--bt)';

/** One plan a place: a function that is probed twice, as a poll and as a function, is read once. */
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
  return {
    ...a,
    codeSize: Math.max(a.codeSize, b.codeSize),
    entryRegisters: union(a.entryRegisters, b.entryRegisters),
    entryReads: [...a.entryReads, ...b.entryReads],
    exit: {
      keep: union(a.exit.keep, b.exit.keep),
      registers: union(a.exit.registers, b.exit.registers),
      reads: [...a.exit.reads, ...b.exit.reads],
    },
    outer: a.outer ?? b.outer,
    readsOuter: a.readsOuter || b.readsOuter,
    scratchIsFree: a.scratchIsFree && b.scratchIsFree,
    needsStop: a.needsStop ?? b.needsStop,
    returnStays: a.returnStays ?? b.returnStays,
    // Each of the two has its own calls to see.
    when: [],
    seesReturn: a.seesReturn || b.seesReturn,
    count: undefined,
    hasThreshold: a.hasThreshold && b.hasThreshold,
  };
}
