import type { Addr } from '../base/addr.js';
import type { RegisterReader } from '../base/memory-reader.js';

/** The registers that show in which mode a hart runs and how it sees memory, for the user. */
export interface SystemRegisters {
  /** The registers that {@link state} reads, among those that a target has. */
  readonly names: readonly string[];
  state(registers: RegisterReader): SystemState;
}

export interface SystemState {
  /** The specification's name for it. Undefined if the registers do not say. */
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
  /** `off` if addresses are physical; else the specification's name of the mode. */
  readonly scheme: string;
  /** Physical address of the root table; undefined if paging is off or not known. */
  readonly root: Addr | undefined;
  /** The number of the address space, if registers show one. */
  readonly asid: number | undefined;
}

export const pagingOff: Paging = { scheme: 'off', root: undefined, asid: undefined };

/** Those of `names` that exist, each with its meaning. */
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

/** The names of the bits that are set. `named`: names with their bits' numbers, `PE:0 MP:1`. */
export function setBits(value: bigint, named = ''): string[] {
  const all = [...named.matchAll(/(\w+):(\d+)/g)];
  return all.filter(([, , bit = 0]) => ((value >> BigInt(bit)) & 1n) !== 0n).map(([, name = '']) => name);
}
