import { reachedFrom } from '../../base/search.js';
import { isPointer } from './short-names.js';
import type { FutureSet, FutureState, FutureType, HeldFuture } from './types.js';

/** A Future, or the known facts of one without a type of its own: a `dyn Future`, an awaitee without debug info. */
export type FutureNode = FutureType | string;

/** How one Future depends on another. `may-be`: a `dyn Future` may be this one. */
type DependencyKind = 'awaits' | 'holds' | 'may-be';

export interface Dependency {
  readonly kind: DependencyKind;
  readonly target: FutureNode;
  /** Where it is held, if that says more than `__awaitee`: `a.Pending.0`. */
  readonly path: string;
  /** Bytes that it takes in place; 0 behind a pointer. */
  readonly size: number;
  /** Elements, in arrays. */
  readonly count: number;
  readonly pointer: boolean;
  /** The states in which it is held; none for a Future written by hand. */
  readonly states: readonly FutureState[];
}

/** What a Future depends on directly, in the order of its states: one entry for each target and way to it. */
export function dependenciesOf(future: FutureType): Dependency[] {
  const found = new Map<string, Dependency & { readonly states: FutureState[] }>();
  const add = (held: HeldFuture, state: FutureState | undefined): void => {
    const target = held.future ?? held.typeName;
    const path = held.path.replace(/^__awaitee\.?/, '');
    const kind = held.role === 'awaitee' ? 'awaits' : 'holds';
    const key = `${kind} ${path} ${typeof target === 'string' ? target : target.typeOffset}`;
    const known = found.get(key);
    if (known !== undefined) {
      // A variable may have two slots in one state: the argument, and the place where it was moved to.
      if (state !== undefined && known.states.at(-1) !== state) known.states.push(state);
      return;
    }
    const pointer = held.hops.length > 0;
    const count = held.repeats.reduce((product, { count }) => product * count, 1);
    const size = pointer ? 0 : held.size;
    found.set(key, { kind, target, path, size, count, pointer, states: state === undefined ? [] : [state] });
  };
  for (const held of future.holds) add(held, undefined);
  const awaited = new Set(
    future.states.flatMap((s) => s.holds.filter((h) => h.role === 'awaitee').map((h) => h.future)),
  );
  for (const state of future.states) {
    for (const held of state.holds) {
      // An argument that the Future then awaits was moved: that is one dependency, not two.
      const moved = held.role === 'captured' && (state.name !== 'Unresumed' || awaited.has(held.future));
      if (!moved) add(held, state);
    }
  }
  return [...found.values()];
}

/** The Futures asked for and all that they depend on. */
export class FutureGraph {
  readonly #set: FutureSet;
  readonly #edges = new Map<FutureNode, readonly Dependency[]>();

  constructor(set: FutureSet, wanted: readonly FutureType[]) {
    this.#set = set;
    const queue: FutureNode[] = [...wanted];
    // The queue grows during the loop.
    for (const node of queue) {
      if (this.#edges.has(node)) continue;
      const edges = typeof node === 'string' ? this.#behind(node) : dependenciesOf(node);
      this.#edges.set(node, edges);
      queue.push(...edges.map((edge) => edge.target));
    }
  }

  get nodes(): readonly FutureNode[] {
    return [...this.#edges.keys()];
  }

  edges(node: FutureNode): readonly Dependency[] {
    return this.#edges.get(node) ?? [];
  }

  /**
   * The roots of trees: Futures that nothing here awaits or holds; then the first of each cycle that nothing leads
   * into.
   */
  roots(): readonly FutureType[] {
    const futures = this.nodes.filter((node) => typeof node !== 'string');
    const targets = new Set(
      this.nodes.flatMap((node) =>
        this.edges(node)
          .map(({ target }) => target)
          .filter((target) => target !== node),
      ),
    );
    const roots = futures.filter((future) => !targets.has(future) && !isPointer(future));
    const reach = (from: readonly FutureNode[]): Set<FutureNode> =>
      reachedFrom(from, (node) => this.edges(node).map(({ target }) => target));
    const reached = reach(roots);
    for (const future of futures) {
      if (reached.has(future) || isPointer(future)) continue;
      roots.push(future);
      for (const node of reach([future])) reached.add(node);
    }
    return roots;
  }

  #behind(typeName: string): Dependency[] {
    return this.#set.behindDyn(typeName).map((target) => ({
      kind: 'may-be',
      target,
      path: '',
      size: 0,
      count: 1,
      pointer: true,
      states: [],
    }));
  }
}
