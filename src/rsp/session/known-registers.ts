import type { RegisterSpec } from './target-description.js';

/**
 * The registers of an architecture, as far as they are known without a stub. The protocol itself has none: the caller
 * gives them.
 */
export interface KnownRegisters {
  readonly name: string;
  /** The names in stubs' target.xml `<architecture>`. */
  readonly gdbNames: readonly string[];
  /** The program counter. */
  readonly pc: string;
  /** The registers in the answer to `g` of a stub that describes none, numbered from 0; undefined where not known. */
  readonly layout: readonly { readonly name: string; readonly bits: number }[] | undefined;
  /** Names that stubs and assemblers use for the same register, one list each. */
  readonly aliases: readonly (readonly string[])[];
  /** The names of signals by the numbers of its processes' system, without SIG. */
  readonly signals?: readonly string[] | undefined;
}

/** The architecture that a stub names, else the expected one. */
export function knownRegisters(
  all: readonly KnownRegisters[],
  said: string | undefined,
  expected: string | undefined,
): KnownRegisters | undefined {
  const found = said === undefined ? undefined : all.find(({ gdbNames }) => gdbNames.includes(said));
  return found ?? all.find(({ name }) => name === expected);
}

/** The registers of a stub that does not describe them. */
export function defaultRegisters({ layout }: KnownRegisters): RegisterSpec[] | undefined {
  return layout?.map((register, number) => ({ ...register, number }));
}
