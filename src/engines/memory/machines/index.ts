import { basename } from 'node:path';
import type { Machine } from './machine.js';
import { pc } from './pc.js';
import { virt } from './virt.js';

/** Every machine of QEMU that is known. */
export const machines: readonly Machine[] = [virt, pc];

/** Those that a program emulates, by the program's name; empty if the program is no known QEMU. */
export function machinesOf(program: string): readonly Machine[] {
  const emulated = /^qemu-system-(\w+)(?:\.exe)?$/.exec(basename(program))?.[1];
  return machines.filter(({ emulates }) => emulates === emulated);
}
