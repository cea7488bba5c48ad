import type { RegisterRule } from '../../base/unwind-row.js';
import type { Confidence, FrameAt, FrameModel } from './frame-model.js';
import { ADDRESS, CONSTANT, type FrameState, same, type Value } from './frame-state.js';

/**
 * The row for a state. `numbers`: the DWARF number of each of its indexes. `trap`: the index whose entry value is the address where interrupted code goes on; undefined
 * for a function that is called.
 */
export function rowOf(
  model: FrameModel,
  numbers: readonly number[],
  state: FrameState,
  trap: number | undefined,
  confidence: Confidence,
): FrameAt {
  const { stackPointer, framePointer, cfaAtEntry } = model;
  const sp = state.values[stackPointer];
  if (sp?.base === CONSTANT || sp?.base === ADDRESS) return { kind: 'bottom' };
  // The stack of a handler that swaps stacks is in another register.
  const anchor = sp?.base ?? stackPointer;
  const from = cfaRegister(model, state, anchor);
  if (from === undefined) return { kind: 'unknown' };
  const cfa = {
    kind: 'register',
    register: numbers[from.index] as number,
    offset: cfaAtEntry - from.offset,
  } as const;
  const places = placesOf(state, anchor, cfaAtEntry);
  const registers = new Map<number, RegisterRule>();
  const add = (index: number): void => {
    const rule = ruleFor(numbers, state, places, index);
    if (rule.kind !== 'same') registers.set(numbers[index] as number, rule);
  };
  const wanted = trap === undefined ? model.preserved : Array.from({ length: model.registerCount }, (_, i) => i);
  for (const index of wanted) if (index !== stackPointer) add(index);
  const back = trap ?? model.returnAddress;
  if (back >= model.registerCount || trap === undefined) add(back);
  // A trap within the handler writes the CSR again. So if the handler has saved the value, the saved value is used.
  const keptBack = trap === undefined ? undefined : places.get(trap);
  if (keptBack !== undefined) registers.set(numbers[back] as number, { kind: 'saved', offset: keptBack });
  // An interrupt of x86-64 has pushed the stack pointer of the interrupted code.
  const pushed = places.get(stackPointer);
  if (trap !== undefined && pushed !== undefined) registers.set(stackPointer, { kind: 'saved', offset: pushed });
  else if (anchor !== stackPointer) add(stackPointer);
  const top = state.values[framePointer];
  const kept = model.framePointerRow;
  const isKept = (register: number): boolean => {
    const rule = kept.registers.get(register);
    return rule?.kind === 'saved' && places.get(register) === rule.offset;
  };
  return {
    kind: 'row',
    confidence,
    row: { cfa, returnAddress: numbers[back] as number, registers, interrupted: trap !== undefined },
    framePointer:
      kept.cfa.kind === 'register' &&
      top?.base === stackPointer &&
      cfaAtEntry - top.offset === kept.cfa.offset &&
      isKept(framePointer) &&
      isKept(model.returnAddress),
  };
}

/** The register that the CFA is computed from: the stack pointer if possible, else the frame pointer, else any. */
function cfaRegister(
  model: FrameModel,
  { values }: FrameState,
  anchor: number,
): { readonly index: number; readonly offset: number } | undefined {
  const inOrder = [model.stackPointer, model.framePointer, ...model.preserved, ...values.keys()];
  for (const index of inOrder) {
    const value = values[index];
    if (value !== undefined && value.base === anchor && index < model.registerCount) {
      // At entry a register that holds its own value says nothing about the stack, unless it is the stack pointer.
      if (index === anchor || value.base !== index) return { index, offset: value.offset };
    }
  }
  return undefined;
}

/** Where in the frame each entry value lies: index to offset from the CFA. */
function placesOf(state: FrameState, anchor: number, cfaAtEntry: number): Map<number, number> {
  const places = new Map<number, number>();
  for (const { address, register } of state.saved()) {
    if (address.base === anchor && !places.has(register)) places.set(register, address.offset - cfaAtEntry);
  }
  return places;
}

function ruleFor(
  numbers: readonly number[],
  state: FrameState,
  places: ReadonlyMap<number, number>,
  index: number,
): RegisterRule {
  if (state.holdsOwn(index)) return { kind: 'same' };
  const offset = places.get(index);
  if (offset !== undefined) return { kind: 'saved', offset };
  const own: Value = { base: index, offset: 0 };
  const holder = state.values.findIndex((value) => same(value, own));
  return holder < 0 ? { kind: 'undefined' } : { kind: 'register', register: numbers[holder] as number };
}
