import type { Addr } from '../../base/addr.js';
import type { CodeRange, FrameAt, FrameModel, FunctionFrames } from './frame-model.js';
import { type FrameRules, rowOf } from './frame-rows.js';
import { type FrameState, same } from './frame-state.js';
import { FrameTally } from './frame-tally.js';

/**
 * What one instruction does to a state, and where control goes after it. Offsets count from the function's first
 * instruction.
 */
export interface Outcome {
  /** The state before the next instruction in memory; undefined when control does not go there. */
  readonly next: FrameState | undefined;
  /** Where else control goes. */
  readonly target?: { readonly offset: number; readonly state: FrameState };
  /** The `next` of a call or a breakpoint holds only if control comes back. `indirect` jumps to unknown places. */
  readonly kind: 'plain' | 'call' | 'breakpoint' | 'indirect' | 'trap-return';
  /** For a `trap-return`. */
  readonly trap?: TrapReturn;
}

/** What a return from a trap says about the whole function: it is a handler that nobody called. */
export interface TrapReturn {
  /** The index whose value at entry is the address where the interrupted code goes on. */
  readonly back: number;
  /** The state in which the trap enters the first instruction, if it differs from that of a call. */
  readonly entry: FrameState | undefined;
}

export interface FrameDecoder<I extends { readonly length: number }> {
  decode(range: CodeRange, offset: number): I | undefined;
  execute(instruction: I, state: FrameState, at: number, entry: Addr): Outcome;
  /** What compilers fill gaps with. */
  isPadding(instruction: I): boolean;
  /** The state at the first instruction. */
  readonly entry: FrameState;
}

interface Node<I> {
  readonly instruction: I;
  state: FrameState;
  /** The return of a call is the only known way here. */
  isBehindCall: boolean;
  confidence: 'sure' | 'likely' | 'guess';
}

interface Edge {
  readonly at: number;
  readonly state: FrameState;
  /** The return of a call. */
  readonly call: boolean;
}

/** The most bytes of one function: larger ones exist only in damaged files. */
const MAX_CODE = 0x8_0000;

/**
 * Follows a function along its control flow and keeps, for every instruction, the state that all ways to it agree on.
 * Noreturn calls (to a panic) are not marked. So fall-through edges after calls are followed last. If that code is
 * also reached with another stack pointer, the call is treated as noreturn.
 */
export class FrameAnalysis<I extends { readonly length: number }> implements FunctionFrames {
  readonly #model: FrameModel;
  readonly #rules: FrameRules;
  readonly #decoder: FrameDecoder<I>;
  readonly #entry: Addr;
  readonly #ranges: readonly { readonly low: number; readonly high: number; readonly range: CodeRange }[];
  readonly #decoded = new Map<number, I | undefined>();
  #nodes = new Map<number, Node<I>>();
  #found = new Map<number, FrameAt>();
  #strong: Edge[] = [];
  #weak: Edge[] = [];
  #steps = 0;
  /** States at jumps to unknown places. */
  #indirect: FrameState[] = [];
  /** Frames behind calls. */
  #calls: FrameTally;
  /** Frames of all instructions to which a way is known, once they are asked for. */
  #body: FrameTally | undefined;
  #entryState: FrameState;
  #trap: TrapReturn | undefined;

  constructor(model: FrameModel, rules: FrameRules, decoder: FrameDecoder<I>, ranges: readonly CodeRange[]) {
    this.#model = model;
    this.#calls = new FrameTally(model);
    this.#rules = rules;
    this.#decoder = decoder;
    this.#entry = ranges[0]?.start ?? (0n as Addr);
    this.#ranges = ranges.map((range) => {
      const low = this.#offsetOf(range.start);
      return { low, high: low + Math.min(range.bytes.length, MAX_CODE), range };
    });
    this.#entryState = decoder.entry;
    this.#follow();
    const trap = this.#trap;
    if (trap?.entry !== undefined) {
      this.#entryState = trap.entry;
      this.#follow();
    }
    this.#fill();
  }

  at(pc: Addr): FrameAt | undefined {
    const offset = this.#offsetOf(pc);
    let found = this.#found.get(offset);
    const node = this.#nodes.get(offset);
    if (found === undefined && node !== undefined) {
      found = this.#frame(node.state, node.confidence);
      this.#found.set(offset, found);
    }
    return found;
  }

  behindCall(pc: Addr): FrameAt | undefined {
    // The call's own state, because the code that follows it may be other code altogether, if the call never returns.
    const offset = this.#offsetOf(pc);
    for (let back = 2; back <= this.#rules.longestCall; back++) {
      const node = this.#nodes.get(offset - back);
      if (node === undefined || node.instruction.length !== back) continue;
      const outcome = this.#decoder.execute(node.instruction, node.state, offset - back, this.#entry);
      if (outcome.kind === 'call' && outcome.next !== undefined) return this.#frame(outcome.next, node.confidence);
    }
    return this.at(pc);
  }

  /** For tests: the state before an instruction, in full. */
  stateAt(pc: Addr): FrameState | undefined {
    return this.#nodes.get(this.#offsetOf(pc))?.state;
  }

  #frame(state: FrameState, confidence: Node<I>['confidence']): FrameAt {
    return rowOf(this.#model, this.#rules, state, this.#trap?.back, confidence);
  }

  #offsetOf(address: Addr): number {
    return Number(BigInt.asIntN(64, address - this.#entry));
  }

  #decode(at: number): I | undefined {
    if (this.#decoded.has(at)) return this.#decoded.get(at);
    const part = this.#ranges.find(({ low, high }) => at >= low && at < high);
    const instruction = part && this.#decoder.decode(part.range, at - part.low);
    this.#decoded.set(at, instruction);
    return instruction;
  }

  #follow(): void {
    this.#nodes = new Map();
    this.#strong = [{ at: 0, state: this.#entryState, call: false }];
    this.#weak = [];
    this.#indirect = [];
    this.#calls = new FrameTally(this.#model);
    this.#steps = 0;
    this.#drain('sure');
  }

  #drain(confidence: Node<I>['confidence']): void {
    for (let edge = this.#nextEdge(); edge !== undefined; edge = this.#nextEdge()) {
      if (++this.#steps > 64 * (this.#nodes.size + 64)) return;
      this.#visit(edge, confidence);
    }
  }

  #nextEdge(): Edge | undefined {
    return this.#strong.pop() ?? this.#weak.pop();
  }

  /**
   * Returns of calls are followed last, in the order of memory: code that returns comes before the cold calls that do
   * not.
   */
  #addWeak(edge: Edge): void {
    let low = 0;
    let high = this.#weak.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#weak[middle] as Edge).at > edge.at) low = middle + 1;
      else high = middle;
    }
    this.#weak.splice(low, 0, edge);
  }

  #visit({ at, state, call }: Edge, confidence: Node<I>['confidence']): void {
    let node = this.#nodes.get(at);
    if (node === undefined) {
      const instruction = this.#decode(at);
      if (instruction === undefined) return;
      node = { instruction, state, isBehindCall: call, confidence };
      this.#nodes.set(at, node);
    } else {
      // A filled-in state does not overrule one that was followed.
      if (confidence !== 'sure' && node.confidence !== confidence) return;
      const wasBehindCall = node.isBehindCall;
      if (!call) node.isBehindCall = false;
      let merged = state;
      if (this.#conflict(node.state, state)) {
        // Of the two ways, the one behind a call does not exist: the call never returns.
        if (call) return;
        if (!wasBehindCall) {
          if (node.confidence === 'sure') node.confidence = 'likely';
          return;
        }
      } else merged = node.state.join(state);
      if (merged === node.state) return;
      node.state = merged;
    }
    this.#leave(node, at);
  }

  #leave(node: Node<I>, at: number): void {
    const { next, target, kind, trap } = this.#decoder.execute(node.instruction, node.state, at, this.#entry);
    if (kind === 'call' && next !== undefined) this.#calls.add(next);
    if (kind === 'indirect') this.#indirect.push(node.state);
    this.#trap ??= trap;
    if (target !== undefined) this.#strong.push({ at: target.offset, state: target.state, call: false });
    if (next === undefined) return;
    const behind = at + node.instruction.length;
    if (kind === 'breakpoint') this.#addWeak({ at: behind, state: next, call: true });
    else if (kind !== 'call') this.#strong.push({ at: behind, state: next, call: false });
    // A function that calls without having saved its own return address does not expect to come back.
    else if (this.#canReturn(next)) this.#addWeak({ at: behind, state: next, call: true });
  }

  #canReturn(state: FrameState): boolean {
    const { returnAddress } = this.#model;
    if (this.#trap !== undefined || state.holdsOwn(returnAddress)) return true;
    for (const { register } of state.saved()) if (register === returnAddress) return true;
    return false;
  }

  /** Two stack pointers that cannot both be right, and no other register by which both frames could be described. */
  #conflict(a: FrameState, b: FrameState): boolean {
    const { stackPointer } = this.#model;
    const [first, second] = [a.values[stackPointer], b.values[stackPointer]];
    if (first === undefined || second === undefined || same(first, second)) return false;
    return !a.values.some((value, i) => value?.base === stackPointer && same(value, b.values[i]));
  }

  /** Gives code to which no way is known its most probable frame. */
  #fill(): void {
    for (const { low, high } of this.#ranges) {
      let before: Node<I> | undefined;
      for (let at = low; at < high; ) {
        let node = this.#nodes.get(at);
        const instruction = node?.instruction ?? this.#decode(at);
        if (instruction === undefined) break;
        if (node === undefined && before !== undefined && this.#decoder.isPadding(instruction)) {
          // No control comes here, and what follows is not reached through it.
          node = { instruction, state: before.state, isBehindCall: false, confidence: 'guess' };
          this.#nodes.set(at, node);
          at += instruction.length;
          continue;
        }
        if (node === undefined) {
          const usual = this.#usual(before, at);
          this.#strong.push({ at, state: usual.state, call: false });
          this.#drain(usual.confidence);
          node = this.#nodes.get(at);
        }
        before = node;
        at += instruction.length;
      }
    }
  }

  #usual(before: Node<I> | undefined, at: number): { state: FrameState; confidence: 'likely' | 'guess' } {
    const jump = this.#indirect.find((state) => this.#isFrame(state));
    if (jump !== undefined) return { state: jump, confidence: 'likely' };
    if (before === undefined) return { state: this.#entryState, confidence: 'guess' };
    const { next, target, kind } = this.#decoder.execute(before.instruction, before.state, at, this.#entry);
    if (kind === 'call') {
      const confidence = before.confidence === 'guess' ? 'guess' : 'likely';
      return { state: next ?? before.state, confidence };
    }
    // A jump that leaves while the frame is up comes back: kernels patch such jumps into functions and out of them.
    if (next === undefined && target !== undefined && this.#isFrame(target.state) && !this.#isInside(target.offset)) {
      return { state: target.state, confidence: 'guess' };
    }
    // If only the language's own unwinder leads here, the frame is that of the calls which it unwinds.
    return { state: next ?? this.#calls.commonest ?? this.#inBody() ?? before.state, confidence: 'guess' };
  }

  #isInside(offset: number): boolean {
    return this.#ranges.some(({ low, high }) => offset >= low && offset < high);
  }

  /** The commonest frame in the function, among those that were known at the first request. */
  #inBody(): FrameState | undefined {
    if (this.#body === undefined) {
      this.#body = new FrameTally(this.#model);
      for (const { state } of this.#nodes.values()) this.#body.add(state);
    }
    return this.#body.commonest;
  }

  /** Not a tail call, because a tail call leaves when the frame is gone. */
  #isFrame(state: FrameState): boolean {
    return state.values[this.#model.stackPointer]?.offset !== 0;
  }
}
