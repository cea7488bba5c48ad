import { addr, hex } from '../base/addr.js';
import { isRefusal } from '../base/errors.js';
import { silent } from '../base/logger.js';
import { ElfFile } from '../elf/index.js';
import { architectureFor, isMovedAtBoot } from '../target/index.js';
import * as given from './given.js';
import { verifyGiven } from './given.js';
import { firstBoot, onlyStops, startMachine } from './machine.js';
import { type AttachOptions, attachMusts, Target } from './target.js';

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
  verifyGiven('launch', options, { ...attachMusts, elf: given.text, command: given.texts, onConsole: given.call });
  const { command, logger = silent, timeoutMs, engine, scratch, onConsole = () => {} } = options;
  const elf = await ElfFile.open(options.elf, { logger });
  const arch = architectureFor(elf);
  await arch.prepare();
  const asked = { command, elf, arch, logger, timeoutMs };
  const loadBias = options.loadBias ?? (isMovedAtBoot(elf) ? await firstBoot(asked) : undefined);
  if (options.loadBias === undefined && loadBias !== undefined)
    logger.info({ bias: hex(addr(loadBias)) }, 'a first boot has shown how far the loader moves the kernel');
  const hidesNothing = engine === 'stop' ? onlyStops : undefined;
  const machine = await startMachine({ ...asked, onConsole, hidesNothing });
  const { hidden, known, session, qemu } = machine;
  const end = async (): Promise<void> => {
    await machine[Symbol.asyncDispose]();
    await qemu.ended;
  };
  const own = isRefusal(hidden) && !scratch ? options : { ...options, scratch: { ...scratch, hidden } };
  return new Target(session, elf, { ...own, loadBias }, end, { known, ended: qemu.ended });
}
