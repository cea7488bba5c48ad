import type { Condition, IntegerIn } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import type { FutureType } from '../futures/index.js';
import type { ValuePlace } from './argument-places.js';
import type { FunctionProbe } from './resolve-functions.js';
import type { PollProbe } from './resolve-polls.js';
import type { TallyProbe } from './resolve-tallies.js';

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
 * All that a probe's two hits will want, known before the first one: what an engine that cannot ask back compiles. The engine that
 * stops reads more than this, whole objects, since a longer read costs it nothing.
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
  /** Why its return address must stay where it is, so that its ends are patched to see it return; undefined: it may be replaced. */
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

/** Why a poll stops with `--bt`. */
export const stackIsRead = 'the stack is read at each hit (--bt)';

/** More loads than this make a trampoline that is slower than it is worth, and a record that no ring of some KiB can hold. */
const mostLoads = 24;

/** What a poll's hits want: the state numbers of the Future and of those that it may await in place, and the words of boxed ones. */
export function planPoll(
  probe: PollProbe,
  results: readonly string[],
  follows: (future: FutureType) => boolean,
  stackDepth: number | undefined,
): ReadPlan {
  const { future, poll, selfRegister, resultPointer } = probe;
  const loads = footprint(future, true);
  const self: PlannedReads = { pointer: selfRegister, align: future.align ?? 1, size: future.size, loads: loads ?? [] };
  const inMemory = resultPointer !== undefined && poll.result !== undefined;
  const tag = inMemory && poll.result ? loadsOf(poll.result) : undefined;
  const exitReads = [self];
  if (inMemory && tag) exitReads.push({ pointer: resultPointer, align: 1, size: poll.resultSize, loads: tag });
  const states = footprint(future, false);
  const keep = [selfRegister, ...(resultPointer === undefined ? [] : [resultPointer])];
  return {
    address: probe.address,
    codeSize: Number(poll.end - poll.address),
    name: future.future,
    entryRegisters: keep,
    entryReads: [self],
    exit: { keep, registers: results, reads: exitReads },
    outer: follows(future) && states ? { ...self, loads: states } : undefined,
    readsOuter: true,
    // Poll functions are Rust.
    scratchIsFree: true,
    needsStop:
      stackDepth !== undefined
        ? stackIsRead
        : loads === undefined
          ? `its Future has more than ${mostLoads} places to read`
          : inMemory && !tag
            ? 'the discriminant of its result is no whole word'
            : undefined,
    returnStays: undefined,
    when: [],
    seesReturn: true,
    count: undefined,
    hasThreshold: false,
  };
}

/** What a function's hits want: the registers of its arguments, and of its result. */
export function planFunction(probe: FunctionProbe, values: boolean, general: ReadonlySet<string>): ReadPlan {
  const { address, size, ref, result, producer, stackArguments } = probe;
  const conditions = probe.when ?? [];
  const looked = conditions.flat().map(({ register }) => register);
  const entry = [...new Set([...(values ? registersOf(probe.arguments.map(({ where }) => where)) : []), ...looked])];
  const exit = values && result ? registersOf([result.where]) : [];
  const foreign = [...entry, ...exit].find((name) => !general.has(name));
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: entry,
    entryReads: [],
    exit: { keep: [], registers: exit, reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      foreign !== undefined
        ? `a value lies in ${foreign} (--no-args leaves values out)`
        : size === 0
          ? 'the size of its code is not known'
          : undefined,
    returnStays: stackArguments ? 'it may have arguments on the stack' : undefined,
    // Of several lists one must hold: that is decided when the record is read.
    when: conditions.length === 1 ? (conditions[0] ?? []) : [],
    seesReturn: true,
    count: undefined,
    hasThreshold: true,
  };
}

/** What counting a function's calls wants: nothing but what tells whether, and by what. */
export function planTally({ function: probe, by }: TallyProbe, general: ReadonlySet<string>): ReadPlan {
  const { address, size, ref, producer } = probe;
  const conditions = probe.when ?? [];
  const looked = [...conditions.flat(), ...(by ? [by] : [])].map(({ register }) => register);
  const foreign = looked.find((name) => !general.has(name));
  return {
    address,
    codeSize: size,
    name: ref.name,
    entryRegisters: [...new Set(looked)],
    entryReads: [],
    exit: { keep: [], registers: [], reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: producer === 'rustc' || producer === 'clang',
    needsStop:
      foreign !== undefined
        ? `what is asked for lies in ${foreign}`
        : size === 0
          ? 'the size of its code is not known'
          : undefined,
    returnStays: undefined,
    when: conditions.length === 1 ? (conditions[0] ?? []) : [],
    seesReturn: false,
    // One of several lists of conditions: that is decided when a record is read.
    count:
      conditions.length > 1 ? undefined : { by: by && { register: by.register, size: by.size, signed: by.signed } },
    hasThreshold: false,
  };
}

function registersOf(places: readonly ValuePlace[]): string[] {
  const names = places.flatMap((where) =>
    where.kind === 'registers'
      ? where.parts.flatMap((part) => ('register' in part ? [part.register] : []))
      : where.kind === 'pointer'
        ? [where.register]
        : [],
  );
  return [...new Set(names)];
}

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

/**
 * The places in a Future's bytes that tell its state and its await chain, whatever state it is in.
 * @returns undefined where there are too many
 */
export function footprint(future: FutureType, boxes: boolean): PlannedLoad[] | undefined {
  const found = new Map<number, PlannedLoad>();
  const add = (offset: number, size: number): void => {
    const known = sized(size);
    if (known !== undefined && known > (found.get(offset)?.size ?? 0)) found.set(offset, { offset, size: known });
  };
  const visit = (at: FutureType, base: number): void => {
    if (found.size > mostLoads) return;
    if (at.discriminant) add(base + at.discriminant.offset, at.discriminant.size);
    for (const { awaitee } of at.states) {
      if (!awaitee) continue;
      const { box, future: inner, offset } = awaitee;
      if (box && boxes) {
        add(base + offset + box.pointer, 8);
        if (box.vtable !== undefined) add(base + offset + box.vtable, 8);
      }
      if (!box && inner) visit(inner, base + offset);
    }
  };
  visit(future, 0);
  const loads = [...found.values()].sort((a, b) => a.offset - b.offset);
  const inside = loads.every(({ offset, size }) => offset + size <= future.size && offset < 2 ** 31);
  return loads.length > mostLoads || !inside ? undefined : loads;
}

function sized(size: number): 1 | 2 | 4 | 8 | undefined {
  return size === 1 || size === 2 || size === 4 || size === 8 ? size : undefined;
}

/** The loads that fetch a discriminant; that of a `Poll<u128>` is a `u128` too. */
function loadsOf({ offset, size }: { readonly offset: number; readonly size: number }): PlannedLoad[] | undefined {
  const word = sized(size);
  if (word !== undefined) return [{ offset, size: word }];
  if (size !== 16) return undefined;
  return [
    { offset, size: 8 },
    { offset: offset + 8, size: 8 },
  ];
}
