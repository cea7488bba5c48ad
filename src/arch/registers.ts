/** The registers of an architecture, by the names that target descriptions use. */
export interface RegisterModel {
  /** The registers that every stop needs. */
  readonly pc: string;
  readonly sp: string;
  /** All that hold integers. */
  readonly generalRegisters: readonly string[];
  /** The register with this DWARF number (psABI DWARF mapping); undefined if target descriptions have none. */
  dwarfRegister(number: number): string | undefined;
}

/** What is known about registers without a stub's target description. */
export interface RegisterDefaults {
  /** The registers in the answer to `g` of a stub that does not describe them: in gdb's order, numbered from 0. */
  readonly layout: readonly { readonly name: string; readonly bits: number }[];
  /** Names that stubs and assemblers use for the same register, one list for each. */
  readonly aliases: readonly (readonly string[])[];
}
