/** Counters by which a client can read the guest's time at a stop. `label`: the clock's name in traces. */
export type GuestClock =
  | CounterRegister
  /** The HPET of a PC (IA-PC HPET 1.0a), in physical memory. */
  | { readonly kind: 'hpet'; readonly label: string }
  /** The ACPI PM timer of QEMU's PCs (ACPI 6.5, 4.8.3.3). */
  | { readonly kind: 'acpi-pm'; readonly label: string };

/**
 * A register that counts time. Stubs may serve it without describing it: then its number follows from those of other
 * registers.
 */
export interface CounterRegister {
  readonly kind: 'time';
  readonly label: string;
  readonly number: number;
  /**
   * Other registers with their architectural numbers. One that the stub describes shows where the stub's numbering
   * begins.
   */
  readonly numbered: readonly (readonly [name: string, number: number])[];
  /** Firmware keeps the counter from the kernel, whose reads then trap, while this bit of a register is 0. */
  readonly gate?: { readonly register: string; readonly bit: bigint };
  /** Where some machines have the same counter in physical memory, which stubs read while the gate is closed. */
  readonly mapped?: bigint;
}
