import { type CodePath, type CopySteps, type ProbeCode, type Step, usualPath } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { firstWhere } from '../base/search.js';
import type { PlannedReads } from '../probes/index.js';
import type { OwnTime } from '../trace/index.js';
import type { Placement } from './placement.js';
import type { RecordTime, TimeScale } from './record-dispatcher.js';
import { outerPlan } from './record-format.js';
import { inOrder, type Write } from './ring.js';
import type { Site } from './sites.js';

/** Instructions that an event adds to the target's own: before its record's time is read, and after. */
interface Added {
  readonly before: number;
  readonly after: number;
}

/** The same of the records of an id. */
export type AddedSteps = readonly [id: number, before: number, after: number];

/** The same for one kind of record, and what depends on the record. */
interface Cost extends Added {
  readonly site: Site;
  readonly begins: boolean;
  /** Where the record names the Future of the open poll around it, if bytes of that Future are copied. */
  readonly outerAt: number | undefined;
  /** How many bytes of this record's Future the calls inside it copy. */
  readonly lists: number;
}

/**
 * Subtracts the trampolines' own time from whatever happens while a call is open. It is for clocks that count
 * instructions (QEMU's `-icount shift=N`), because there the code says how long it takes. While no call is open,
 * nothing is subtracted: the target makes up for the lost time when it waits for a timer.
 */
export class TrampolineOverhead {
  readonly nanosPerInstruction: number;
  /** By the records' ids. */
  #costs: readonly (Cost | undefined)[] = [];
  #copies: CopySteps = { beforeTime: true, closed: 0, listed: 0, each: 0 };
  /** By a Future's address: the bytes that are copied out of it. */
  readonly #outers = new Map<bigint, number>();
  /** The number of open calls, and the overhead subtracted since the first of them began. */
  #open = 0;
  #spent = 0;
  #facts: OwnTime | undefined;

  /** `earlier`: what was subtracted for programs that the target ran before. */
  constructor(nanosPerInstruction: number, earlier?: OwnTime) {
    this.nanosPerInstruction = nanosPerInstruction;
    this.#facts = earlier;
  }

  /** The overhead subtracted so far; undefined if none was. */
  get facts(): OwnTime | undefined {
    return this.#facts;
  }

  /** The trampolines of these sites are installed, and add so much: {@link addedSteps}. */
  learn(
    { outerCopySteps }: Pick<ProbeCode, 'outerCopySteps'>,
    sites: readonly Site[],
    added: readonly AddedSteps[],
  ): void {
    const byIndex = new Map(sites.map((site) => [site.index, site]));
    const costs: (Cost | undefined)[] = [];
    for (const [id, before, after] of added) {
      const site = byIndex.get(id >>> 1);
      if (site === undefined) continue;
      const begins = (id & 1) === 0;
      const { outer } = site.plan;
      const outerAt = begins && site.entry.outerCopy ? site.entry.outerAt : undefined;
      costs[id] = { site, begins, before, after, outerAt, lists: begins && outer ? listed(outer) : 0 };
    }
    this.#costs = costs;
    this.#copies = outerCopySteps;
  }

  /** What the records' times would have been without trampolines. */
  over(scale: TimeScale): RecordTime {
    return (ticks, id, record) => {
      const nanos = scale(ticks);
      const cost = this.#costs[id];
      return cost ? this.#without(nanos, cost, record) : nanos;
    };
  }

  #without(nanos: number, cost: Cost, record: Parameters<RecordTime>[2]): number {
    const { site, begins, outerAt, lists } = cost;
    if (this.#open === 0) this.#spent = 0;
    const copied = outerAt === undefined ? 0 : this.#copied(record.word(outerAt));
    const untilTime = cost.before + (this.#copies.beforeTime ? copied : 0);
    const inAll = (cost.before + cost.after + copied) * this.nanosPerInstruction;
    const time = nanos - this.#spent - untilTime * this.nanosPerInstruction;
    this.#spent += inAll;
    this.#note(inAll);
    if (site.plan.seesReturn) this.#open = begins ? this.#open + 1 : Math.max(0, this.#open - 1);
    const { outer } = site.plan;
    const self = begins && outer ? record.register(outer.pointer) : undefined;
    if (self !== undefined && outer) this.#outers.set(self, lists);
    return time;
  }

  /** The usual path runs the copy's loop once. */
  #copied(outer: bigint): number {
    const { closed, listed, each } = this.#copies;
    const once = listed + each;
    return (outer === 0n ? closed : listed + each * (this.#outers.get(outer) ?? 0)) - once;
  }

  #note(nanos: number): void {
    const { leastNs = nanos, mostNs = nanos, totalNs = 0 } = this.#facts ?? {};
    this.#facts = {
      leastNs: Math.min(leastNs, nanos),
      mostNs: Math.max(mostNs, nanos),
      totalNs: totalNs + nanos,
    };
  }
}

/** What the records of the placed trampolines add, by the paths through their code. */
export function addedSteps(code: ProbeCode, placement: Placement): readonly AddedSteps[] {
  const added = new Map<number, AddedSteps>();
  const path = paths(code, placement);
  for (const { site, part, address, bytes } of placement.patches) {
    const isEnd = part === 'exit';
    const { index, plan, ways } = site;
    const [entryId, exitId] = [2 * index, 2 * index + 1];
    const begin = isEnd ? undefined : path(address, true);
    const displaced = ways.find(({ patchLength }) => patchLength === bytes.length);
    if (begin?.untilTime !== undefined && displaced) {
      // Instructions of the function that are run before its record is written.
      const own = site.inside?.find(({ kind }) => kind === displaced.kind)?.textBefore.length ?? 0;
      const after = begin.steps - begin.untilTime - (displaced.text.length - own);
      added.set(entryId, [entryId, begin.untilTime - own, after]);
    }
    if (!plan.seesReturn || added.has(exitId)) continue;
    const exit = isEnd ? endCost(site, address, code, path(address, true)) : exitCost(placement, index, path);
    if (exit) added.set(exitId, [exitId, exit.before, exit.after]);
  }
  return [...added.values()];
}

/** How many bytes the list at `controlBlock.outerPlan` names. */
function listed(outer: PlannedReads): number {
  return new Uint32Array(outerPlan(outer).buffer)[0] ?? 0;
}

type PathFrom = (start: Addr, patched: boolean) => CodePath | undefined;

/** Paths through the code written to the target, from a jump in a function or from a trampoline. */
function paths(code: ProbeCode, placement: Placement): PathFrom {
  const writes: readonly Write[] = inOrder(placement.code);
  const patches = new Map<bigint, Write>(placement.patches.map(({ address, bytes }) => [address, { address, bytes }]));
  const stepIn = ({ address, bytes }: Write, at: Addr): Step | undefined =>
    at < address + BigInt(bytes.length) ? code.step(bytes, address, Number(at - address)) : undefined;
  const stepAt = (at: Addr): Step | undefined => {
    const write = writes[firstWhere(writes.length, (index) => (writes[index] as Write).address > at) - 1];
    return write && stepIn(write, at);
  };
  return (start, patched) => {
    const patch = patched ? patches.get(start) : undefined;
    return usualPath(start, (at) => {
      const own = patch && at >= patch.address ? stepIn(patch, at) : undefined;
      return own ?? stepAt(at);
    });
  };
}

function exitCost(placement: Placement, index: number, path: PathFrom): Added | undefined {
  const at = placement.exits.get(index);
  const exit = at === undefined ? undefined : path(at, false);
  // The function's own return leads there, so the whole path is overhead.
  return exit?.untilTime === undefined ? undefined : { before: exit.untilTime, after: exit.steps - exit.untilTime };
}

/** The trampoline at a function's exit runs the displaced instructions; its last one is the return. */
function endCost(site: Site, address: Addr, code: ProbeCode, end: CodePath | undefined): Added | undefined {
  if (end?.untilTime === undefined) return undefined;
  const from = site.plan.address;
  const original = usualPath(address, (at) => {
    const offset = Number(at - from);
    return offset >= 0 && offset < site.code.length ? code.step(site.code, from, offset) : undefined;
  });
  if (!original) return undefined;
  return { before: end.untilTime - (original.steps - 1), after: end.steps - end.untilTime - 1 };
}
