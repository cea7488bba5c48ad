import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

/** The registers that say in which mode a hart runs and how it sees memory, for people. */
export interface SystemRegisters {
  /** What {@link state} reads, of what a target may have. */
  readonly names: readonly string[];
  state(registers: RegisterReader): SystemState;
  /** Counts the instructions of a hart; undefined where no register of a stub does. */
  readonly instructionCounter?: string;
}

export interface SystemState {
  /** The specification's word for it. Undefined where the registers do not tell. */
  readonly mode: string | undefined;
  readonly paging: Paging | undefined;
  readonly registers: readonly SystemRegister[];
}

export interface SystemRegister {
  readonly name: string;
  readonly value: bigint;
  /** For people: the names of the bits that are set, or the fields. */
  readonly meaning: string;
}

export interface Paging {
  /** `off` where addresses are physical, else as the specification names it. */
  readonly scheme: string;
  /** Physical address of the root table; undefined where paging is off or not known. */
  readonly root: Addr | undefined;
  /** The number of the address space, where registers tell one. */
  readonly asid: number | undefined;
}

export const pagingOff: Paging = { scheme: 'off', root: undefined, asid: undefined };

/** Those of `names` that are there, each with its meaning. */
export function meanings(
  names: readonly string[],
  registers: RegisterReader,
  meaningOf: (name: string, value: bigint) => string,
): SystemRegister[] {
  return names.flatMap((name) => {
    const value = registers.register(name);
    return value === undefined ? [] : [{ name, value, meaning: meaningOf(name, value) }];
  });
}

/** The names of the bits that are set. */
export function setBits(value: bigint, bits: readonly (readonly [number, string])[]): string[] {
  return bits.filter(([number]) => ((value >> BigInt(number)) & 1n) !== 0n).map(([, name]) => name);
}
