import type { FutureType } from '../../../futures/index.js';
import { type PlannedLoad, type PlannedReads, type ReadPlan, stackIsRead } from '../../read-plan.js';
import type { InlinedProbe, PollProbe } from './resolve.js';

/** With more loads than this a trampoline is too slow, and a small ring cannot hold its record. */
const mostLoads = 24;

/** What a poll's hits read: the state numbers of the Future and of those inside it, and the words of boxed ones. */
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

/**
 * The places in a Future's bytes that show its state and its await chain, in any state.
 * @returns undefined if there are too many
 */
function footprint(future: FutureType, boxes: boolean): PlannedLoad[] | undefined {
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

const insideFunction = 'it was inlined: a patch inside a function may be jumped into';

/** What the places of an inlined poll read: a stop can read all. */
export function planSite({ site, future, into }: InlinedProbe): ReadPlan[] {
  const addresses = new Set([...site.begins, ...site.ends].map(({ address }) => address));
  return [...addresses].map((address) => ({
    address,
    codeSize: 0,
    name: `${future.future} in ${into}`,
    entryRegisters: [],
    entryReads: [],
    exit: { keep: [], registers: [], reads: [] },
    outer: undefined,
    readsOuter: false,
    scratchIsFree: false,
    needsStop: insideFunction,
    returnStays: undefined,
    when: [],
    seesReturn: false,
    count: undefined,
    hasThreshold: false,
  }));
}
