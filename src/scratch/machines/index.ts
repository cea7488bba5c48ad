import { basename } from 'node:path';
import { type Architecture, architectures } from '../../arch/index.js';
import type { Machine } from './machine.js';
import { pc } from './pc.js';
import { virt } from './virt.js';

/** Every machine of QEMU that is known. */
export const machines: readonly Machine[] = [virt, pc];

/** Those of an architecture. */
export function machinesWith({ qemuMachines = [] }: Pick<Architecture, 'qemuMachines'>): readonly Machine[] {
  return machines.filter(({ name }) => qemuMachines.includes(name));
}

/** The architecture that a program emulates, by the program's name; undefined if it is no known QEMU. */
export function emulatedBy(program: string): Architecture | undefined {
  const emulated = /^qemu-system-(\w+)(?:\.exe)?$/.exec(basename(program))?.[1];
  return architectures().find(({ name }) => name === emulated);
}
