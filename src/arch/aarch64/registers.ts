import type { RegisterDefaults } from '../architecture.js';

/**
 * "DWARF for the Arm 64-bit Architecture", DWARF register names: 0 to 30 x0 to x30, 31 sp, 34 RA_SIGN_STATE, 64 to 95
 * v0 to v31; by the names that target descriptions use (gdb/features/aarch64-core.xml, aarch64-fpu.xml).
 */
const numbered = [...Array.from({ length: 31 }, (_, number) => `x${number}`), 'sp'];
const vectors = Array.from({ length: 32 }, (_, number) => `v${number}`);

export const FP = 29;
export const LR = 30;
export const SP = 31;
/** In an operand that cannot be the stack pointer. */
export const ZR = 31;

export const generalRegisters: readonly string[] = numbered;

/** gdb's own order; lldb-server and debug probes call some of them by their roles. */
export const registerDefaults: RegisterDefaults = {
  layout: [
    ...[...numbered, 'pc'].map((name) => ({ name, bits: 64 })),
    { name: 'cpsr', bits: 32 },
    ...vectors.map((name) => ({ name, bits: 128 })),
    ...['fpsr', 'fpcr'].map((name) => ({ name, bits: 32 })),
  ],
  aliases: [
    ['x29', 'fp'],
    ['x30', 'lr'],
    ['sp', 'xsp'],
    ['cpsr', 'pstate'],
    // Processors with SVE have wider ones, whose low parts are these.
    ...vectors.map((name, number) => [name, `z${number}`]),
    // QEMU 7.2 names those that AArch32 has, too, without their level.
    ...['SCTLR', 'CPACR', 'VBAR'].map((name) => [`${name}_EL1`, name]),
  ],
};

/** x0 to x30 and sp by their target-description names. */
export function nameOf(number: number): string {
  return numbered[number] as string;
}

/** The registers of arguments and results (AAPCS64, "Parameter passing"). */
export const floatArguments: readonly string[] = vectors.slice(0, 8);

/** The register with this DWARF number by its target-description name; undefined if target descriptions have none. */
export function dwarfRegister(number: number): string | undefined {
  return numbered[number] ?? vectors[number - 64];
}

/** A register by its target-description name; 31 is sp. Throws RangeError if it is no general register. */
export function registerNamed(name: string): number {
  const register = generalRegisters.indexOf(name);
  if (register < 0) throw new RangeError(`${name} is no general register`);
  return register;
}
