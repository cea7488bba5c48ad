import { architectureOf, standing, standingRegisters } from '../arch/index.js';
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
  if (!arch || isProcess(session.features)) return false;
  const names = standingRegisters(arch.name).filter((name) => session.target.register(name) !== undefined);
  const batch = session.batch();
  const registers = batch.readRegisters(session.features.registerBlock ? names : undefined);
  await batch.send();
  const { privilege, root } = standing(arch.name, registers.value);
  if (privilege === 'user') return true;
  if (isKernel(elf)) return false;
  // An x86 that does not page yet runs no 64-bit program: it is at its boot.
  return arch.name === 'x86_64' || root !== undefined || privilege === 'firmware' || (await session.stub()).neverRan();
}

/** Whether a program has instructions that only kernels have, or lies where only they do. */
export function isKernel(elf: ElfFile): boolean {
  const arch = architectureOf(elf.machine)?.name;
  for (const { type, flags, address, fileSize } of elf.segments) {
    if (type !== PT_LOAD || (flags & executable) === 0) continue;
    if (address >= kernelHalf) return true;
    const code = elf.bytesAt(addr(address), fileSize);
    if (code && (arch === 'riscv64' ? returnsFromTraps(code) : setsUpPaging(code))) return true;
  }
  return false;
}

/** riscv64: `sret` or `mret`. */
function returnsFromTraps(code: Uint8Array): boolean {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let at = 0; at + 4 <= code.length; at += 2) {
    const word = view.getUint32(at, true);
    if (word === 0x10200073 || word === 0x30200073) return true;
  }
  return false;
}

/** x86_64: both `mov cr3, register` and `lgdt` or `lidt` of memory. One of them may be a constant by chance. */
function setsUpPaging(code: Uint8Array): boolean {
  let [hasRoot, hasTable] = [false, false];
  for (let at = code.indexOf(0x0f); at >= 0 && at + 2 < code.length; at = code.indexOf(0x0f, at + 1)) {
    const [opcode, operand = 0] = [code[at + 1], code[at + 2]];
    hasRoot ||= opcode === 0x22 && operand >= 0xd8 && operand <= 0xdf;
    hasTable ||= opcode === 0x01 && operand < 0xc0 && ((operand >> 3) & 7) >> 1 === 1;
  }
  return hasRoot && hasTable;
}
