import type { Addr } from '../../base/addr.js';
import { madeOnce } from '../../base/made-once.js';
import { type CallTime, TimedFold } from './call-times.js';
import type {
  AnyBegin,
  AnyEnd,
  CallEnd,
  CallLost,
  FunctionRef,
  FutureRef,
  PollEnd,
  PollLost,
  SampledFrame,
  TraceEvent,
  TraceInfo,
} from './events.js';
import { OpenCalls } from './open-calls.js';

/** A function, or a Future that is polled, as formats of stacks name it. */
export interface Frame {
  /** `labkern::work::deep0`, `poll labkern::work::level3`. */
  readonly name: string;
  /** With generic arguments. */
  readonly instance: string;
  readonly address: Addr | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
}

/** What a node stands for: its identity is the key among the children of one node. */
type What = FunctionRef | FutureRef | SampledFrame;

/** All calls, or samples, with the same stack. Times are nanoseconds. */
export interface TreeNode {
  /** Undefined for the root alone. */
  readonly frame: Frame | undefined;
  readonly parent: TreeNode | undefined;
  readonly children: ReadonlyMap<What, TreeNode>;
  calls: number;
  /** Those of a profile that were taken here, not in what was called. */
  samples: number;
  /** Without what was called. */
  self: number;
}

interface Growing extends TreeNode {
  isFurther: boolean;
  frame: Frame | undefined;
  parent: Growing | undefined;
  children: Map<What, Growing>;
}

/** Different stacks that are kept apart: their memory stays below 200 MB. */
export const MOST_STACKS = 300_000;

/** What takes the calls of all further stacks, below the innermost caller whose stack is kept. */
export const furtherStacks: SampledFrame = {
  name: `[stacks past the first ${MOST_STACKS}]`,
  instance: '[further stacks]',
  address: undefined,
  file: undefined,
  line: undefined,
};

/** Calls and polls by their stacks, of all harts together. Past 300,000 stacks further ones are merged. */
export class CallTree extends TimedFold {
  readonly #root = nodeOf(undefined, undefined);
  info: TraceInfo | undefined;
  /** From the first event to the last. */
  span = 0;
  /** Of a profile. `root`: with calls next to them it is a frame, `[samples]`. */
  readonly #sampled = { root: nodeOf(undefined, undefined), count: 0, areWaits: false };
  #calls = 0;
  readonly #open = new OpenCalls<{ readonly begin: AnyBegin; readonly node: Growing }>();
  readonly #frames = new Map<What, Frame>();
  #first: number | undefined;
  #stacks = 0;

  /** What is called by nobody is below it. */
  get root(): TreeNode {
    return this.#root;
  }

  /** The number of a profile's samples. */
  get samples(): number {
    return this.#sampled.count;
  }

  override begin(info: TraceInfo): void {
    this.info = info;
  }

  /** Samples have their place in the tree from now on. */
  override end(): void {
    const root = this.#root;
    const { root: sampled } = this.#sampled;
    if (this.samples === 0 || root === sampled.parent) return;
    sampled.parent = root;
    if (this.#calls === 0) root.children = sampled.children;
    else {
      sampled.frame = frameOf(samplesFrame);
      root.children.set(samplesFrame, sampled);
    }
  }

  /** What nodes have numbers of. */
  get counts(): 'samples' | 'waits' | 'calls' {
    if (this.samples === 0 || this.#calls > 0) return 'calls';
    return this.#sampled.areWaits ? 'waits' : 'samples';
  }

  protected began(begin: AnyBegin): void {
    this.#first ??= begin.time;
    this.#calls++;
    const parent = this.#open.of(begin.around)?.node ?? this.#root;
    const node = this.#child(parent, begin.type === 'call-begin' ? begin.function : begin.future);
    node.calls++;
    this.#open.begin({ begin, node });
  }

  protected returned(event: PollEnd | CallEnd, { self }: CallTime): void {
    this.span = Math.max(this.span, event.time - (this.#first ?? event.time));
    const open = this.#open.end(event);
    if (open) open.node.self += self;
  }

  protected override lost(event: PollLost | CallLost): void {
    this.#open.end(event);
  }

  /** Every node but the root, callers before callees. */
  *nodes(): Generator<TreeNode> {
    const waiting: TreeNode[] = [...this.#root.children.values()].reverse();
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      yield node;
      // They may be more than one call takes as arguments.
      for (const child of [...node.children.values()].reverse()) waiting.push(child);
    }
  }

  protected override other(event: Exclude<TraceEvent, AnyBegin | AnyEnd>): void {
    if (event.type !== 'sample') return;
    const { time, stack, periodNs, isWait } = event;
    this.#first ??= time;
    this.span = Math.max(this.span, time - this.#first + (isWait ? periodNs : 0));
    this.#sampled.count++;
    this.#sampled.areWaits ||= isWait === true;
    const node = stack.reduceRight((parent, frame) => this.#child(parent, frame), this.#sampled.root);
    node.samples++;
    node.self += periodNs;
  }

  #child(parent: Growing, what: What): Growing {
    if (parent.isFurther) return parent;
    const known = parent.children.get(what);
    if (known !== undefined) return known;
    if (this.#stacks < MOST_STACKS) {
      this.#stacks++;
      return this.#added(parent, what);
    }
    const further = parent.children.get(furtherStacks) ?? this.#added(parent, furtherStacks);
    further.isFurther = true;
    return further;
  }

  #added(parent: Growing, what: What): Growing {
    const node = nodeOf(
      madeOnce(this.#frames, what, () => frameOf(what)),
      parent,
    );
    // Most nodes have no children, and a map is large.
    if (parent.children === NONE) parent.children = new Map();
    parent.children.set(what, node);
    return node;
  }
}

/** Around the samples of a trace that has calls or polls, too. */
const samplesFrame: SampledFrame = {
  name: '[samples]',
  instance: '[samples]',
  address: undefined,
  file: undefined,
  line: undefined,
};

function frameOf(what: What): Frame {
  const { instance, file, line } = what;
  if ('future' in what) return { name: `poll ${what.future}`, instance, address: undefined, file, line };
  return { name: what.name, instance, address: what.address, file, line };
}

/** From the outermost frame to this node's. */
export function stackOf(node: TreeNode): Frame[] {
  const frames: Frame[] = [];
  for (let at: TreeNode | undefined = node; at?.frame; at = at.parent) frames.push(at.frame);
  return frames.reverse();
}

/** Time inside each node, with what it called: at least that of its children, also where its own end was not seen. */
export function totals(tree: CallTree): Map<TreeNode, number> {
  const found = new Map<TreeNode, number>();
  for (const node of [...tree.nodes()].reverse()) {
    let inside = node.self;
    for (const child of node.children.values()) inside += found.get(child) ?? 0;
    found.set(node, inside);
  }
  return found;
}

/** Of nodes without any. */
const NONE: Map<What, Growing> = new Map();

function nodeOf(frame: Frame | undefined, parent: Growing | undefined): Growing {
  return { frame, parent, children: NONE, calls: 0, samples: 0, self: 0, isFurther: false };
}
