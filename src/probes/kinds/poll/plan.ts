import type { FutureType, Guard } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import { planConditions } from '../../expressions/comparison.js';
import { planInside } from '../../inner-windows.js';
import {
  entryPlan,
  loadSize,
  loadsOf,
  noteName,
  type PlannedLoad,
  type PlannedReads,
  type ReadPlan,
  stackIsRead,
} from '../../read-plan.js';
import type { InlinedProbe, PollProbe, PollProbes } from './resolve.js';
import type { SelfPlace } from './self-place.js';

/** More loads make a trampoline slow, and a record large. */
const mostLoads = 24;
/** Of larger Futures parts are read, because a hit must stay cheap. */
const mostPartBytes = 64 * 1024;
/** What lies further on is not read. */
const mostReach = 4 * 1024 * 1024;
/** Parts begin at multiples of it, so that a part is aligned as the Future is. */
const partAlign = 4096;

/** Bytes of a Future that are read together. */
interface FuturePart {
  readonly from: number;
  readonly length: number;
}

/** Its beginning; of a large one also the last of what shows its state, which may lie behind all else. */
export function partsOf(future: FutureType): readonly [FuturePart, ...FuturePart[]] {
  // A Future without fields still has an address; reading a byte there is harmless and keeps replies in step.
  const length = Math.min(Math.max(future.size, 1), mostPartBytes);
  const isBeyond = ({ offset, size }: PlannedLoad): boolean => offset >= length && offset + size <= mostReach;
  const beyond = length < future.size ? footprint(future, true).loads.filter(isBeyond) : [];
  const [first, last] = [beyond[0], beyond.at(-1)];
  if (!first || !last) return [{ from: 0, length }];
  const end = last.offset + last.size;
  const least = Math.max(first.offset, end - mostPartBytes);
  const from = least - (least % partAlign);
  return [
    { from: 0, length },
    { from, length: end - from },
  ];
}

/** The same for an engine without stops. */
function objectsOf(future: FutureType, loads: readonly PlannedLoad[]): PlannedObject[] {
  return partsOf(future).map(({ from, length }) => {
    const own = loads.filter(({ offset, size }) => offset >= from && offset + size <= from + length);
    const moved = own.map(({ offset, size }) => ({ offset: offset - from, size }));
    return { from, align: future.align ?? 1, size: Math.min(length, future.size), loads: moved };
  });
}

type PlannedObject = Omit<PlannedReads, 'pointer' | 'through'> & { readonly from: number };

/** What a poll's hits read: the state numbers of the Future and of those inside it, and the words of boxed ones. */
export function planPoll(
  probe: PollProbe,
  results: readonly string[],
  follows: (future: FutureType) => boolean,
  stackDepth: number | undefined,
): ReadPlan {
  const { future, poll, selfRegister, resultPointer } = probe;
  const { loads, unread } = footprint(future, true);
  const self = objectsOf(future, loads).map((object): PlannedReads => ({ pointer: selfRegister, ...object }));
  const { offset = 0, size: bytes = 0 } = poll.result ?? {};
  // That of a `Poll<u128>` is a `u128` too.
  const isWhole = bytes <= 16;
  const exitReads = [...self];
  if (resultPointer !== undefined && poll.result && isWhole)
    exitReads.push({ pointer: resultPointer, align: 1, size: poll.resultSize, loads: loadsOf(offset, bytes) });
  const [states] = objectsOf(future, footprint(future, false).loads);
  const keep = [selfRegister, ...(resultPointer === undefined ? [] : [resultPointer])];
  const condition = planConditions(probe.when);
  return {
    // Whatever the condition says: what is polled inside belongs to this poll's task. Poll functions are Rust.
    ...entryPlan({ address: probe.address, codeSize: Number(poll.end - poll.address), name: future.future }),
    entryRegisters: [...new Set([...keep, ...condition.registers])],
    entryReads: [...self, ...condition.reads],
    exit: { keep, registers: results, reads: exitReads },
    outer: states && follows(future) ? { pointer: selfRegister, ...states } : undefined,
    readsOuter: true,
    stopIsAsked: stackDepth !== undefined,
    needsStop:
      stackDepth !== undefined
        ? stackIsRead
        : resultPointer !== undefined && !isWhole
          ? 'the discriminant of its result is no whole word'
          : condition.why,
    partly: unread > 0 ? partly(unread) : undefined,
    seesReturn: true,
  };
}

interface Footprint {
  readonly loads: readonly PlannedLoad[];
  /** Futures inside, of which nothing is read: there is no room for their places. */
  readonly unread: number;
}

interface Inner {
  readonly future: FutureType;
  readonly base: number;
}

/**
 * The places in a Future's bytes that show its state and its await chain, in any state. The outer ones come first,
 * so what has no room are the ends of long chains.
 */
function footprint(future: FutureType, boxes: boolean): Footprint {
  const found = new Map<number, number>();
  let unread = 0;
  const inside: Inner[] = [{ future, base: 0 }];
  const seen = new Map<number, Set<FutureType>>();
  for (const { future: at, base } of inside) {
    const known = seen.get(base) ?? new Set();
    if (known.has(at)) continue;
    seen.set(base, known.add(at));
    // Many states have their box at the same place.
    const own = new Map<number, number>();
    for (const { offset, size } of placesOf(at, base, boxes))
      if ((own.get(offset) ?? found.get(offset) ?? 0) < size) own.set(offset, size);
    const more = [...own.keys()].filter((offset) => !found.has(offset)).length;
    if (found.size + more > mostLoads || [...own].some(([offset, size]) => offset + size > future.size)) {
      unread++;
      continue;
    }
    for (const [offset, size] of own) found.set(offset, size);
    for (const { awaitee } of at.states)
      if (awaitee?.future && !awaitee.box) inside.push({ future: awaitee.future, base: base + awaitee.offset });
  }
  const loads = [...found].map(([offset, size]) => ({ offset, size: size as PlannedLoad['size'] }));
  return { loads: loads.sort((a, b) => a.offset - b.offset), unread };
}

/** A Future's own places, which are read together or not at all: without its boxes its state would lead astray. */
function placesOf({ discriminant, states }: FutureType, base: number, boxes: boolean): PlannedLoad[] {
  const places: { readonly offset: number; readonly size: number }[] = [];
  if (discriminant) places.push({ offset: base + discriminant.offset, size: discriminant.size });
  for (const { awaitee } of boxes ? states : []) {
    if (!awaitee?.box) continue;
    const { pointer, vtable } = awaitee.box;
    places.push({ offset: base + awaitee.offset + pointer, size: 8 });
    if (vtable !== undefined) places.push({ offset: base + awaitee.offset + vtable, size: 8 });
  }
  return places.flatMap(({ offset, size }) => {
    const word = loadSize(size);
    return word === undefined ? [] : [{ offset, size: word }];
  });
}

/** What every place reads. */
interface SitesToPlan {
  readonly windows: PollProbes['windows'];
  readonly stackDepth: number | undefined;
}

/**
 * What the places of inlined polls read, a plan for each place of each. Where a poll begins, its Future's address is
 * noted, so that its end can read the Future.
 */
export function planSites(sites: readonly InlinedProbe[], { windows, stackDepth }: SitesToPlan): ReadPlan[] {
  return sites.flatMap((probe, block) => {
    const { site, future, copy, isAround } = probe;
    const guards = distinct(site.begins.flatMap(({ self }) => self.guards));
    const isOdd = guards.some(({ size }) => loadSize(size) === undefined);
    const why =
      stackDepth !== undefined && !isAround
        ? stackIsRead
        : isOdd || block >= mostBlocks
          ? 'whether the Future is there shows in no whole word'
          : undefined;
    const { loads, unread } = footprint(future, true);
    const objects = objectsOf(future, loads);
    const place = ({ address }: { readonly address: Addr }): ReadPlan => {
      const window = windows.get(address) ?? 'its code is not known';
      const plan = planInside(address, `${future.future} in ${copy.into}`, { window, scratchIsFree: true }, [block]);
      const needsStop = why ?? plan.needsStop;
      return { ...plan, subject: future.future, needsStop, partly: unread > 0 ? partly(unread) : undefined };
    };
    const begins = site.begins.map((begin): ReadPlan => {
      const { frame, self, isStored } = begin;
      const plan = place(begin);
      const noted = [{ of: block, frame, pointer: self }];
      return {
        ...plan,
        inside: plan.inside && { ...plan.inside, noted },
        entryRegisters: [...new Set([frame.register, self.register])],
        entryReads: readsAt(self, isStored ? objects : []),
      };
    });
    const ends = site.ends.map((end): ReadPlan => {
      const { frame } = end;
      const note = { of: block, frame };
      const pointer = noteName(note);
      const plan = place(end);
      const guardReads = guards.map(({ offset, size }): PlannedReads => {
        return { pointer, from: offset, align: 1, size, loads: [{ offset: 0, size: loadSize(size) ?? 1 }] };
      });
      return {
        ...plan,
        inside: plan.inside && { ...plan.inside, taken: [note] },
        entryRegisters: [frame.register],
        entryReads: [...objects.map((object) => ({ ...object, pointer })), ...guardReads],
      };
    });
    return [...begins, ...ends];
  });
}

/** The word that leads to a Future, if there is one, and what is wanted of the Future. */
function readsAt(
  { register: pointer, offset: from, through }: SelfPlace,
  objects: readonly PlannedObject[],
): PlannedReads[] {
  const reads = objects.map((object) => ({ ...object, pointer, from: from + object.from }));
  if (through === undefined) return reads;
  const word = { pointer, from: through, align: 8, size: 8, loads: [{ offset: 0, size: 8 as const }] };
  return [word, ...reads.map((each) => ({ ...each, through: [through] }))];
}

/** See `FrameNote`. */
const mostBlocks = 2 ** 15;

function distinct(guards: readonly Guard[]): Guard[] {
  return [...new Map(guards.map((guard) => [`${guard.offset} ${guard.size}`, guard])).values()];
}

function partly(unread: number): string {
  return `${unread} of the Futures inside it are not read, so that a chain may end early`;
}
