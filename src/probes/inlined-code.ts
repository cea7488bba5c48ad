import type { Architecture } from '../arch/index.js';
import type { Addr } from '../base/addr.js';
import { AddressMap } from '../base/address-map.js';
import { madeOnce } from '../base/made-once.js';
import type { RegisterReader } from '../base/memory-reader.js';
import { type BlockEdge, type BlocksHere, stackNumber } from '../calls/index.js';
import { type DebugInfo, type Die, rangesOf } from '../dwarf/index.js';
import type { FlowGraph } from './flow-graph.js';
import { type FramePlace, FunctionGraphs } from './function-graphs.js';
import { type InlinedBlock, unchangedFrom } from './inlined-block.js';
import { InnerWindows } from './inner-windows.js';

/** More copies than these do not lie in each other: every frame has 16 bytes, by both psABIs. */
export const mostLevels = 14;

/** The code of functions that hold inlined copies; keeps what it has found. */
export class InlinedCode {
  readonly #debug: DebugInfo;
  readonly #located = new Map<bigint, boolean>();
  readonly graphs: FunctionGraphs;
  readonly windows: InnerWindows;

  constructor(debug: DebugInfo, arch: Architecture) {
    this.#debug = debug;
    this.graphs = new FunctionGraphs(debug, arch);
    this.windows = new InnerWindows(this.graphs, arch, debug.elf);
  }

  isPatchable(graph: FlowGraph, node: number): boolean {
    return typeof this.windows.around({ graph, node }).windows !== 'string';
  }

  /**
   * Where an end is seen: there, or at the first instruction behind it that can be patched, if memory is still as it
   * was.
   */
  endAt(end: number, graph: FlowGraph, block: InlinedBlock): number {
    return unchangedFrom(graph, end, block).find((node) => this.isPatchable(graph, node)) ?? end;
  }

  /** An instruction that the compiler made for no place in the source has no line, or the line 0. */
  isLocated(graph: FlowGraph, node: number): boolean {
    const { address } = graph.steps[node] ?? {};
    if (address === undefined) return false;
    return madeOnce(this.#located, address, () => (this.#debug.lineAt(address)?.line ?? 0) > 0);
  }
}

/** The instructions of functions and copies. */
export function nodesIn(graph: FlowGraph, dies: readonly Die[]): Set<number> {
  const nodes = (die: Die): number[] => {
    const { codes } = die.unit;
    return rangesOf(die).flatMap(({ low, high }) => graph.between(codes.fromCode(low), codes.fromCode(high)));
  };
  return new Set(dies.flatMap(nodes));
}

/** A place where a copy begins or ends. */
interface EdgePlace {
  readonly address: Addr;
  readonly frame: FramePlace;
}

/** An inlined copy that is traced as a block. */
interface Copy<B extends EdgePlace> {
  readonly block: number;
  /** Of its calls: see `BlockEdge`. */
  readonly key: bigint;
  /** How many others are around it. */
  readonly level: number;
  readonly begins: readonly B[];
  readonly ends: readonly EdgePlace[];
}

/** Which inlined copies begin and end at an address. */
export class BlockEdges<B extends EdgePlace> {
  readonly #at = new AddressMap<{ readonly begun: Edge<B>[]; readonly ended: BlockEdge[] }>();

  constructor(copies: readonly Copy<B>[]) {
    for (const copy of [...copies].sort((a, b) => a.level - b.level)) {
      for (const place of copy.begins) this.#here(place).begun.push(new Edge(copy, place));
      for (const place of copy.ends) this.#here(place).ended.unshift(new Edge(copy, place));
    }
  }

  at(pc: Addr): BlocksHere | undefined {
    return this.#at.get(pc);
  }

  /** Where the block begins there; without one the first, of which there is hardly ever more. */
  beginAt(pc: Addr, block?: number): { readonly block: number; readonly place: B } | undefined {
    const begun = this.#at.get(pc)?.begun;
    if (begun === undefined) return undefined;
    for (let i = 0; i < begun.length; i++) if (block === undefined || begun[i]?.block === block) return begun[i];
    return undefined;
  }

  #here({ address }: EdgePlace) {
    return madeOnce(this.#at, address, () => ({ begun: [], ended: [] }));
  }
}

class Edge<P extends EdgePlace> implements BlockEdge {
  readonly block: number;
  readonly key: bigint;
  readonly place: P;
  readonly #level: number;

  constructor({ block, key, level }: Omit<Copy<EdgePlace>, 'begins' | 'ends'>, place: P) {
    this.block = block;
    this.key = key;
    this.#level = level;
    this.place = place;
  }

  stackPointer(registers: RegisterReader): number | undefined {
    const { register, offset } = this.place.frame;
    const base = registers.register(register);
    return base === undefined ? undefined : stackNumber(base) + offset - 1 - this.#level;
  }
}
