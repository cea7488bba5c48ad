// The last records of a machine that ends itself. Memory that ends with the machine cannot be read afterwards, so each
// record is read before the next instruction is run, from the place on where the code powers the machine off.
import type { Architecture } from '../arch/index.js';
import { type Addr, hex } from '../base/addr.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import type { StopEngine } from '../stop/index.js';
import { commandLineOf, powerOffPlaces, qemuOptions } from '../target/index.js';

/** Firmware takes some steps, too: OpenSBI 520 for SBI's system reset. */
const mostSteps = 1500;

interface LastRecordsOptions {
  readonly session: Session;
  readonly arch: Architecture;
  readonly elf: ElfFile;
  readonly stops: StopEngine;
  /** Where a hart comes by that would run the instruction at an address. */
  readonly passedBefore: (address: Addr) => Addr;
  /** Reads what is in the ring. */
  readonly drain: () => Promise<void>;
  /** The machine has ended, and every record was read. */
  readonly onEnd: () => void;
  readonly logger: Logger;
}

/** The places of a program that power its machine off. */
export function lastPlaces({
  session,
  arch,
  elf,
}: Pick<LastRecordsOptions, 'session' | 'arch' | 'elf'>): readonly Addr[] {
  const server = session.serverProcess('qemu');
  const command = typeof server === 'number' ? commandLineOf(server) : [];
  return powerOffPlaces(elf, arch, qemuOptions(command.slice(1)));
}

/** Waits at these places. One that did not power the machine off is not waited at again. */
export async function readLastRecords(places: readonly Addr[], options: LastRecordsOptions): Promise<void> {
  options.logger.debug({ places: places.length }, 'places that power the machine off');
  await waitAt([...new Set(places.map(options.passedBefore))], options);
}

async function waitAt(places: readonly Addr[], options: LastRecordsOptions): Promise<void> {
  if (places.length === 0) return;
  const { stops, drain, onEnd, logger } = options;
  await stops.points.intercept(places, async (hart, at) => {
    if (await stops.walk(hart, mostSteps, drain)) return onEnd();
    logger.info({ at: hex(at) }, 'the machine was not powered off here');
    await waitAt(
      places.filter((place) => place !== at),
      options,
    );
  });
}
