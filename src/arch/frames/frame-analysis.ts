import type { Addr } from '../../base/addr.js';
import { firstWhere } from '../../base/search.js';
import type { CallersFrame, CodeRange, FrameAt, FrameModel, FunctionFrames } from './frame-model.js';
import { rowOf } from './frame-rows.js';
import { type FrameState, same, type Value } from './frame-state.js';
import { FunctionCode } from './function-code.js';
import { hasFrame, UsualFrames } from './usual-frames.js';

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
interface TrapReturn {
  /** The index whose value at entry is the address where the interrupted code goes on. */
  readonly back: number;
  /** The state in which the trap enters the first instruction, if it differs from that of a call. */
  readonly entry: FrameState | undefined;
}

export const stop: Outcome = { next: undefined, kind: 'plain' };

/** The instructions of an architecture, as frames are followed by them. */
export interface FrameDecoder<I extends { readonly length: number }> {
  /** DWARF number of each index of a state. */
  readonly numbers: readonly number[];
  /** Length of the longest instruction that can be a call, in bytes. */
  readonly longestCall: number;
  decode(range: CodeRange, offset: number): I | undefined;
  /** False for bytes of which not even the length is known. */
  isKnown?(instruction: I): boolean;
  execute(instruction: I, state: FrameState, at: number, entry: Addr): Outcome;
  /**
   * From which registers' values an instruction uses or computes addresses, and how far from them. An index is not
   * counted. Left out is what sets a frame up: an address that becomes the stack pointer or the frame pointer.
   */
  addresses(instruction: I, state: FrameState): readonly { readonly register: number; readonly offset: number }[];
  /** It goes where the caller called from. */
  isReturn(instruction: I): boolean;
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

/**
 * Follows a function along its control flow and keeps, for every instruction, the state that all ways to it agree on.
 * Noreturn calls (to a panic) are not marked. So fall-through edges after calls are followed last. If that code is
 * also reached with another stack pointer, the call is treated as noreturn.
 */
export class FrameAnalysis<I extends { readonly length: number }> implements FunctionFrames {
  readonly #model: FrameModel;
  readonly #decoder: FrameDecoder<I>;
  readonly #code: FunctionCode<I>;
  #nodes = new Map<number, Node<I>>();
  #worklist = new Worklist();
  #usual: UsualFrames;
  #entryState: FrameState;
  #trap: TrapReturn | undefined;
  /** Where control leaves the code. */
  #left: { readonly at: number; readonly state: FrameState }[] = [];
  /** Frames that were asked for. */
  readonly #found = new Map<number, FrameAt>();

  constructor(
    model: FrameModel,
    decoder: FrameDecoder<I>,
    ranges: readonly CodeRange[],
    rest?: (to: Addr) => readonly CodeRange[],
  ) {
    this.#model = model;
    this.#decoder = decoder;
    this.#code = new FunctionCode(model, decoder, ranges);
    this.#usual = new UsualFrames(model);
    this.#entryState = this.#code.entryState;
    this.#follow();
    if (rest) this.#followRest(rest);
    const trap = this.#trap;
    if (trap?.entry !== undefined) {
      this.#entryState = trap.entry;
      this.#follow();
    }
    this.#fill();
  }

  at(pc: Addr): FrameAt | undefined {
    const offset = this.#code.offsetOf(pc);
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
    const offset = this.#code.offsetOf(pc);
    for (let back = 2; back <= this.#decoder.longestCall; back++) {
      const node = this.#nodes.get(offset - back);
      if (node === undefined || node.instruction.length !== back) continue;
      const outcome = this.#code.execute(node.instruction, node.state, offset - back);
      if (outcome.kind === 'call' && outcome.next !== undefined) return this.#frame(outcome.next, node.confidence);
    }
    return this.at(pc);
  }

  callersFrame(): CallersFrame {
    // Code that is not read may do anything.
    if (!this.#code.parts.every((part) => this.#isRead(part)))
      return { isUsed: true, readsReturn: true, jumps: [], jumpsAnywhere: true };
    const { stackPointer } = this.#model;
    let isUsed = false;
    let readsReturn = false;
    let jumpsAnywhere = false;
    const jumps: Addr[] = [];
    for (const [at, { instruction, state }] of this.#nodes) {
      const addresses = this.#code.addresses(instruction, state);
      const { kind, next, target } = this.#code.execute(instruction, state, at);
      readsReturn ||= this.#readsReturn(addresses, next);
      isUsed ||= addresses?.some(({ base, offset }) => base === stackPointer && offset >= 0) ?? true;
      // A jump table is used in a frame; a jump to a pointer, at its end, when the frame is gone.
      if (kind === 'indirect') jumpsAnywhere ||= state.holdsOwn(stackPointer) || !state.values[stackPointer];
      if (target !== undefined && !this.#code.has(target.offset)) jumps.push(this.#code.addressOf(target.offset));
    }
    return { isUsed, readsReturn, jumps, jumpsAnywhere };
  }

  /** All of it was decoded, but for zeros at its end. */
  #isRead({ low, range: { bytes } }: FunctionCode<I>['parts'][number]): boolean {
    let at = low;
    for (let one = this.#nodes.get(at)?.instruction; one && this.#decoder.isKnown?.(one) !== false; ) {
      at += one.length;
      one = this.#nodes.get(at)?.instruction;
    }
    return bytes.subarray(at - low).every((byte) => byte === 0);
  }

  /** It lies right where the stack pointer is at the entry, or in a register. */
  #readsReturn(addresses: readonly Value[] | undefined, next: FrameState | undefined): boolean {
    const { stackPointer, returnAddress, cfaAtEntry } = this.#model;
    const isSlot = ({ base, offset }: Value): boolean => base === stackPointer && offset >= 0 && offset < cfaAtEntry;
    if (!addresses || addresses.some(isSlot)) return true;
    if (next?.values.some((value, index) => index !== returnAddress && value?.base === returnAddress)) return true;
    for (const { register, address } of next?.saved() ?? [])
      if (register === returnAddress && address.base !== stackPointer) return true;
    return false;
  }

  stateAt(pc: Addr): FrameState | undefined {
    return this.#nodes.get(this.#code.offsetOf(pc))?.state;
  }

  #frame(state: FrameState, confidence: Node<I>['confidence']): FrameAt {
    return rowOf(this.#model, this.#decoder.numbers, state, this.#trap?.back, confidence);
  }

  #follow(): void {
    this.#nodes = new Map();
    this.#worklist = new Worklist();
    this.#usual = new UsualFrames(this.#model);
    this.#worklist.add(0, this.#entryState);
    this.#drain('sure');
  }

  /** A handler may end in code that several share, which says that nobody called it. */
  #followRest(rest: (to: Addr) => readonly CodeRange[]): void {
    for (const { at, state } of this.#left.splice(0)) {
      if (this.#trap !== undefined) return;
      if (this.#code.has(at)) continue;
      for (const range of rest(this.#code.addressOf(at))) this.#code.add(range);
      this.#worklist.add(at, state);
      this.#drain('sure');
    }
  }

  #drain(confidence: Node<I>['confidence']): void {
    for (let edge = this.#worklist.take(); edge !== undefined; edge = this.#worklist.take()) {
      if (this.#worklist.taken > 64 * (this.#nodes.size + 64)) return;
      this.#visit(edge, confidence);
    }
  }

  #visit({ at, state, call }: Edge, confidence: Node<I>['confidence']): void {
    let node = this.#nodes.get(at);
    if (node === undefined) {
      const instruction = this.#code.at(at);
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
    const { next, target, kind, trap } = this.#code.execute(node.instruction, node.state, at);
    if (kind === 'call' && next !== undefined) this.#usual.addCall(next);
    if (kind === 'indirect') this.#usual.addJump(node.state);
    this.#trap ??= trap;
    if (target !== undefined) {
      this.#worklist.add(target.offset, target.state);
      if (!this.#code.has(target.offset)) this.#left.push({ at: target.offset, state: target.state });
    }
    if (next === undefined) return;
    const behind = at + node.instruction.length;
    if (kind === 'breakpoint') this.#worklist.addReturn(behind, next);
    else if (kind !== 'call') this.#worklist.add(behind, next);
    // A function that calls without having saved its own return address does not expect to come back.
    else if (this.#canReturn(next)) this.#worklist.addReturn(behind, next);
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
    for (const { low, high } of this.#code.parts) {
      let before: Node<I> | undefined;
      for (let at = low; at < high; ) {
        let node = this.#nodes.get(at);
        const instruction = node?.instruction ?? this.#code.at(at);
        if (instruction === undefined) break;
        if (node === undefined && before !== undefined && this.#code.isPadding(instruction)) {
          // No control comes here, and what follows is not reached through it.
          node = { instruction, state: before.state, isBehindCall: false, confidence: 'guess' };
          this.#nodes.set(at, node);
          at += instruction.length;
          continue;
        }
        if (node === undefined) {
          const usual = this.#usualAt(before, at);
          this.#worklist.add(at, usual.state);
          this.#drain(usual.confidence);
          node = this.#nodes.get(at);
        }
        before = node;
        at += instruction.length;
      }
    }
  }

  /** The most probable state behind an instruction, or at the beginning. */
  #usualAt(before: Node<I> | undefined, at: number): { state: FrameState; confidence: 'likely' | 'guess' } {
    const jump = this.#usual.atJump;
    if (jump !== undefined) return { state: jump, confidence: 'likely' };
    if (before === undefined) return { state: this.#entryState, confidence: 'guess' };
    const { next, target, kind } = this.#code.execute(before.instruction, before.state, at);
    if (kind === 'call') {
      const confidence = before.confidence === 'guess' ? 'guess' : 'likely';
      return { state: next ?? before.state, confidence };
    }
    // A jump that leaves while the frame is up comes back: kernels patch such jumps into functions and out of them.
    const isFramed = target !== undefined && hasFrame(this.#model, target.state);
    if (next === undefined && isFramed && !this.#code.has(target.offset)) {
      return { state: target.state, confidence: 'guess' };
    }
    // If only the language's own unwinder leads here, the frame is that of the calls which it unwinds.
    const { behindCalls } = this.#usual;
    const state = next ?? behindCalls ?? this.#usual.inBody(() => this.#nodes.values()) ?? before.state;
    return { state, confidence: 'guess' };
  }
}

/** A way to an instruction, and the state in which control comes there. */
interface Edge {
  readonly at: number;
  readonly state: FrameState;
  /** The return of a call. */
  readonly call: boolean;
}

/** The ways that are still to be followed. Returns of calls come last. */
class Worklist {
  readonly #strong: Edge[] = [];
  readonly #weak: Edge[] = [];
  #taken = 0;

  /** How many ways were taken. */
  get taken(): number {
    return this.#taken;
  }

  /** A jump, or the next instruction. */
  add(at: number, state: FrameState): void {
    this.#strong.push({ at, state, call: false });
  }

  /**
   * The return of a call. These come in the order of memory: code that returns comes before the cold calls that do
   * not.
   */
  addReturn(at: number, state: FrameState): void {
    const place = firstWhere(this.#weak.length, (index) => (this.#weak[index] as Edge).at <= at);
    this.#weak.splice(place, 0, { at, state, call: true });
  }

  take(): Edge | undefined {
    const edge = this.#strong.pop() ?? this.#weak.pop();
    if (edge !== undefined) this.#taken++;
    return edge;
  }
}
