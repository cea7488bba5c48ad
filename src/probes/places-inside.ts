// Places inside functions, where a probe or a stop may come without a breakpoint.
import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import type { DebugInfo } from '../dwarf/index.js';
import { FunctionGraphs } from './function-graphs.js';
import { type GraphPlace, InnerWindows } from './inner-windows.js';
import { entryPlan, type PatchWindow, type ReadPlan } from './read-plan.js';
import { producerOf } from './resolve-functions.js';

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
  const places: GraphPlace[] = [];
  for (const address of addresses) {
    const host = debug.functionAt(address)?.die;
    const graph = host && arch.codeFlow ? graphs.of(host) : undefined;
    const node = graph?.steps.findIndex((step) => step.address === address) ?? -1;
    const producer = host && producerOf(host);
    const scratchIsFree = producer === 'rustc' || producer === 'clang';
    found.set(address, { window: 'the code around it cannot be followed', scratchIsFree });
    if (graph && node >= 0) places.push({ graph, node });
  }
  for (const [address, window] of new InnerWindows(graphs, arch, debug.elf).choose(places))
    found.set(address, { scratchIsFree: found.get(address)?.scratchIsFree ?? false, window });
  return found;
}

/** The plan of a place inside a function at which nothing is read. */
export function planInside(address: Addr, name: string, patch: PlacePatch | undefined): ReadPlan {
  const { window = 'its code is not known', scratchIsFree = false } = patch ?? {};
  const plan = { ...entryPlan({ address, codeSize: 0, name }), scratchIsFree };
  if (typeof window === 'string') return { ...plan, needsStop: `it lies inside a function: ${window}` };
  return { ...plan, inside: { window, taken: [], noted: [], groups: [] } };
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
