import { architectureOf } from '../arch/index.js';
import { addr } from '../base/addr.js';
import type { ElfFile } from '../elf/index.js';
import { isProcess, type Session } from '../rsp/index.js';

/** Why a program inside a kernel has no trampolines. */
export const insideKernel =
  'the program runs in user mode, in a kernel that is not the program: memory of ours would not be in each of its address spaces';

const PT_LOAD = 1;
const executable = 1;
const kernelHalf = 1n << 63n;

/**
 * Whether a program of which other code is seen just now may run in the target all the same: in an address space that is not in use at this
 * moment, as a kernel's processes do, or, of a machine that has not run yet, later.
 */
export async function mayRunElsewhere(session: Session, elf: ElfFile): Promise<boolean> {
  const arch = architectureOf(elf.machine);
  const levels = arch?.privilege;
  if (!levels || isProcess(session.features)) return false;
  const names = levels.registers.filter((name) => session.target.register(name) !== undefined);
  const batch = session.batch();
  const registers = batch.readRegisters(session.features.registerBlock ? names : undefined);
  await batch.send();
  const { privilege, root } = levels.standing(registers.value);
  if (privilege === 'user') return true;
  if (isKernel(elf)) return false;
  // What does not page yet is at its boot, where every program pages.
  const isPaging = arch.addressSpaces?.turnedOnBy === 'always' || root !== undefined || privilege === 'firmware';
  return isPaging || (await session.stub()).neverRan();
}

/** Whether a program has instructions that only kernels have, or lies where only they do. */
export function isKernel(elf: ElfFile): boolean {
  const levels = architectureOf(elf.machine)?.privilege;
  for (const { type, flags, address, fileSize } of elf.segments) {
    if (type !== PT_LOAD || (flags & executable) === 0) continue;
    if (address >= kernelHalf) return true;
    const code = elf.bytesAt(addr(address), fileSize);
    if (code && levels?.isKernelCode(code)) return true;
  }
  return false;
}
