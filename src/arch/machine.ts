import type { Addr } from '../base/addr.js';

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

/** Where a machine of this architecture begins, also after a reset. */
export interface ResetModel {
  /** The reset vector, from the pc of a hart that has not run yet; undefined if that is no known one. */
  vectorAt(pc: bigint): ResetVectorAt | undefined;
  /** The register that shows the mode of a hart that was reset, and its value then. */
  readonly mode: { readonly register: string; readonly value: bigint };
  /** Which harts begin: all of them; or the first one, which starts the others. */
  readonly begins: 'all' | 'first';
  /** The firmware itself may reset the machine once more, when it finds that it ran before. */
  readonly firmwareResets: boolean;
}

export interface ResetVectorAt {
  /** Stops a hart there. */
  readonly breakpoint: { readonly type: 0 | 1; readonly address: Addr; readonly kind: number };
  /** The pc that a stub reports for a hart there. */
  readonly pc: Addr;
  /** No other code runs there; otherwise {@link ResetModel.mode} decides. */
  readonly isCertain: boolean;
}

/** How code ends the machine that it runs on. */
export interface PowerOffModel {
  /**
   * Offsets of instructions behind which the code ends the machine, or has its firmware do so. These are guesses at
   * any byte: data may look alike.
   * @param ports I/O ports of the machine's own whose devices end it, where an architecture has ports
   */
  places(code: Uint8Array, ports: readonly number[]): readonly number[];
}

// The ACPI PM timer (ACPI 6.5, 4.8.3.3): a counter of 24 bits in an I/O port. Firmware chooses the port: SeaBIOS takes
// 0x608, and OVMF 0xb008 on QEMU's `pc` (PcdAcpiPmBaseAddress and Library/PlatformInitLib of EDK II).

/** Ticks a second. */
export const PM_HZ = 3_579_545;
export const PM_WRAP = 0x100_0000;
const ports = [0x608, 0xb008];

type Monitor = (command: string) => Promise<string | undefined>;

/** A command of QEMU's monitor that reads the timer. */
export function readPmTimer(port: number): string {
  return `i /w 0x${port.toString(16)}`;
}

/** What the monitor has answered; undefined if that is no time. A port that nothing claims reads as all ones. */
export function pmTicks(answer: string | undefined): number | undefined {
  const value = Number(/=\s*(0x[0-9a-f]+)/i.exec(answer ?? '')?.[1] ?? Number.NaN);
  return value < PM_WRAP ? value : undefined;
}

/** The timer's port; undefined on a machine without it, or before firmware has set it up. */
export async function pmTimerPort(monitor: Monitor): Promise<number | undefined> {
  for (const port of ports) if (pmTicks(await monitor(readPmTimer(port))) !== undefined) return port;
  return undefined;
}
