import type { Architecture } from '../arch/index.js';
import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import { biasWhenItRuns, kernelNotFound, verifyArchitecture } from '../target/index.js';
import { connectTo, orDied, verifyEmulator } from './machine.js';
import { startQemu } from './qemu.js';

interface FirstBootOptions {
  /** A command that begins with qemu-system-... */
  readonly command: readonly string[];
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly logger: Logger;
  readonly timeoutMs?: number;
}

/** How long a loader may take, and how often the kernel is looked for, in milliseconds. */
const wait = { mostMs: 120_000, everyMs: 20 };

/**
 * How far its loader moves a kernel: a machine of this command boots until the kernel runs, and is ended then. Nothing
 * is recorded. It writes to no disk (`-snapshot`), has no input, and its console is not shown.
 * @throws RsptraceError `RUN_*`, `RSP_*`, `ARCH_MISMATCH`, `LOAD_ADDRESS_UNKNOWN`
 */
export async function firstBoot({ command, elf, arch, logger, timeoutMs }: FirstBootOptions): Promise<bigint> {
  const program = command[0] ?? '';
  verifyEmulator(program, arch.name);
  using qemu = await startQemu([...command, '-snapshot'], () => {}, { hasInput: false });
  const options = { command, logger, wire: undefined, timeoutMs };
  const session = await orDied(qemu, program, connectTo(qemu, options));
  try {
    verifyArchitecture(session, arch);
    const bias = await biasWhenItRuns(session, arch, elf, wait);
    if (bias === undefined) throw kernelNotFound(elf, session);
    return bias;
  } finally {
    session.close();
  }
}
