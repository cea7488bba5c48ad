import { qemuOptions } from '../target/index.js';
import { emulatedBy, machinesWith } from './machines/index.js';

/** The kernel's command line, if a QEMU command starts a kernel that unpacks itself with code of no ELF. */
export async function linuxStart(command: readonly string[]): Promise<string | undefined> {
  const [program = '', ...args] = command;
  const options = qemuOptions(args);
  const arch = emulatedBy(program);
  for (const machine of arch ? machinesWith(arch) : []) {
    const commandLine = await machine.unpackedStart?.(options);
    if (commandLine !== undefined) return commandLine;
  }
  return undefined;
}
