import type { FlowStep } from '../arch/index.js';
import { reachedFrom } from '../base/search.js';
import type { FlowGraph } from './flow-graph.js';

/** Where a poll that was inlined begins and ends. Numbers are nodes of the graph. */
export interface InlinedBlock {
  /**
   * Each poll comes to one of these first. While it runs it may come to others of them: it begins with the first, and
   * the next one begins behind an end.
   */
  readonly begins: readonly number[];
  /** Each poll that does not panic comes to one of these, and then it is over. Other ways may lead there too. */
  readonly ends: readonly number[];
  /** Of `begins`: the poll that runs is over here as well, because the next one follows it with nothing between. */
  readonly again: readonly number[];
  /** Of each that is not `again`: what is run once before the poll's own loop that it is in, and stands for it. */
  readonly beforeLoop: ReadonlyMap<number, readonly number[]>;
}

/** The instructions of one copy. */
interface CopyNodes {
  readonly copy: ReadonlySet<number>;
  /** Those that the compiler merged out of this copy and other ones of the same poll. */
  readonly shared: ReadonlySet<number>;
  /** Not of the copy for sure. What the compiler merged, or made for no place in the source, may belong to it. */
  isForeign(node: number): boolean;
  /** For sure the switch over the states of an `async fn`, or a part of it: each poll comes there first and once. */
  isSwitch(node: number): boolean;
  /** Another poll is around it, and returns as soon as this one is pending. */
  isWithinPoll(): boolean;
  /** Ends count from where the function around does not return. */
  readonly endsAnywhere?: boolean;
}

/** Or why that is not known for sure, in words for the user. */
type BlockVerdict = InlinedBlock | string;

/** More breakpoints for one poll than this are not worth it. */
const mostPlaces = 32;

/**
 * Finds where an inlined copy begins and ends, from the instructions that belong to it.
 *
 * The optimiser mixes these with those of the function around, and may compute something of the copy although it is
 * not run. So only an instruction with an effect proves that the copy runs: a branch, a call, or a store. Only a branch
 * or a call of the code around proves that the copy is over, because stores of both are reordered.
 *
 * What has no line in the source, or was merged, may belong to either and proves nothing.
 *
 *     a poll begins   at a proof of the copy, on a way from the start or from such a branch or call around it
 *     and ends        at a branch, a call or a return of the code around, on a way from the copy
 */
export function inlinedBlock(graph: FlowGraph, nodes: CopyNodes): BlockVerdict {
  const reached = [...nodes.copy].filter((node) => graph.isReached(node));
  return reached.length === 0 ? 'no way leads to its code' : new BlockSearch(graph, nodes, reached).block();
}

class BlockSearch {
  readonly #graph: FlowGraph;
  readonly #nodes: CopyNodes;
  /** Instructions that prove that the copy runs. */
  readonly #proof: Set<number>;

  constructor(graph: FlowGraph, nodes: CopyNodes, reached: readonly number[]) {
    this.#graph = graph;
    this.#nodes = nodes;
    const effects = reached.filter((node) => decides(graph, node) || graph.steps[node]?.kind === 'store');
    this.#proof = new Set(effects.length > 0 ? effects : reached);
  }

  block(): BlockVerdict {
    const [graph, proof, isOut] = [this.#graph, this.#proof, this.#isOut];
    const outs = graph.steps.flatMap((_, node) =>
      graph.isReached(node) && isOut(node) && !proof.has(node) ? [node] : [],
    );
    const stops = (node: number): boolean => proof.has(node) || isOut(node);
    const starts = [0, ...outs.flatMap(this.#behind)];
    const reachedFirst = [...graph.reachable(starts, graph.next, stops)].filter((node) => proof.has(node));
    const moved = this.#movedBehind(reachedFirst);
    for (const node of moved) proof.delete(node);
    const begins = reachedFirst.filter((node) => !moved.has(node));
    const again = this.#repeats(begins);
    if (!again || this.#runsInto(new Set(begins))) return 'one poll may follow another without a branch';
    for (const node of again) if (!begins.includes(node)) begins.push(node);
    const returning = graph.reachable([...graph.leaves, ...begins], graph.before, () => false);
    const ends = this.#ends();
    if (ends.some((node) => proof.has(node) && graph.steps[node]?.kind === 'branch'))
      return 'it leaves its function with a branch';
    if (this.#isDivided(ends, new Set(begins))) return 'its code is divided by other code';
    // From others there is only a way to a panic.
    const left = this.#nodes.endsAnywhere ? ends : ends.filter((node) => returning.has(node));
    if (begins.length + left.length > mostPlaces) return `it begins and ends in ${begins.length + left.length} places`;
    const cyclic = begins.filter((begin) => !again.includes(begin));
    const beforeLoop = new Map(cyclic.map((begin) => [begin, this.#beforeLoop(begin)]));
    return { begins: inOrder(begins), ends: inOrder(left), again: inOrder(again), beforeLoop };
  }

  /**
   * A loop of the copy in which a poll begins may run millions of times. These lead into the loop, and nowhere else.
   * None if there is no loop, or if a way into it leads elsewhere, too, or comes to no proof of the copy.
   */
  #beforeLoop(begin: number): readonly number[] {
    const [graph, proof, isOut, behind] = [this.#graph, this.#proof, this.#isOut, this.#behind];
    const forth = graph.reachable(behind(begin), graph.next, isOut);
    if (!forth.has(begin)) return [];
    const back = graph.reachable([begin], graph.before, isOut);
    const loop = new Set([...forth].filter((node) => back.has(node)));
    if (loop.has(0)) return [];
    const into = new Set([...loop].flatMap((node) => graph.before[node] ?? []));
    const ways = [...into].filter((node) => !loop.has(node) && graph.isReached(node));
    const stops = (node: number): boolean => proof.has(node) || isOut(node);
    const isProven = (node: number): boolean =>
      [...graph.reachable([node], graph.next, stops)].every((each) => proof.has(each) || !isOut(each));
    return ways.every((node) => behind(node).length === 1 && !stops(node) && isProven(node)) ? inOrder(ways) : [];
  }

  /** The copy is over there for sure. */
  readonly #isOut = (node: number): boolean => {
    const { copy, isForeign } = this.#nodes;
    return this.#graph.leaves.has(node) || (decides(this.#graph, node) && !copy.has(node) && isForeign(node));
  };

  readonly #behind = (node: number): readonly number[] => this.#graph.next[node] ?? [];

  #isOwn(node: number): boolean {
    return this.#nodes.copy.has(node) || this.#nodes.shared.has(node);
  }

  /**
   * Where one poll follows another with nothing of the code around between that proves the first one over: an executor
   * that spins. The switch over the states distinguishes them, which the compiler may have doubled. Undefined if
   * polls may follow each other, and no such switch follows. Within another poll they do not, so a loop there is the
   * poll's own.
   */
  #repeats(begins: readonly number[]): readonly number[] | undefined {
    const { isForeign, isSwitch, isWithinPoll } = this.#nodes;
    const [graph, proof, isOut, behind] = [this.#graph, this.#proof, this.#isOut, this.#behind];
    const isTable = (node: number): boolean => graph.steps[node]?.kind === 'indirect' && isSwitch(node);
    const own = new Set(begins);
    const inner = graph.reachable(begins.flatMap(behind), graph.next, isOut);
    const cyclic = begins.filter((begin) => graph.reachable(behind(begin), graph.next, isOut).has(begin));
    const doubled = [...inner].filter((node) => proof.has(node) && isSwitch(node) && !own.has(node));
    if (cyclic.every(isTable) && doubled.every(isTable)) return [...cyclic, ...doubled];
    const acts = [...inner].filter(
      (node) => graph.steps[node]?.kind === 'store' && !this.#isOwn(node) && isForeign(node),
    );
    const behindActs = graph.reachable(acts.flatMap(behind), graph.next, (node) => proof.has(node) || isOut(node));
    if (doubled.some((node) => behindActs.has(node))) return undefined;
    if (cyclic.length === 0) return [];
    if (!cyclic.some(isSwitch) && isWithinPoll()) return [];
    const [only, ...others] = begins;
    return only !== undefined && others.length === 0 && isSwitch(only) ? [only] : undefined;
  }

  /**
   * Branches of the copy that the compiler has moved behind its end: the test of a `?`, run when the function around
   * has dropped the Future. No way leads there but through the copy, and from there on the copy only branches. A poll
   * would store something, its state at least.
   */
  #movedBehind(begins: readonly number[]): ReadonlySet<number> {
    const graph = this.#graph;
    const direct = graph.reachable([0], graph.next, (node) => this.#proof.has(node));
    const acts = (node: number): boolean => {
      const { kind } = graph.steps[node] as FlowStep;
      return this.#isOwn(node) && kind !== 'next' && kind !== 'branch';
    };
    const isMoved = (begin: number): boolean => ![...graph.reachable([begin], graph.next, this.#isOut)].some(acts);
    return new Set(begins.filter((begin) => !direct.has(begin) && isMoved(begin)));
  }

  /**
   * Whether a way leads from an end to a beginning on which the code around does nothing but branch. It neither makes
   * another Future nor waits, so the end may lie in the middle of the copy.
   */
  #isDivided(ends: readonly number[], begins: ReadonlySet<number>): boolean {
    const graph = this.#graph;
    const acts = (node: number): boolean => {
      const kind = graph.steps[node]?.kind;
      return (kind === 'store' || kind === 'call') && !this.#isOwn(node);
    };
    const from = ends.filter((end) => !acts(end)).flatMap(this.#behind);
    const stops = (node: number): boolean => begins.has(node) || acts(node);
    return [...graph.reachable(from, graph.next, stops)].some((node) => begins.has(node));
  }

  /**
   * The first nodes behind the copy from where no way leads back into it before it is over. The first ones, because the
   * function around may soon overwrite the Future.
   */
  #ends(): number[] {
    const [graph, proof, isOut] = [this.#graph, this.#proof, this.#isOut];
    const stays = graph.reachable([...proof, ...this.#nodes.shared], graph.before, isOut);
    const isPast = (node: number): boolean => isOut(node) || (!stays.has(node) && !this.#nodes.copy.has(node));
    const from = [...proof].flatMap((node) => (isOut(node) ? [node] : this.#behind(node)));
    return [...graph.reachable(from, graph.next, isPast)].filter(isPast);
  }

  /**
   * Whether a way leads from the copy out of it and into its beginning, past no branch or call: two polls would look
   * like one. Within a block of instructions they are mixed anyway.
   */
  #runsInto(begins: ReadonlySet<number>): boolean {
    const isJoin = (node: number): boolean => (this.#graph.before[node]?.length ?? 0) > 1;
    const on = (from: number, left: boolean, jumped: boolean): Way[] =>
      this.#behind(from).map((node) => [node, left, jumped || isJoin(node)]);
    const ways = reachedFrom([...this.#proof].flatMap((node) => on(node, false, false)).map(keyOf), (key) => {
      const [node, left, jumped] = wayOf(key);
      // Back in the copy behind foreign instructions: still the same way, as long as nothing proves anything.
      const goesOn = !begins.has(node) && !this.#isOut(node) && (left || !this.#nodes.copy.has(node));
      return goesOn ? on(node, true, jumped).map(keyOf) : [];
    });
    return [...ways].map(wayOf).some(([node, left, jumped]) => begins.has(node) && left && jumped);
  }
}

/** At a node, whether the way has left the copy, and whether it has come to where others join it. */
type Way = readonly [node: number, left: boolean, jumped: boolean];

function keyOf([node, left, jumped]: Way): number {
  return node * 4 + (left ? 2 : 0) + (jumped ? 1 : 0);
}

function wayOf(key: number): Way {
  return [key >> 2, (key & 2) !== 0, (key & 1) !== 0];
}

function decides({ steps }: FlowGraph, node: number): boolean {
  const kind = steps[node]?.kind;
  return kind === 'branch' || kind === 'call' || kind === 'indirect';
}

/** Of these the first ones, up to what writes to memory. */
export function untilStore(graph: FlowGraph, nodes: readonly number[]): readonly number[] {
  const store = nodes.findIndex((node) => graph.steps[node]?.kind === 'store');
  return store < 0 ? nodes : nodes.slice(0, store);
}

/** A node, and those around it that are run exactly as often; those behind it first. */
export function straightFrom(graph: FlowGraph, begin: number, block: InlinedBlock): number[] {
  const others = new Set([...block.begins, ...block.ends]);
  const nodes = [begin];
  for (let node = begin; nodes.length < 64; ) {
    const [only, ...more] = graph.next[node] ?? [];
    if (only === undefined || more.length > 0 || others.has(only) || graph.before[only]?.length !== 1) break;
    if (graph.steps[node]?.kind === 'call') break;
    nodes.push(only);
    node = only;
  }
  for (let node = begin; nodes.length < 64; ) {
    const [only, ...more] = graph.before[node] ?? [];
    if (only === undefined || more.length > 0 || others.has(only) || graph.next[only]?.length !== 1) break;
    if (decides(graph, only)) break;
    nodes.push(only);
    node = only;
  }
  return nodes;
}

/**
 * An end, and the instructions behind it that come before anything is written. Each way from the end leads to all of
 * them; other ways may lead there, too.
 */
export function unchangedFrom(graph: FlowGraph, end: number, { begins }: InlinedBlock): number[] {
  const nodes = [end];
  for (let node = end; nodes.length < 8; ) {
    const step = graph.steps[node];
    const [only] = graph.next[node] ?? [];
    if (step?.kind !== 'next' || step.writesFrame || only === undefined || begins.includes(only)) break;
    nodes.push(only);
    node = only;
  }
  return nodes;
}

function inOrder(nodes: readonly number[]): number[] {
  return [...nodes].sort((a, b) => a - b);
}
