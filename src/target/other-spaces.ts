import { architectureOf } from '../arch/index.js';
import type { ElfFile } from '../elf/index.js';
import { isProcess, registersOf, type Session } from '../rsp/index.js';

/** Why a program inside a kernel has no trampolines. */
export const insideKernel =
  'the program runs in user mode, in a kernel that is not the program: memory of ours would not be in each of its address spaces';

const kernelHalf = 1n << 63n;

/**
 * Whether a program may run in the target although other code is at its addresses now. It may be in an address space
 * that is not in use at this moment, like a kernel's processes. In a machine that has not run yet, it may come later.
 */
export async function mayRunElsewhere(session: Session, elf: ElfFile): Promise<boolean> {
  const arch = architectureOf(elf.machine);
  const levels = arch?.privilege;
  if (!levels || isProcess(session.features)) return false;
  const names = levels.registers.filter((name) => session.target.register(name) !== undefined);
  const registers = await registersOf(session, undefined, session.features.registerBlock ? names : undefined);
  const { privilege, root } = levels.standing(registers);
  if (privilege === 'user') return true;
  if (isKernel(elf)) return false;
  // A machine that does not page yet is booting, and every program pages.
  const isPaging = arch.addressSpaces?.alwaysPages === true || root !== undefined || privilege === 'firmware';
  return isPaging || (await session.stub()).neverRan();
}

/** Whether a program has instructions that only kernels have, or addresses that only kernels have. */
function isKernel(elf: ElfFile): boolean {
  const levels = architectureOf(elf.machine)?.privilege;
  if (elf.code.some(({ address }) => address >= kernelHalf)) return true;
  return elf.codeParts().some(({ bytes }) => levels?.isKernelCode(bytes));
}
