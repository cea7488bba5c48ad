import type { Architecture, FlowStep } from '../arch/index.js';
import { type Addr, addr } from '../base/addr.js';
import { littleEndian } from '../base/little-endian.js';
import { firstWhere, reachedFrom } from '../base/search.js';
import type { ElfFile } from '../elf/index.js';

/** Larger functions are not analysed. */
const mostSteps = 100_000;

/** What is known of a function's surroundings. */
interface FlowFacts {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  /** No call of the function there comes back. */
  neverReturns(target: Addr): boolean;
}

/**
 * The control flow of one function: a node an instruction, in the order of memory. Landing pads of an unwinder have no
 * way to them. An edge may be too much (behind a call that never returns, from a jump through a table into another
 * one), but none is missing.
 */
export class FlowGraph {
  readonly steps: readonly FlowStep[];
  readonly next: readonly (readonly number[])[];
  readonly before: readonly (readonly number[])[];
  /** It ends here: it returns, or jumps to another function. */
  readonly leaves: ReadonlySet<number>;
  /** Jumps through a register of which no table says where they lead. They are taken to leave. */
  readonly untabled: readonly number[];
  readonly #reached: ReadonlySet<number>;
  #needed: Uint32Array | undefined;
  #reserved: ReadonlySet<number> | undefined;

  constructor(steps: readonly FlowStep[], next: readonly (readonly number[])[], leaves: ReadonlySet<number>) {
    this.untabled = [...leaves].filter((node) => steps[node]?.kind === 'indirect');
    this.steps = steps;
    this.next = next;
    this.leaves = leaves;
    const before: number[][] = steps.map(() => []);
    next.forEach((targets, from) => {
      for (const to of targets) before[to]?.push(from);
    });
    this.before = before;
    this.#reached = steps.length === 0 ? new Set() : this.reachable([0], next, () => false);
  }

  /** Undefined if the function's code cannot be followed: then nothing is known. */
  static of(ranges: readonly { readonly low: Addr; readonly high: Addr }[], facts: FlowFacts): FlowGraph | undefined {
    const { elf, arch } = facts;
    const steps: FlowStep[] = [];
    for (const { low, high } of ranges) {
      const size = Number(high - low);
      const code = elf.bytesAt(low, size);
      const found = code && arch.codeFlow?.steps(code, low);
      const last = found?.at(-1);
      if (!found || !last || last.address + BigInt(last.length) !== high) return undefined;
      for (const step of found) steps.push(step);
      if (steps.length > mostSteps) return undefined;
    }
    steps.sort((a, b) => (a.address < b.address ? -1 : 1));
    // What is stored by a frame pointer is the frame's.
    if (steps.some(({ framePointer }) => framePointer === 'makes')) {
      for (const [i, step] of steps.entries())
        if (step.kind === 'store' && step.framePointer === 'by')
          steps[i] = { ...step, kind: 'next', writesFrame: true };
    }
    const entry = ranges[0]?.low;
    // The first instruction is the first node, wherever its part lies.
    const first = steps.findIndex(({ address }) => address === entry);
    if (first > 0) steps.unshift(...steps.splice(first, 1));
    return linked(steps, facts);
  }

  /** The instructions in a stretch of memory. */
  between(low: bigint, high: bigint): number[] {
    const at = (node: number): bigint => this.steps[node]?.address ?? high;
    const found = at(0) >= low && at(0) < high ? [0] : [];
    // All but the first are in the order of memory.
    const first = firstWhere(this.steps.length, (node) => node > 0 && at(node) >= low);
    for (let node = Math.max(first, 1); at(node) < high; node++) found.push(node);
    return found;
  }

  /** The temporaries whose values may be needed from this instruction on: a bit each. */
  neededAt(node: number): number {
    this.#needed ??= this.#findNeeded();
    return this.#needed[node] ?? 0;
  }

  /**
   * Whether memory is reserved here that an instruction behind writes to. A trampoline makes a reservation of its own.
   * That write would then fail, and be tried for ever.
   */
  isReserved(node: number): boolean {
    this.#reserved ??= this.#findReserved();
    return this.#reserved.has(node);
  }

  #findReserved(): ReadonlySet<number> {
    const nodes = (what: FlowStep['reservation']): number[] =>
      this.steps.flatMap(({ reservation }, node) => (reservation === what ? [node] : []));
    const begins = nodes('begins');
    if (begins.length === 0) return new Set();
    const is = (what: FlowStep['reservation']) => (node: number) => this.steps[node]?.reservation === what;
    const behind = this.reachable(
      begins.flatMap((node) => this.next[node] ?? []),
      this.next,
      is('ends'),
    );
    const before = this.reachable(nodes('ends'), this.before, is('begins'));
    return new Set([...behind].filter((node) => before.has(node) && !is('begins')(node)));
  }

  /** Backwards from what needs a value to where it is overwritten. */
  #findNeeded(): Uint32Array {
    const needed = new Uint32Array(this.steps.length);
    const open = this.steps.map((_, node) => node);
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      const { needs = 0, overwrites = 0 } = this.steps[node] as FlowStep;
      const behind = (this.next[node] ?? []).reduce((mask, to) => mask | (needed[to] ?? 0), 0);
      const now = needs | (behind & ~overwrites);
      if (now === needed[node]) continue;
      needed[node] = now;
      for (const from of this.before[node] ?? []) open.push(from);
    }
    return needed;
  }

  isReached(node: number): boolean {
    return this.#reached.has(node);
  }

  /** Every node on a way from these on, themselves included; `stops` are reached, but not gone through. */
  reachable(from: Iterable<number>, edges: FlowGraph['next'], stops: (node: number) => boolean): Set<number> {
    return reachedFrom(from, (node) => (stops(node) ? [] : (edges[node] ?? [])));
  }
}

function linked(steps: readonly FlowStep[], facts: FlowFacts): FlowGraph | undefined {
  const index = new Map(steps.map(({ address }, i) => [address as bigint, i]));
  const tables = new Tables(steps, index, facts.elf);
  const leaves = new Set<number>();
  const next = steps.map((step, i): number[] => {
    const behind = index.get(step.address + BigInt(step.length));
    const target = step.target === undefined ? undefined : index.get(step.target);
    const on = behind === undefined ? [] : [behind];
    switch (step.kind) {
      case 'branch':
      case 'jump':
        if (target === undefined) leaves.add(i);
        return [...(step.kind === 'branch' ? on : []), ...(target === undefined ? [] : [target])];
      case 'indirect': {
        const cases = tables.casesAt(i);
        // Without a table it is a call in place of a return.
        if (cases.length === 0) leaves.add(i);
        return [...cases];
      }
      case 'call': {
        const called = calledBy(step, facts.elf);
        return called !== undefined && facts.neverReturns(called) ? [] : on;
      }
      case 'return':
        leaves.add(i);
        return [];
      case 'end':
        return [];
      default:
        return on;
    }
  });
  return new FlowGraph(steps, next, leaves);
}

/** Where a call or a jump leads, also if the ELF has the address in a word. */
export function calledBy({ target, names }: FlowStep, elf: ElfFile): Addr | undefined {
  return target ?? (names === undefined ? undefined : wordAt(names, elf));
}

function wordAt(at: Addr, elf: ElfFile): Addr | undefined {
  const bytes = elf.bytesAt(at, 8);
  return bytes && addr(littleEndian(bytes));
}

/** The jump tables of one function. */
class Tables {
  readonly #steps: readonly FlowStep[];
  readonly #index: ReadonlyMap<bigint, number>;
  readonly #elf: ElfFile;
  /** In the order of addresses. */
  readonly #all: readonly Addr[];
  readonly #cases = new Map<Addr, readonly number[]>();

  constructor(steps: readonly FlowStep[], index: ReadonlyMap<bigint, number>, elf: ElfFile) {
    this.#steps = steps;
    this.#index = index;
    this.#elf = elf;
    const named = steps.flatMap(({ names, kind }) => (names === undefined || kind === 'call' ? [] : [names]));
    this.#all = [...new Set(named)].filter((at) => !index.has(at)).sort((a, b) => (a < b ? -1 : 1));
  }

  /** Where an indirect jump leads: by the table that the code right before it names, else by any of the function's. */
  casesAt(jump: number): readonly number[] {
    for (let i = jump; i >= 0; i--) {
      const { names, kind } = this.#steps[i] as FlowStep;
      if (i < jump && kind !== 'next' && kind !== 'store') break;
      const cases = names === undefined ? [] : this.#casesOf(names);
      if (cases.length > 0) return cases;
    }
    return [...new Set(this.#all.flatMap((table) => this.#casesOf(table)))];
  }

  #casesOf(table: Addr): readonly number[] {
    const known = this.#cases.get(table);
    if (known) return known;
    const behind = this.#all[this.#all.indexOf(table) + 1];
    const found = new Set<number>();
    for (const { size, targetOf } of tableForms) {
      const targets: number[] = [];
      for (let entry = 0; entry < mostSteps; entry++) {
        const at = addr(table + BigInt(entry * size));
        const bytes = behind !== undefined && at >= behind ? undefined : this.#elf.bytesAt(at, size);
        const node = bytes && this.#index.get(targetOf(new DataView(bytes.buffer, bytes.byteOffset, size), table));
        if (node === undefined) break;
        targets.push(node);
      }
      if (targets.length >= 2) for (const node of targets) found.add(node);
    }
    const cases = [...found];
    this.#cases.set(table, cases);
    return cases;
  }
}

/** Entries of jump tables: distances from the table, or addresses. */
const tableForms: readonly {
  readonly size: number;
  targetOf(entry: DataView, table: Addr): bigint;
}[] = [
  { size: 4, targetOf: (entry, table) => table + BigInt(entry.getInt32(0, true)) },
  { size: 4, targetOf: (entry) => BigInt(entry.getUint32(0, true)) },
  { size: 8, targetOf: (entry) => entry.getBigUint64(0, true) },
];
