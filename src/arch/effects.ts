import { type Addr, addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { Effects, EmulatedInstruction } from './instructions.js';

export const noMemory: Effects['memory'] = [];

/** What `load` returns if the address is unknown or not on the stack. */
const noLoad: { readonly address: Addr; readonly length: number } = { address: addr(0), length: 0 };

export type EmulatedEffects = Omit<EmulatedInstruction, 'length'>;

/**
 * What an instruction does that reads `length` bytes. `placeOf` returns where, or undefined if that is unknown or not on
 * the stack: then there are no effects.
 */
export function afterLoad<P extends { readonly address: Addr }>(
  placeOf: (registers: RegisterReader) => P | undefined,
  length: number,
  effects: (loaded: Uint8Array, place: P, registers: RegisterReader) => Effects | undefined,
): EmulatedEffects {
  return {
    load: (registers) => {
      const place = placeOf(registers);
      return place ? { address: place.address, length } : noLoad;
    },
    effects: (registers, loaded) => {
      const place = placeOf(registers);
      return place && loaded?.length === length ? effects(loaded, place, registers) : undefined;
    },
  };
}

/** What an instruction does whose effects follow from these registers; undefined reads as zero. */
export function fromRegisters(
  names: readonly (string | undefined)[],
  effects: (values: readonly bigint[], registers: RegisterReader) => Effects | undefined,
): EmulatedEffects {
  return {
    effects: (registers) => {
      const values = names.map((name) => (name === undefined ? 0n : registers.register(name)));
      return values.every((value) => value !== undefined) ? effects(values, registers) : undefined;
    },
  };
}

/** The red zone of the x86-64 psABI: the bytes below the stack pointer that a leaf function may use. */
const BELOW = 128n;
const ABOVE = 0x1_0000n;

/** True for an address that a frame near the stack pointer could contain. */
export function isStackAddress(address: Addr, sp: bigint): boolean {
  return address >= sp - BELOW && address < sp + ABOVE;
}
