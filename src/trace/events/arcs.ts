import { madeOnce } from '../../base/made-once.js';
import { type CallTime, TimedFold } from './call-times.js';
import { Durations } from './durations.js';
import type { AnyBegin, CallEnd, FunctionRef, FutureRef, PollEnd, TraceInfo } from './events.js';

/** A function, or a Future that is polled. */
export interface Node {
  readonly name: string;
  readonly instance: string;
  readonly file: string | undefined;
  readonly line: number | undefined;
  calls: number;
  self: number;
  total: number;
}

/** From a caller to what it calls; from nowhere if nothing that is traced was around. */
export interface Arc {
  readonly caller: Node | undefined;
  readonly callee: Node;
  calls: number;
  /** Time inside the callee in these calls, as callgrind has it: recursion counts each time. */
  total: number;
  readonly durations: Durations;
}

/** Who calls what: counts and times of every arc, and of every function and Future. */
export class Arcs extends TimedFold {
  readonly #nodes = new Map<FunctionRef | FutureRef, Node>();
  readonly #arcs = new Map<Node | undefined, Map<Node, Arc>>();

  info: TraceInfo | undefined;

  override begin(info: TraceInfo): void {
    this.info = info;
  }

  protected began(begin: AnyBegin): void {
    this.#arcOf(begin).calls++;
    this.#node(begin).calls++;
  }

  protected returned({ begin }: PollEnd | CallEnd, spent: CallTime): void {
    if (!begin) return;
    const arc = this.#arcOf(begin);
    arc.total += spent.time;
    arc.durations.add(spent.time);
    arc.callee.self += spent.self;
    arc.callee.total += spent.total;
  }

  get nodes(): Node[] {
    return [...this.#nodes.values()];
  }

  get arcs(): Arc[] {
    return [...this.#arcs.values()].flatMap((arcs) => [...arcs.values()]);
  }

  #arcOf(begin: AnyBegin): Arc {
    const caller = begin.around && this.#node(begin.around);
    const callee = this.#node(begin);
    const arcs = madeOnce(this.#arcs, caller, () => new Map<Node, Arc>());
    return madeOnce(arcs, callee, () => ({ caller, callee, calls: 0, total: 0, durations: new Durations() }));
  }

  #node(begin: AnyBegin): Node {
    const what = begin.type === 'call-begin' ? begin.function : begin.future;
    return madeOnce(this.#nodes, what, () => {
      const { instance, file, line } = what;
      const name = 'future' in what ? `poll ${what.future}` : what.name;
      return { name, instance, file, line, calls: 0, self: 0, total: 0 };
    });
  }
}
