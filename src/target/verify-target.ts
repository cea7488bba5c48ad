import { type Architecture, architectureNamed, architectureOf } from '../arch/index.js';
import { type Addr, addr, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import { CoalescedReads, isProcess, registersOf, type Session } from '../rsp/index.js';
import { type CodeState, compareCode, type KnownCode } from './code-compare.js';
import { changesItsCode, landmarks } from './linux.js';

/** The target's code at a probe, compared with the ELF's. */
export interface CodeCheck {
  /** Same bytes. */
  readonly same: readonly Addr[];
  /** Not loaded or not mapped yet: unreadable or all zero. */
  readonly absent: readonly Addr[];
  /** Other code is there now, but the program may run in an address space that is not in use. */
  readonly elsewhere: readonly Addr[];
}

/**
 * Compares the ELF's bytes with the target's at every address, in few packets. The reason: a probe on other code
 * would stop the guest in the middle of something and read nonsense. A program that changes its own code may differ
 * here and there. A kernel's process is visible only while it runs.
 * @throws RsptraceError `ELF_MISMATCH` if any differs; if a program changes its code, if most do
 */
export async function verifyCode(session: Session, elf: ElfFile, addresses: readonly Addr[]): Promise<CodeCheck> {
  const batch = new CoalescedReads(session);
  const codeChanges = changesItsCode(elf);
  const known: KnownCode = { code: (address, length) => elf.bytesAt(address, length), codeChanges };
  const compared = addresses.map((address) => {
    const state = compareCode(batch, known, address);
    if (state) return { address, state };
    throw new RsptraceError(
      'ELF_DAMAGED',
      `the ELF has no code at ${hex(address)}, where its debug info places a function`,
    );
  });
  await batch.send();
  const found: Record<CodeState, Addr[]> = { same: [], absent: [], different: [] };
  for (const { address, state } of compared) found[state()].push(address);
  const { same, absent, different } = found;
  const [first] = different;
  if (first !== undefined && !(codeChanges && same.length > different.length)) {
    if (await mayRunElsewhere(session, elf)) return { same, absent, elsewhere: different };
    throw new RsptraceError(
      'ELF_MISMATCH',
      `the target does not run this ELF: at ${different.length} of ${addresses.length} probes its code differs, first at ${hex(first)}`,
      {
        hint: 'is it a build of another day, or loaded at another address? After an rsptrace that was killed here, run `rsptrace detach`',
      },
    );
  }
  return { same, absent, elsewhere: [] };
}

/** Kernels of all architectures run in the highest 2 GiB. */
const kernelHalf = 0xffff_ffff_8000_0000n;

/**
 * A running Linux may have chosen its address (KASLR). It has if it runs code where kernels do, while functions that
 * every Linux has are not where the ELF says. Nothing is known while a CPU is in a program, or at the beginning of
 * its boot.
 * @throws RsptraceError `KERNEL_MOVES`
 */
export async function verifyPlace(session: Session, arch: Architecture, elf: ElfFile): Promise<void> {
  const places = landmarks(elf);
  if (places.length === 0) return;
  const batch = session.batch();
  const pc = batch.readRegister(arch.pc);
  const known: KnownCode = { code: (address, length) => elf.bytesAt(address, length), codeChanges: true };
  const states = places.map((address) => compareCode(batch, known, address));
  await batch.send();
  if (pc.value === undefined || pc.value < kernelHalf) return;
  const found = states.map((state) => state?.());
  // Where it moved by less than its size, some of its other code is where these functions were.
  if (!found.includes('absent') || found.includes('same') || found.includes(undefined)) return;
  throw new RsptraceError(
    'KERNEL_MOVES',
    `this Linux runs at ${hex(addr(pc.value))}, where it chose to (KASLR), and none of its functions is where the ELF says`,
    { hint: 'add nokaslr to its command line' },
  );
}

/**
 * Compares the stub's architecture with the ELF's; a stub that names none is trusted.
 * @throws RsptraceError `ARCH_MISMATCH`
 */
export function verifyArchitecture(session: Session, arch: Architecture): void {
  const said = session.target.architecture;
  if (said === undefined || arch.gdbNames.includes(said)) return;
  throw new RsptraceError('ARCH_MISMATCH', `the ELF is for ${arch.name}, the stub's target is ${said}`, {
    hint: architectureNamed(said) ? 'give the ELF that runs there' : 'is it the right port?',
  });
}

/** Why a program inside a kernel has no trampolines. */
export const insideKernel =
  'the program runs in user mode, in a kernel that is not the program: memory of ours would not be in each of its address spaces';

const upperHalf = 1n << 63n;

/**
 * Whether a program may run in the target although other code is at its addresses now. It may be in an address space
 * that is not in use at this moment, like a kernel's processes. In a machine that has not run yet, it may come later.
 */
async function mayRunElsewhere(session: Session, elf: ElfFile): Promise<boolean> {
  const arch = architectureOf(elf.machine);
  const levels = arch?.privilege;
  if (!levels || isProcess(session.features)) return false;
  const { registers: names } = levels;
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
  if (elf.code.some(({ address }) => address >= upperHalf)) return true;
  return elf.codeParts().some(({ bytes }) => levels?.isKernelCode(bytes));
}
