import type { HookFrame } from '../inject/hook-frame.js';
import { FollowedValues } from './entry-values.js';
import { FrameAnalysis, type FrameDecoder } from './frame-analysis.js';
import type { CodeFrameModel, CodeRange, FrameModel } from './frame-model.js';
import type { FrameState, Value } from './frame-state.js';
import { stackSwitchOf } from './stack-switch.js';

type Given = Omit<FrameModel, 'framePointerRow' | 'entryRow' | 'code'>;

/** What differs between architectures. `aboveFramePointer`: bytes from where the frame pointer points up to the CFA. */
interface FramesOf<I extends { readonly length: number }> extends Given {
  readonly aboveFramePointer: number;
  readonly decoder: FrameDecoder<I>;
  mayReturnFromTrap(code: Uint8Array): boolean;
  seekStackSwitches(code: Uint8Array): readonly number[];
}

/** Frames by code. A frame record is the return address right below the CFA, and the caller's frame pointer below it. */
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
      analyse: (ranges) => new FrameAnalysis(frames, decoder, ranges),
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
