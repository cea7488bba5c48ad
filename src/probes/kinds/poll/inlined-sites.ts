import { crc32 } from 'node:zlib';
import type { Architecture, FlowStep } from '../../../arch/index.js';
import type { FutureSet, FutureType, InlinedPoll } from '../../../async/futures/index.js';
import type { Addr } from '../../../base/addr.js';
import { type DebugInfo, type Die, inlinedInto } from '../../../dwarf/index.js';
import { Shapes } from '../../../values/index.js';
import type { FlowGraph } from '../../flow-graph.js';
import { type FramePlace, mayLeadAnywhere } from '../../function-graphs.js';
import { inlinedBlock, straightFrom, untilStore } from '../../inlined-block.js';
import { InlinedCode, nodesIn } from '../../inlined-code.js';
import { chooseWindows, type WindowsAround } from '../../inner-windows.js';
import type { PatchWindow } from '../../read-plan.js';
import { type FoundSite, KeptSites } from './kept-sites.js';
import { PollsAround } from './poll-around.js';
import { type HostedTask, type Inlining, type SelfPlace, selfPlace } from './self-place.js';

/** The poll of a Future that was inlined into a function: the places in it where the poll begins and ends. */
export interface InlinedSite {
  readonly begins: readonly {
    readonly address: Addr;
    readonly frame: FramePlace;
    readonly self: SelfPlace;
    /** The Future's bytes are surely in memory here: elsewhere its state may be known to the compiler only. */
    readonly isStored: boolean;
  }[];
  readonly ends: readonly { readonly address: Addr; readonly frame: FramePlace }[];
}

/** Why a copy has no site, in words for the user. */
export interface NoSite {
  readonly reason: string;
}

/** Finds the places of inlined polls; keeps the control flow of the functions that it has looked at. */
export class InlinedSites {
  readonly #debug: DebugInfo;
  readonly around: PollsAround;
  readonly #arch: Architecture;
  readonly #tasks: ReadonlyMap<number, HostedTask>;
  readonly #code: InlinedCode;
  readonly #about: Omit<Inlining, 'copy' | 'host' | 'task'>;
  readonly #kept: KeptSites;
  /** The windows around each place of the copies that were found. */
  readonly #windows = new Map<bigint, WindowsAround>();

  /** `tasks`: of functions whose first argument is a task's header, by the offsets of their DIEs. */
  constructor(
    debug: DebugInfo,
    futures: FutureSet,
    arch: Architecture,
    tasks: ReadonlyMap<number, HostedTask> = new Map(),
  ) {
    this.#tasks = tasks;
    this.#debug = debug;
    this.around = new PollsAround(futures);
    this.#arch = arch;
    this.#code = new InlinedCode(debug, arch);
    this.#about = { futures, around: this.around, arch, graphs: this.#code.graphs, shapes: new Shapes(debug) };
    this.#kept = new KeptSites(
      debug,
      crc32([...tasks].map(([host, { future, offset }]) => [host, future.typeOffset, offset]).join()),
    );
  }

  find(future: FutureType, { die: copy, host }: InlinedPoll): InlinedSite | NoSite {
    const found = this.#kept.of(copy, () =>
      this.#debug.attempt(copy.unit, () => this.#findWithWindows(future, copy, host)),
    );
    for (const around of found?.windows ?? []) this.#windows.set(around.address, around);
    return found?.site ?? { reason: 'its debug info is damaged' };
  }

  /** Keeps what was found, for the next start. */
  keep(): void {
    this.#kept.keep();
  }

  #findWithWindows(future: FutureType, copy: Die, host: Die): FoundSite {
    const site = this.#find(future, copy, host);
    const graph = this.#code.graphs.of(host);
    if (!graph || !('begins' in site)) return { site, windows: [] };
    const windows = [...site.begins, ...site.ends].map(({ address }) =>
      this.#code.windows.around({ graph, node: graph.between(address, address + 1n)[0] ?? -1 }),
    );
    return { site, windows };
  }

  #find(future: FutureType, copy: Die, host: Die): InlinedSite | NoSite {
    if (!this.#arch.codeFlow) return { reason: `jumps of ${this.#arch.name} are not followed` };
    const graph = this.#code.graphs.of(host);
    if (!graph) return { reason: 'the code around it cannot be followed' };
    if (!this.#code.graphs.isClosed(graph)) return { reason: mayLeadAnywhere };
    const own = nodesIn(graph, [copy]);
    const all = nodesIn(graph, this.around.merged(host));
    const others = future.inlined.filter(({ die }) => this.around.isMerged({ die, host }));
    const shared = nodesIn(
      graph,
      others.map(({ die }) => die),
    );
    const isForeign = (node: number): boolean => !all.has(node) && this.#code.isLocated(graph, node);
    const isSwitch = this.#switchIn(graph, own, { future, copy });
    const isWithinPoll = (): boolean => this.around.isWithinPoll(copy, host);
    const block = inlinedBlock(graph, { copy: own, shared, isForeign, isSwitch, isWithinPoll });
    if (typeof block === 'string') return { reason: block };
    const begins: InlinedSite['begins'][number][] = [];
    const ends: InlinedSite['ends'][number][] = [];
    const beginAt = (node: number) => {
      const straight = straightFrom(graph, node, block);
      // Behind the last store of the poll before, which may be of its state.
      const nodes = block.again.includes(node) ? untilStore(graph, straight) : straight;
      return this.#beginAt(nodes, graph, { future, copy, host });
    };
    for (const node of block.begins) {
      const early = block.beforeLoop.get(node)?.map(beginAt) ?? [];
      const found = early.length > 0 && early.every((each) => each !== undefined) ? early : [beginAt(node)];
      const isStored = block.begins.length === 1 || graph.steps[node]?.kind === 'indirect';
      for (const begin of found) {
        if (!begin) return { reason: 'its debug info does not say where the Future is' };
        begins.push({ ...begin, isStored });
        if (block.again.includes(node)) ends.push(begin);
      }
    }
    for (const node of new Set(block.ends.map((end) => this.#code.endAt(end, graph, block)))) {
      const { address } = graph.steps[node] as FlowStep;
      const frame = this.#code.graphs.frameAt(address);
      if (!frame) return { reason: 'no call frame information says where its frame is' };
      ends.push({ address, frame });
    }
    return { begins, ends };
  }

  /**
   * Distinguishes the switch over the states of a Future that the compiler made. It has the Future's own place in the
   * source. No part of it is what was inlined into the poll. On one line with the body it is what comes first.
   */
  #switchIn(
    graph: FlowGraph,
    own: ReadonlySet<number>,
    { future, copy }: { readonly future: FutureType; readonly copy: Die },
  ): (node: number) => boolean {
    if (future.kind === 'impl') return () => false;
    const inner = nodesIn(graph, inlinedInto(copy));
    const columns = new Map<number, number>();
    for (const node of own) {
      const place = inner.has(node) ? undefined : this.#debug.lineAt((graph.steps[node] as FlowStep).address);
      if (place && place.line === future.line && place.file === future.file) columns.set(node, place.column);
    }
    const first = Math.min(...columns.values());
    const isDecision = (node: number): boolean => ['branch', 'indirect'].includes(graph.steps[node]?.kind ?? '');
    return (node) => columns.get(node) === first && isDecision(node);
  }

  /**
   * The first of these instructions at which everything is known. One that can be patched is preferred, then one where
   * a register holds what a word of the frame holds elsewhere.
   */
  #beginAt(
    nodes: readonly number[],
    graph: FlowGraph,
    { future, copy, host }: { readonly future: FutureType; readonly copy: Die; readonly host: Die },
  ): Omit<InlinedSite['begins'][number], 'isStored'> | undefined {
    let best: { readonly begin: Omit<InlinedSite['begins'][number], 'isStored'>; readonly worth: number } | undefined;
    for (const node of nodes) {
      const isPatchable = this.#code.isPatchable(graph, node);
      if (best && !isPatchable) continue;
      const { address } = graph.steps[node] as FlowStep;
      const task = this.#tasks.get(host.offset);
      const self = selfPlace(future, address, { copy, host, task, ...this.#about });
      const frame = self && this.#code.graphs.frameAt(address);
      if (!frame) continue;
      const worth = (isPatchable ? 2 : 0) + (self.through === undefined ? 1 : 0);
      if (worth > (best?.worth ?? -1)) best = { begin: { address, frame, self }, worth };
      if (worth === 3) break;
    }
    return best?.begin;
  }

  /** A window for each place of these sites, which were found, by address; or why there is none. */
  windows(sites: readonly InlinedSite[]): ReadonlyMap<bigint, PatchWindow | string> {
    const places = sites.flatMap(({ begins, ends }) => [...begins, ...ends]);
    return chooseWindows(places.flatMap(({ address }) => this.#windows.get(address) ?? []));
  }
}
