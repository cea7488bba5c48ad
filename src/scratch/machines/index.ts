import { basename } from 'node:path';
import { type Architecture, architectures } from '../../arch/index.js';
import { qemuOptions } from '../../target/index.js';
import type { Machine } from './machine.js';
import { pc } from './pc.js';
import { armVirt, virt } from './virt.js';

/** Every machine of QEMU that is known. */
export const machines: readonly Machine[] = [virt, armVirt, pc];

/** Those of an architecture. */
export function machinesWith({ qemuMachines = [] }: Pick<Architecture, 'qemuMachines'>): readonly Machine[] {
  return machines.filter(({ name }) => qemuMachines.includes(name));
}

/** The architecture that a program emulates, by the program's name; undefined if it is no known QEMU. */
export function emulatedBy(program: string): Architecture | undefined {
  const emulated = /^qemu-system-(\w+)(?:\.exe)?$/.exec(basename(program))?.[1];
  return architectures().find(({ name }) => name === emulated);
}

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
