import type { Architecture } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { madeOnce } from '../base/made-once.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { leavesScratch } from './describer.js';
import type { FlowGraph } from './flow-graph.js';
import { FunctionGraphs, mayLeadAnywhere } from './function-graphs.js';
import { entryPlan, type PatchWindow, type ReadPlan } from './read-plan.js';

/** An instruction inside a function: a node of its graph. */
export interface GraphPlace {
  readonly graph: FlowGraph;
  readonly node: number;
}

/**
 * Instructions around a place that a patch may replace. Control enters such a window at its first instruction only.
 * A landing pad of an unwinder never lies behind an instruction that runs on into it, so it begins none but the first.
 */
export class InnerWindows {
  readonly #graphs: FunctionGraphs;
  readonly #arch: Architecture;
  readonly #elf: ElfFile;
  readonly #found = new Map<bigint, readonly PatchWindow[] | string>();

  constructor(graphs: FunctionGraphs, arch: Architecture, elf: ElfFile) {
    this.#graphs = graphs;
    this.#arch = arch;
    this.#elf = elf;
  }

  /** All windows around a place, the preferred one first; or why there is none, in words for the user. */
  around(place: GraphPlace): WindowsAround {
    const address = addressOf(place);
    return { address, windows: madeOnce(this.#found, address, () => this.#look(place)) };
  }

  #look(place: GraphPlace): readonly PatchWindow[] | string {
    const { probeCode, codeFlow } = this.#arch;
    if (!probeCode) return `trampolines for ${this.#arch.name} are not known`;
    const { graph } = place;
    if (!this.#graphs.isClosed(graph)) return mayLeadAnywhere;
    if (graph.isReserved(place.node)) return 'it lies between a load that reserves memory and the store to it';
    let why = 'a branch leads into the bytes that a patch would replace';
    const found: PatchWindow[] = [];
    // Far jumps need no room near the code.
    const longestFirst = [...probeCode.patches].sort((a, b) => b.bytes - a.bytes);
    for (const { kind, bytes } of longestFirst) {
      for (const window of windowsAround(place, bytes, codeFlow?.temporaries ?? [])) {
        const code = this.#elf.bytesAt(window.address, window.length);
        if (!code) return 'its code is not in the ELF';
        const offset = Number(addressOf(place) - window.address);
        const verdict = probeCode.displaceInside(code, window.address, offset, { kind, free: window.free });
        if (!('refused' in verdict)) found.push(window);
        else if (kind === 'near') why = verdict.refused;
      }
    }
    return found.length > 0 ? found : why;
  }
}

/** A place, and what {@link InnerWindows.around} says of it. */
export interface WindowsAround {
  readonly address: Addr;
  readonly windows: readonly PatchWindow[] | string;
}

/** A window for each of these places, by its address: they do not overlap, and hold no other place. */
export function chooseWindows(places: readonly WindowsAround[]): ReadonlyMap<bigint, PatchWindow | string> {
  const byAddress = new Map<bigint, WindowsAround>(places.map((place) => [place.address, place]));
  const order = [...byAddress.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
  const chosen = new Map<bigint, PatchWindow | string>();
  let free = 0n;
  for (const [index, { address, windows }] of order.entries()) {
    const behind = order[index + 1]?.address;
    const before = order[index - 1]?.address ?? -1n;
    const fits = (each: PatchWindow): boolean =>
      each.address >= free && each.address > before && (behind === undefined || endOf(each) <= behind);
    const window = typeof windows === 'string' ? windows : (windows.find(fits) ?? 'another place is too near');
    chosen.set(address, window);
    if (typeof window !== 'string') free = endOf(window);
  }
  return chosen;
}

/** The shortest windows from each start on, the nearest start first. */
function* windowsAround(
  { graph, node }: GraphPlace,
  bytes: number,
  temporaries: readonly string[],
): Generator<PatchWindow> {
  for (let first: number | undefined = node; first !== undefined; first = runsHere(graph, first)) {
    const address = addressOf({ graph, node: first });
    let length = 0;
    for (let last: number | undefined = first; last !== undefined; last = goesOn(graph, last)) {
      length += graph.steps[last]?.length ?? 0;
      const isPast = address + BigInt(length) > addressOf({ graph, node });
      if (isPast && length >= bytes) {
        yield { address, length, free: freeBetween(graph, first, last, temporaries) };
        break;
      }
    }
    const back = Number(addressOf({ graph, node }) - address);
    if (back >= bytes) return;
  }
}

/** A temporary that none of these instructions uses, and whose value is needed neither before nor behind them. */
function freeBetween(
  graph: FlowGraph,
  first: number,
  last: number,
  temporaries: readonly string[],
): string | undefined {
  let used = (graph.next[last] ?? []).reduce((mask, to) => mask | graph.neededAt(to), graph.neededAt(first));
  for (
    let node: number | undefined = first;
    node !== undefined;
    node = node === last ? undefined : goesOn(graph, node)
  ) {
    const { needs = 0, overwrites = 0, kind } = graph.steps[node] ?? { kind: 'next' };
    used |= needs | (kind === 'call' ? 0 : overwrites);
  }
  return temporaries.find((_, bit) => (used & (1 << bit)) === 0);
}

/** The instruction that alone leads to this one, and to nothing else. */
function runsHere(graph: FlowGraph, node: number): number | undefined {
  const [only, ...others] = graph.before[node] ?? [];
  if (only === undefined || others.length > 0 || !isNext(graph, only, node)) return undefined;
  const kind = graph.steps[only]?.kind;
  return kind === 'next' || kind === 'store' ? only : undefined;
}

/** The instruction behind, if only this one leads there. */
function goesOn(graph: FlowGraph, node: number): number | undefined {
  const step = graph.steps[node];
  if (step?.kind !== 'next' && step?.kind !== 'store' && step?.kind !== 'branch') return undefined;
  const next = graph.next[node]?.find((to) => isNext(graph, node, to));
  return next !== undefined && graph.before[next]?.length === 1 ? next : undefined;
}

function isNext({ steps }: FlowGraph, node: number, next: number): boolean {
  const step = steps[node];
  return step !== undefined && steps[next]?.address === step.address + BigInt(step.length);
}

function addressOf({ graph, node }: GraphPlace): Addr {
  return addr(graph.steps[node]?.address ?? 0n);
}

function endOf({ address, length }: PatchWindow): bigint {
  return address + BigInt(length);
}

// Places inside functions, where a probe or a stop may come without a breakpoint.

/** How a place can be patched. */
export interface PlacePatch {
  /** What a patch may replace; or why nothing. */
  readonly window: PatchWindow | string;
  /** See `ReadPlan`. */
  readonly scratchIsFree: boolean;
}

/** Finds room for a patch around each place. */
export function patchesInside(
  addresses: readonly Addr[],
  debug: DebugInfo,
  arch: Architecture,
): ReadonlyMap<bigint, PlacePatch> {
  const graphs = new FunctionGraphs(debug, arch);
  const found = new Map<bigint, PlacePatch>();
  const places: WindowsAround[] = [];
  const windows = new InnerWindows(graphs, arch, debug.elf);
  for (const address of addresses) {
    const host = debug.functionAt(address)?.die;
    const graph = host && arch.codeFlow ? graphs.of(host) : undefined;
    const [node] = graph?.between(address, address + 1n) ?? [];
    const scratchIsFree = host !== undefined && leavesScratch(host);
    found.set(address, { window: 'the code around it cannot be followed', scratchIsFree });
    if (graph && node !== undefined) places.push(windows.around({ graph, node }));
  }
  for (const [address, window] of chooseWindows(places))
    found.set(address, { scratchIsFree: found.get(address)?.scratchIsFree ?? false, window });
  return found;
}

/** The plan of a place inside a function at which nothing is read. `groups`: see `InnerPlace`. */
export function planInside(
  address: Addr,
  name: string,
  patch: PlacePatch | undefined,
  groups: readonly number[] = [],
): ReadPlan {
  const { window = 'its code is not known', scratchIsFree = false } = patch ?? {};
  const plan = { ...entryPlan({ address, codeSize: 0, name }), scratchIsFree };
  const inside = { taken: [], noted: [], groups };
  if (typeof window !== 'string') return { ...plan, inside: { window, ...inside } };
  const nothing = { address, length: 0, free: undefined };
  return { ...plan, needsStop: `it lies inside a function: ${window}`, inside: { window: nothing, ...inside } };
}

/** A place where the target is to stop, and the plans that lead there: the preferred one first. */
export interface PlannedStop {
  readonly place: Addr;
  readonly plans: readonly ReadPlan[];
}

/** Stops at places inside functions. The entry of a function that never returns will do, too. */
export function plannedStops(places: readonly Addr[], debug: DebugInfo, arch: Architecture): readonly PlannedStop[] {
  const patches = patchesInside(places, debug, arch);
  const graphs = new FunctionGraphs(debug, arch);
  return places.map((place) => {
    const patch = patches.get(place);
    const inside = planInside(place, hex(place), patch);
    const host = debug.functionAt(place);
    if (!host || !graphs.neverReturns(host.low)) return { place, plans: [inside] };
    const entry = entryPlan({ address: host.low, codeSize: Number(host.high - host.low), name: host.name });
    return { place, plans: [inside, { ...entry, scratchIsFree: inside.scratchIsFree }] };
  });
}
