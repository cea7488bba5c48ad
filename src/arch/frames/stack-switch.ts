import type { FrameDecoder } from './frame-analysis.js';
import type { CodeRange, FrameModel } from './frame-model.js';
import type { FrameState, Value } from './frame-state.js';

/** A place in what an argument points to. */
interface SwitchPlace {
  /** The DWARF number of the register with the argument, at the function's first instruction. */
  readonly register: number;
  readonly offset: number;
}

/**
 * A function that leaves the stack that it is called on, and returns on another one: a context switch. It saves the
 * registers that functions preserve, and the stack pointer in what one argument points to.
 */
export interface StackSwitch {
  /** Where it saves the stack pointer. */
  readonly from: SwitchPlace;
  /** What it saves, less the stack pointer at its first instruction. */
  readonly saved: number;
  /** Where it has the other stack pointer from: `isLoaded`, or the argument is that itself, `offset` bytes from it. */
  readonly to: SwitchPlace & { readonly isLoaded: boolean };
}

/** Instructions that are followed: those of such functions save and load a register each. */
const mostInstructions = 300;
/** Names the first word that an argument points to as a value of a state, beyond all registers. */
const WORDS = 1000;
const WORD = 8;

/** Words of memory that arguments point to: each stands for itself. */
class PointedWords {
  readonly #places: SwitchPlace[] = [];
  readonly #known = new Set<string>();
  readonly #isArgument: (register: number) => boolean;

  constructor({ preserved, stackPointer, returnAddress, fixed, registerCount }: FrameModel) {
    const others = new Set([...preserved, ...fixed, stackPointer, returnAddress]);
    this.#isArgument = (register) => register >= 0 && register < registerCount && !others.has(register);
  }

  /** The word at an address and the one behind it have a value from now on. */
  reach(state: FrameState, address: Value | undefined): FrameState {
    if (address === undefined || !this.#isArgument(address.base)) return state;
    let next = state;
    for (const offset of [address.offset, address.offset + WORD]) {
      const key = `${address.base} ${offset}`;
      if (this.#known.has(key)) continue;
      this.#known.add(key);
      const place = { base: address.base, offset };
      next = next.store(place, WORD, { base: WORDS + this.#places.length, offset: 0 });
      this.#places.push({ register: place.base, offset });
    }
    return next;
  }

  /** Where a value is from, if it is a word that an argument points to, or an argument. */
  from({ base, offset }: Value): StackSwitch['to'] | undefined {
    const place = this.#places[base - WORDS];
    if (place) return { ...place, isLoaded: true };
    return this.#isArgument(base) ? { register: base, offset, isLoaded: false } : undefined;
  }

  /** Whether an address lies in what an argument points to. */
  has({ base }: Value): boolean {
    return this.#isArgument(base);
  }
}

/** Follows a function from its first instruction on, past its branches. Undefined if it is no such function. */
export function stackSwitchOf<I extends { readonly length: number }>(
  model: FrameModel,
  decoder: FrameDecoder<I>,
  range: CodeRange,
): StackSwitch | undefined {
  const words = new PointedWords(model);
  let state = decoder.entry;
  /** Where the other stack pointer is from. */
  let to: StackSwitch['to'] | undefined;
  for (let at = 0, left = mostInstructions; left > 0 && at < range.bytes.length; left--) {
    const instruction = decoder.decode(range, at);
    if (instruction === undefined) return undefined;
    if (decoder.isReturn(instruction)) return to && switchOf(model, state, words, to);
    for (const { register, offset } of decoder.addresses(instruction, state)) {
      const base = state.values[register];
      state = words.reach(state, base && { base: base.base, offset: base.offset + offset });
    }
    const { next, kind } = decoder.execute(instruction, state, at, range.start);
    if (kind === 'trap-return') return undefined;
    // It jumps to where the other stack goes on, or to a function that returns there.
    if (next === undefined) return to && switchOf(model, state, words, to);
    const stack = next.values[model.stackPointer];
    if (to === undefined && stack !== undefined && stack.base !== model.stackPointer) {
      to = words.from(stack);
      if (to === undefined) return undefined;
    }
    state = next;
    at += instruction.length;
  }
  return undefined;
}

function switchOf(
  { preserved, stackPointer }: FrameModel,
  state: FrameState,
  words: PointedWords,
  to: StackSwitch['to'],
): StackSwitch | undefined {
  const kept = [...state.kept()];
  const own = kept.find(({ address, value }) => value.base === stackPointer && words.has(address));
  if (own === undefined || own.address.base === to.register) return undefined;
  const isSaved = (register: number): boolean =>
    kept.some(({ value }) => value.base === register && value.offset === 0);
  const wanted = preserved.filter((register) => register !== stackPointer);
  if (2 * wanted.filter(isSaved).length < wanted.length) return undefined;
  return { from: { register: own.address.base, offset: own.address.offset }, saved: own.value.offset, to };
}
