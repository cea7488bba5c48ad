import type { RegisterDefaults } from '../architecture.js';

/**
 * LoongArch ELF psABI: "Register Convention" (names), "DWARF Register Numbers": 0 to 31 r0 to r31, 32 to 63 f0 to f31.
 * Target descriptions number the registers (gdb/features/loongarch/base64.xml, fpu.xml). Assemblers name them by their
 * roles.
 */
const roles =
  'zero ra tp sp a0 a1 a2 a3 a4 a5 a6 a7 t0 t1 t2 t3 t4 t5 t6 t7 t8 r21 fp s0 s1 s2 s3 s4 s5 s6 s7 s8'.split(' ');
const integer = Array.from({ length: 32 }, (_, number) => `r${number}`);
const float = Array.from({ length: 32 }, (_, number) => `f${number}`);

export const RA = 1;
export const SP = 3;
export const FP = 22;

export const generalRegisters: readonly string[] = integer;

/** gdb's own order (gdb/arch/loongarch.h). */
export const registerDefaults: RegisterDefaults = {
  layout: [...integer, 'orig_a0', 'pc', 'badv'].map((name) => ({ name, bits: 64 })),
  aliases: roles.flatMap((role, number) => (role === `r${number}` ? [] : [[`r${number}`, role]])),
};

/** r0 to r31 by their target-description names; the number must be 0 to 31. */
export function nameOf(number: number): string {
  return integer[number] as string;
}

/** The registers of arguments and results (psABI, "Procedure Calling Convention"): fa0 to fa7. */
export const floatArguments: readonly string[] = float.slice(0, 8);

/** The register with this DWARF number by its target-description name; undefined for reserved numbers. */
export function dwarfRegister(number: number): string | undefined {
  return integer[number] ?? float[number - 32];
}
