import { addr, hex } from '../base/addr.js';
import { type Logger, silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import { ElfFile } from '../elf/index.js';
import { architectureFor, isMovedAtBoot, nanosPerInstruction, sleeps } from '../target/index.js';
import { firstBoot, onlyStops, startMachine } from './machine.js';
import { type AttachOptions, Target } from './target.js';

export interface LaunchOptions extends AttachOptions {
  /** The program that runs there. */
  readonly elf: string;
  /** A command that begins with qemu-system-...; what makes it wait for us is added. */
  readonly command: readonly string[];
  /** Receives what the guest writes to its console. */
  readonly onConsole?: (text: Uint8Array) => void;
}

/**
 * Starts QEMU, frozen before its first instruction, so that nothing is missed. Trampolines have memory that the guest
 * does not know of. A kernel that its loader moves boots once before, to see where, unless `loadBias` says it.
 * Disposing of the target ends QEMU.
 * @throws RsptraceError `LOAD_ADDRESS_UNKNOWN`, `RUN_*`, `ELF_*`, `ARCH_*`, `KERNEL_MOVES`, `RSP_*`
 */
export async function launch(options: LaunchOptions): Promise<Target> {
  const { command, logger = silent, timeoutMs, engine, scratch, onConsole = () => {} } = options;
  const elf = await ElfFile.open(options.elf, { logger });
  const arch = architectureFor(elf);
  await arch.prepare();
  const loadBias = options.loadBias ?? (await movedBy(options, elf, logger));
  const machine = await startMachine({
    ...{
      command,
      elf,
      arch,
      logger,
      onConsole,
      hidesNothing: engine === 'stop' ? onlyStops : undefined,
    },
    timeoutMs,
  });
  const { hidden, resetVector, session, qemu } = machine;
  const withHidden = { ...options, scratch: { ...scratch, hidden } };
  const end = async (): Promise<void> => {
    await machine[Symbol.asyncDispose]();
    await qemu.ended;
  };
  const times = { nanosPerInstruction: nanosPerInstruction(command), clockSleeps: sleeps(command) };
  const own = { resetVector, ended: qemu.ended, ...times };
  const asked = isRefusal(hidden) && !scratch ? options : withHidden;
  return new Target(session, elf, { ...asked, loadBias }, end, own);
}

/** How far a first boot shows that its loader moves a kernel; undefined if none does. */
async function movedBy(
  { command, timeoutMs }: LaunchOptions,
  elf: ElfFile,
  logger: Logger,
): Promise<bigint | undefined> {
  if (!isMovedAtBoot(elf)) return undefined;
  const arch = architectureFor(elf);
  const bias = await firstBoot({ command, elf, arch, logger, timeoutMs });
  logger.info({ bias: hex(addr(bias)) }, 'a first boot has shown how far the loader moves the kernel');
  return bias;
}
