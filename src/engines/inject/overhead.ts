import { type CodePath, type CopySteps, type ProbeCode, type Step, usualPath } from '../../arch/index.js';
import type { Addr } from '../../base/addr.js';
import type { PlannedReads } from '../../probes/index.js';
import type { OwnTime } from '../../trace/index.js';
import type { RecordTime, TimeScale } from './record-dispatcher.js';
import { outerPlan } from './record-format.js';
import type { Write } from './ring.js';
import type { Placement, Site } from './sites.js';

/** Instructions that an event adds to the target's own, before its record's time is read and after. */
interface Added {
  readonly before: number;
  readonly after: number;
}

/** The same of one kind of record, and what depends on the record. */
interface Cost extends Added {
  readonly site: Site;
  readonly begins: boolean;
  /** Where the record says which Future's poll is open around it, if it copies bytes out of that. */
  readonly outerAt: number | undefined;
  /** How many bytes calls inside copy out of this one's Future. */
  readonly lists: number;
}

/**
 * Takes the time that trampolines take out of what happens while a call is open. For a clock that counts instructions (QEMU's
 * `-icount shift=N`): there the time is known by the code. While no call is open, the target's clock is told as it is, since what trampolines took
 * is made up for where the target waits for a timer.
 */
export class TrampolineOverhead {
  readonly #nanosPerInstruction: number;
  /** By the records' ids. */
  #costs: readonly (Cost | undefined)[] = [];
  #copies: CopySteps = { beforeTime: true, closed: 0, listed: 0, each: 0 };
  /** Bytes that are copied out of a Future, by its address. */
  readonly #outers = new Map<bigint, number>();
  /** Calls that are open, and what has been taken out since the first of them began. */
  #open = 0;
  #spent = 0;
  #facts: OwnTime | undefined;

  /** `earlier`: what was taken out of the time of programs that the target ran before. */
  constructor(nanosPerInstruction: number, earlier?: OwnTime) {
    this.#nanosPerInstruction = nanosPerInstruction;
    this.#facts = earlier;
  }

  /** What was taken out so far; undefined where nothing was. */
  get facts(): OwnTime | undefined {
    return this.#facts;
  }

  /** The trampolines are in. */
  learn(code: ProbeCode, placement: Placement): void {
    const costs: (Cost | undefined)[] = [];
    const path = paths(code, placement);
    for (const { site, isEnd, address, bytes } of placement.patches) {
      const { index, plan, entry, ways } = site;
      const begin = isEnd ? undefined : path(address, true);
      const displaced = ways.find(({ patchLength }) => patchLength === bytes.length);
      if (begin?.untilTime !== undefined && displaced) {
        const after = begin.steps - begin.untilTime - displaced.text.length;
        const outerAt = entry.outerCopy && entry.outerAt;
        const { outer } = plan;
        costs[2 * index] = {
          site,
          begins: true,
          before: begin.untilTime,
          after,
          outerAt,
          lists: outer ? listed(outer) : 0,
        };
      }
      if (!plan.seesReturn) continue;
      const exit = isEnd ? endCost(site, address, code, path(address, true)) : exitCost(placement, index, path);
      if (exit) costs[2 * index + 1] ??= { site, begins: false, ...exit, outerAt: undefined, lists: 0 };
    }
    this.#costs = costs;
    this.#copies = code.outerCopySteps;
  }

  /** What the records' times mean without trampolines. */
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
    const inAll = (cost.before + cost.after + copied) * this.#nanosPerInstruction;
    const time = nanos - this.#spent - untilTime * this.#nanosPerInstruction;
    this.#spent += inAll;
    this.#note(inAll);
    if (site.plan.seesReturn) this.#open = begins ? this.#open + 1 : Math.max(0, this.#open - 1);
    const { outer } = site.plan;
    const self = begins && outer ? record.register(outer.pointer) : undefined;
    if (self !== undefined && outer) this.#outers.set(self, lists);
    return time;
  }

  /** The usual path goes through the copy's loop once. */
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

/** How many bytes the list for `controlBlock.outerPlan` names. */
function listed(outer: PlannedReads): number {
  return new Uint32Array(outerPlan(outer).buffer)[0] ?? 0;
}

type PathFrom = (start: Addr, patched: boolean) => CodePath | undefined;

/** Paths through what is written to the target, from a jump that stands in a function or from a trampoline. */
function paths(code: ProbeCode, placement: Placement): PathFrom {
  const writes: readonly Write[] = [...placement.code].sort((a, b) => (a.address < b.address ? -1 : 1));
  const patches = new Map<bigint, Write>(placement.patches.map(({ address, bytes }) => [address, { address, bytes }]));
  const stepIn = ({ address, bytes }: Write, at: Addr): Step | undefined =>
    at < address + BigInt(bytes.length) ? code.step(bytes, address, Number(at - address)) : undefined;
  const stepAt = (at: Addr): Step | undefined => {
    let low = 0;
    let high = writes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((writes[middle] as Write).address <= at) low = middle + 1;
      else high = middle;
    }
    const write = writes[low - 1];
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
  // The function's own return led there: all of it is more.
  return exit?.untilTime === undefined ? undefined : { before: exit.untilTime, after: exit.steps - exit.untilTime };
}

/** The trampoline at a function's end carries out what stood there, the return as its last instruction. */
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
