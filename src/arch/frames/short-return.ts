import type { HookFrame } from '../inject/hook-frame.js';
import type { FrameDecoder } from './frame-analysis.js';
import type { CodeRange, FrameModel } from './frame-model.js';
import type { FrameRules } from './frame-rows.js';
import type { FrameState } from './frame-state.js';

/** Words of stack that the return address is looked for in, and instructions that it may take. */
const mostWords = 32;
const mostInstructions = 4;
/** Names the first of these words as a value of a state, beyond all registers. */
const WORDS = 1000;

/** Whether an instruction that ends where these bytes end may be a call. */
export function endsInCall<I extends { readonly length: number }>(
  decoder: FrameDecoder<I>,
  { longestCall }: FrameRules,
  range: CodeRange,
): boolean {
  const { length } = range.bytes;
  for (let at = Math.max(0, length - longestCall); at < length; at++) {
    const instruction = decoder.decode(range, at);
    if (instruction === undefined || at + instruction.length !== length) continue;
    if (decoder.execute(instruction, decoder.entry, at, range.start).kind === 'call') return true;
  }
  return false;
}

/** See {@link CodeReading.shortReturn}. */
export function shortReturn<I extends { readonly length: number }>(
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
