import { silent } from '../base/logger.js';
import { isRefusal } from '../base/refusal.js';
import { ElfFile } from '../elf/index.js';
import { architectureFor, nanosPerInstruction, sleeps } from '../facts/index.js';
import { onlyStops, startMachine } from './machine.js';
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
 * is not told of. Disposing of the target ends QEMU.
 * @throws RsptraceError `RUN_*`, `ELF_*`, `ARCH_*`, `KERNEL_MOVES`, `RSP_*`
 */
export async function launch(options: LaunchOptions): Promise<Target> {
  const { command, logger = silent, timeoutMs, engine, scratch, onConsole = () => {} } = options;
  const elf = await ElfFile.open(options.elf, { logger });
  const arch = architectureFor(elf);
  await arch.prepare();
  const machine = await startMachine({
    ...{
      command,
      elf,
      arch,
      logger,
      onConsole,
      outlives: false,
      hidesNothing: engine === 'stop' ? onlyStops : undefined,
    },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const { hidden, resetVector, session, qemu } = machine;
  const withHidden = { ...options, scratch: { ...scratch, hidden } };
  const end = async (): Promise<void> => {
    await machine[Symbol.asyncDispose]();
    await qemu.ended;
  };
  const times = { nanosPerInstruction: nanosPerInstruction(command), clockSleeps: sleeps(command) };
  const own = { resetVector, ended: qemu.ended, ...times };
  return new Target(session, elf, isRefusal(hidden) && !scratch ? options : withHidden, end, own);
}
