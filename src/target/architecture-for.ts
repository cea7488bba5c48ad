import { type Architecture, architectureOf, architectures } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';

/** The architecture that an ELF is for. Throws `ARCH_UNSUPPORTED`. */
export function architectureFor(elf: ElfFile): Architecture {
  const arch = architectureOf(elf.machine);
  if (arch) return arch;
  const known = architectures().map(({ name, elfMachine }) => `${name} (${elfMachine})`);
  throw new RsptraceError(
    'ARCH_UNSUPPORTED',
    `${elf.path} is for an architecture (e_machine ${elf.machine}) that rsptrace does not know`,
    { hint: `supported are ${known.join(', ')}` },
  );
}
