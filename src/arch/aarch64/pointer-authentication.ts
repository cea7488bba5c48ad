// Arm Architecture Reference Manual for A-profile, D8.10 "Pointer authentication": a signature takes the bits of an
// address that its translation does not need, but for bit 55, which says whether it is one of the upper half.

/** Stubs that know the bits give them as registers (gdb's org.gnu.gdb.aarch64.pauth_v2), which have no DWARF number. */
const LOW = 4097;
const HIGH = 4098;
export const masks: readonly (readonly [number, string])[] = [
  [LOW, 'pauth_cmask'],
  [HIGH, 'pauth_cmask_high'],
];

/** Without them: all above the 48 bits of the largest usual translation. A smaller one may leave some of a signature. */
const above48 = 0xffff_0000_0000_0000n;

/** The address of code without its signature; addresses without one are what they were. */
export function unsigned(address: bigint, register: (number: number) => bigint | undefined): bigint {
  const isUpper = ((address >> 55n) & 1n) === 1n;
  const mask = register(isUpper ? HIGH : LOW) ?? register(LOW) ?? above48;
  return isUpper ? address | mask | (1n << 63n) : address & ~mask;
}
