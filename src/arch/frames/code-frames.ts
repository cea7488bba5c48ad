import type { Addr } from '../../base/addr.js';
import type { HookFrame } from '../inject/framed-code.js';
import { FrameAnalysis, type FrameDecoder } from './frame-analysis.js';
import type { CodeFrameModel, CodeRange, ControlFlow, EntryValues, FrameModel, Held } from './frame-model.js';
import { ALIGNED, type FrameState, type Value } from './frame-state.js';
import { FunctionCode } from './function-code.js';
import { stackSwitchOf } from './stack-switch.js';

/** Each instruction is looked at this often at most; a function of which that is too little is left alone. */
const mostVisits = 64;

/**
 * Follows what registers and stack slots hold along the ways of a function that are known. Debug info may lose a
 * parameter that the code still needs; the code itself cannot.
 */
class FollowedValues<I extends { readonly length: number }> implements EntryValues {
  readonly #code: FunctionCode<I>;
  readonly #flow: ControlFlow;
  readonly #model: FrameModel;
  readonly #states = new Map<number, FrameState>();
  /** The node of each instruction, by its offset in the function. */
  readonly #nodes: ReadonlyMap<number, number>;
  /** What all calls agree on: an exception comes back into the function with it. */
  #thrown: FrameState | undefined;

  constructor(model: FrameModel, decoder: FrameDecoder<I>, ranges: readonly CodeRange[], flow: ControlFlow) {
    this.#code = new FunctionCode(model, decoder, ranges);
    this.#flow = flow;
    this.#model = model;
    this.#nodes = new Map(flow.steps.map(({ address }, node) => [this.#code.offsetOf(address), node]));
    if (!this.#follow()) this.#states.clear();
  }

  at(pc: Addr, register: number): readonly Held[] {
    const state = this.#states.get(this.#nodes.get(this.#code.offsetOf(pc)) ?? -1);
    const found: Held[] = [];
    for (let index = 0; index < this.#model.registerCount; index++) {
      const value = state?.values[index];
      if (value?.base === register) found.push({ register: index, offset: 0 - value.offset });
    }
    return state ? [...found, ...this.#spilled(state, register)] : found;
  }

  /** Words of the frame that hold a register's entry value. */
  #spilled(state: FrameState, register: number): Held[] {
    const { stackPointer, framePointer } = this.#model;
    return [...state.saved()].flatMap((word) => {
      const pointer = [stackPointer, framePointer].find((index) => state.values[index]?.base === word.address.base);
      const value = pointer === undefined ? undefined : state.values[pointer];
      if (word.register !== register || pointer === undefined || !value) return [];
      return [{ register: pointer, offset: 0, through: word.address.offset - value.offset }];
    });
  }

  /** False if it takes too long. */
  #follow(): boolean {
    const pads = this.#flow.steps.flatMap((_, node) => (this.#mayCatch(node) ? [node] : []));
    const open: number[] = [];
    const reach = (node: number, state: FrameState): void => {
      const before = this.#states.get(node);
      const now = before?.join(state) ?? state;
      if (now === before) return;
      this.#states.set(node, now);
      open.push(node);
    };
    reach(0, this.#code.entryState);
    let left = mostVisits * this.#flow.steps.length;
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (left-- === 0) return false;
      const thrown = this.#leave(node, reach);
      if (thrown) for (const pad of pads) reach(pad, thrown);
    }
    return true;
  }

  /** Whether an exception may come back to an instruction. What fills gaps runs on into code, but nothing runs it. */
  #mayCatch(node: number): boolean {
    const instruction = this.#instruction(node);
    return instruction !== undefined && !this.#flow.isReached(node) && !this.#code.isPadding(instruction);
  }

  #instruction(node: number): I | undefined {
    return this.#code.at(this.#offset(node));
  }

  #offset(node: number): number {
    return this.#code.offsetOf(this.#flow.steps[node]?.address as Addr);
  }

  /**
   * An aligned stack pointer is no known distance from what it was at the entry. It is a value of its own, from which
   * the words of the frame are at known distances. Aligned twice by one instruction it has one value.
   */
  #aligned(node: number, before: FrameState, behind: FrameState): FrameState {
    const { stackPointer } = this.#model;
    const isAligned = before.values[stackPointer]?.base === stackPointer && behind.values[stackPointer] === undefined;
    return isAligned ? behind.with(stackPointer, { base: ALIGNED - node, offset: 0 }) : behind;
  }

  /** Hands on the state behind an instruction. Returns what an exception comes back with, if that has changed. */
  #leave(node: number, reach: (node: number, state: FrameState) => void): FrameState | undefined {
    const state = this.#states.get(node) as FrameState;
    const offset = this.#offset(node);
    const instruction = this.#instruction(node);
    if (!instruction) return undefined;
    const { next: behind, target, kind } = this.#code.execute(instruction, state, offset);
    const next = behind && this.#aligned(node, state, behind);
    for (const to of this.#flow.next[node] ?? []) {
      const isTarget = target !== undefined && this.#nodes.get(target.offset) === to;
      reach(to, (isTarget ? target.state : next) ?? state);
    }
    if (kind !== 'call' || !next) return undefined;
    const before = this.#thrown;
    this.#thrown = before?.join(next) ?? next;
    return this.#thrown === before ? undefined : this.#thrown;
  }
}

type Given = Omit<FrameModel, 'framePointerRow' | 'entryRow' | 'code'>;

/** What differs between architectures. `aboveFramePointer`: bytes from where the frame pointer points up to the CFA. */
interface FramesOf<I extends { readonly length: number }> extends Given {
  readonly aboveFramePointer: number;
  readonly decoder: FrameDecoder<I>;
  mayReturnFromTrap(code: Uint8Array): boolean;
  seekStackSwitches(code: Uint8Array): readonly number[];
}

/** Frames by code. A frame record is the return address right below the CFA, and below it the caller's frame pointer. */
export function codeFrames<I extends { readonly length: number }>(of: FramesOf<I>): CodeFrameModel {
  const { aboveFramePointer, decoder, mayReturnFromTrap, seekStackSwitches, ...given } = of;
  const { framePointer, stackPointer, returnAddress, cfaAtEntry } = given;
  const saved = (offset: number) => ({ kind: 'saved', offset }) as const;
  const frames: CodeFrameModel = {
    ...given,
    framePointerRow: {
      cfa: { kind: 'register', register: framePointer, offset: aboveFramePointer },
      returnAddress,
      registers: new Map([
        [returnAddress, saved(-8)],
        [framePointer, saved(-16)],
      ]),
      interrupted: false,
    },
    entryRow: {
      cfa: { kind: 'register', register: stackPointer, offset: cfaAtEntry },
      returnAddress,
      registers: new Map(cfaAtEntry === 0 ? [] : [[returnAddress, saved(-cfaAtEntry)]]),
      interrupted: false,
    },
    code: {
      analyse: (ranges, rest) => new FrameAnalysis(frames, decoder, ranges, rest),
      follow: (ranges, flow) => new FollowedValues(frames, decoder, ranges, flow),
      endsInCall: (code) => endsInCall(decoder, code),
      shortReturn: (code) => shortReturn(decoder, frames, code),
      mayReturnFromTrap,
      seekStackSwitches,
      stackSwitch: (code) => stackSwitchOf(frames, decoder, code),
    },
  };
  return frames;
}

/**
 * What a register gets from memory of the frame. Its entry value is restored unchanged. A pointer into the frame may
 * have been changed by code that was given its address.
 */
export function restored(
  { stackPointer, framePointer }: FrameModel,
  state: FrameState,
  address: Value | undefined,
  register: number,
): Value | undefined {
  const value = state.load(address);
  return value?.offset === 0 || register === stackPointer || register === framePointer ? value : undefined;
}

/** Words of stack that the return address is looked for in, and instructions that it may take. */
const mostWords = 32;
const mostInstructions = 4;
/** Names the first of these words as a value of a state, beyond all registers. */
const WORDS = 1000;

/** Whether an instruction that ends where these bytes end may be a call. */
function endsInCall<I extends { readonly length: number }>(decoder: FrameDecoder<I>, range: CodeRange): boolean {
  const { length } = range.bytes;
  for (let at = Math.max(0, length - decoder.longestCall); at < length; at++) {
    const instruction = decoder.decode(range, at);
    if (instruction === undefined || at + instruction.length !== length) continue;
    if (decoder.execute(instruction, decoder.entry, at, range.start).kind === 'call') return true;
  }
  return false;
}

/** See {@link CodeReading.shortReturn}. */
function shortReturn<I extends { readonly length: number }>(
  decoder: FrameDecoder<I>,
  model: FrameModel,
  range: CodeRange,
): HookFrame | undefined {
  const { stackPointer, returnAddress, registerCount, cfaAtEntry } = model;
  let state = withWords(decoder.entry, stackPointer);
  for (let at = 0, left = mostInstructions; left > 0; left--) {
    const instruction = decoder.decode(range, at);
    if (instruction === undefined) return undefined;
    if (decoder.isReturn(instruction)) {
      const stack = state.values[stackPointer];
      const back = returnAddress < registerCount ? state.values[returnAddress] : state.load(stack);
      const isFreed = stack?.base === stackPointer && back !== undefined && back.base >= WORDS && back.offset === 0;
      const size = (stack?.offset ?? 0) + cfaAtEntry;
      const offset = 8 * ((back?.base ?? 0) - WORDS);
      return isFreed && offset < size && isOtherwiseKept(state, model) ? { offset, size } : undefined;
    }
    const { next } = decoder.execute(instruction, state, at, range.start);
    if (next === undefined) return undefined;
    state = next;
    at += instruction.length;
  }
  return undefined;
}

function withWords(entry: FrameState, stackPointer: number): FrameState {
  let state = entry;
  for (let word = 0; word < mostWords; word++) {
    state = state.store({ base: stackPointer, offset: 8 * word }, 8, { base: WORDS + word, offset: 0 });
  }
  return state;
}

function isOtherwiseKept(state: FrameState, { preserved, stackPointer }: FrameModel): boolean {
  return preserved.every((register) => register === stackPointer || state.holdsOwn(register));
}
