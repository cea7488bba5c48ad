import type { RegisterDefaults } from '../architecture.js';

/**
 * RISC-V ELF psABI: "Register Convention" (names), "DWARF Register Numbers". x8 is `fp` in every stub's target
 * description and `s0` in every assembler. The first name is used towards a stub, the second only in text. CSRs
 * (DWARF 4096 to 8191) have no fixed names.
 */
const integer =
  'zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6'.split(' ');

const float =
  'ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7 fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11 ft8 ft9 ft10 ft11'.split(
    ' ',
  );

/** x0 to x31. */
export const generalRegisters: readonly string[] = integer;

/** gdb's own order (gdb/riscv-tdep.h): x0 to x31, pc. */
export const registerDefaults: RegisterDefaults = {
  layout: [...integer, 'pc'].map((name) => ({ name, bits: 64 })),
  aliases: integer.map((name, number) => (name === 'fp' ? ['fp', 's0', 'x8'] : [name, `x${number}`])),
};

export const RA = 1;
export const SP = 2;
export const TP = 4;
export const FP = 8;

/** x0 to x31 by their target-description names; the number must be 0 to 31. */
export function integerName(number: number): string {
  return integer[number] as string;
}

/** x0 to x31 as assembly text spells them. */
export function integerText(number: number): string {
  return number === FP ? 's0' : (integer[number] as string);
}

/** The number of x0 to x31 by either name; undefined for others. */
export function integerNumber(name: string): number | undefined {
  const number = name === 's0' ? FP : integer.indexOf(name);
  return number < 0 ? undefined : number;
}

/** f0 to f31; stubs and assemblers agree. */
export function floatName(number: number): string {
  return float[number] as string;
}

/** The registers of arguments and results (psABI, "Hardware Floating-point Calling Convention"): fa0 to fa7. */
export const floatArguments: readonly string[] = float.slice(10, 18);

/** The number of f0 to f31; undefined for other names. */
export function floatNumber(name: string): number | undefined {
  const number = float.indexOf(name);
  return number < 0 ? undefined : number;
}

/** The register with this DWARF number by its target-description name; undefined for reserved numbers and CSRs. */
export function dwarfRegister(number: number): string | undefined {
  if (number < 32) return integer[number];
  if (number < 64) return float[number - 32];
  return number >= 96 && number < 128 ? `v${number - 96}` : undefined;
}

/** A register by its target-description name. Throws RangeError if it is no integer register. */
export function registerNamed(name: string): number {
  const register = integerNumber(name);
  if (register === undefined) throw new RangeError(`${name} is no integer register`);
  return register;
}
