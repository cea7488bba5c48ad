import { type Architecture, architectureNamed } from '../arch/index.js';
import { type Addr, addOffset, hex } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../dwarf/index.js';
import type { Session } from '../rsp/index.js';
import { changesItsCode } from './linux-kernel.js';

/** What stands in the target where a probe goes, against what the ELF says. */
export interface CodeCheck {
  /** Same bytes. */
  readonly same: readonly Addr[];
  /** Not loaded or not mapped yet: unreadable or all zero. */
  readonly absent: readonly Addr[];
}

const compared = 16;
/** Where tracers patch a function. */
const patched = 8;

/**
 * Compares the ELF's bytes with the target's at every address, in one write. A probe on other code would stop the guest in the
 * middle of something and read nonsense. A program that changes its own code may differ here and there.
 * @throws RsptraceError `ELF_MISMATCH` when any of them differs, of a program that changes its code most of them
 */
export async function verifyCode(session: Session, elf: ElfFile, addresses: readonly Addr[]): Promise<CodeCheck> {
  const batch = session.batch();
  const changes = changesItsCode(elf);
  const reads = addresses.map((entry) => {
    const behind = addOffset(entry, patched);
    const address = changes && elf.bytesAt(behind, 1) ? behind : entry;
    // A function at the very end of its segment has fewer bytes.
    for (let length = compared; length > 0; length--) {
      const expected = elf.bytesAt(address, length);
      if (expected) return { address: entry, expected, reply: batch.readMemory(address, length) };
    }
    throw new RsptraceError(
      'ELF_DAMAGED',
      `the ELF has no code at ${hex(address)}, where its debug info places a function`,
    );
  });
  await batch.send();
  const same: Addr[] = [];
  const absent: Addr[] = [];
  const different: Addr[] = [];
  for (const { address, expected, reply } of reads) {
    const actual = reply.value;
    if (!actual || actual.every((byte) => byte === 0)) absent.push(address);
    else if (actual.every((byte, i) => byte === expected[i])) same.push(address);
    else different.push(address);
  }
  const [first] = different;
  if (first !== undefined && !(changes && same.length > different.length)) {
    throw new RsptraceError(
      'ELF_MISMATCH',
      `the target does not run this ELF: at ${different.length} of ${addresses.length} probes its code differs, first at ${hex(first)}`,
      { hint: 'is it a build of another day, or loaded at another address?' },
    );
  }
  return { same, absent };
}

/**
 * Compares what the stub says it debugs with what the ELF is for; a stub that says nothing is believed.
 * @throws RsptraceError `ARCH_MISMATCH`
 */
export function verifyArchitecture(session: Session, arch: Architecture): void {
  const said = session.target.architecture;
  if (said === undefined || arch.gdbNames.includes(said)) return;
  throw new RsptraceError('ARCH_MISMATCH', `the ELF is for ${arch.name}, the stub's target is ${said}`, {
    hint: architectureNamed(said) ? 'give the ELF that runs there' : 'is it the right port?',
  });
}
