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
