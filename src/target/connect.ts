import { type Architecture, architectureOf, architectures } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { ElfFile } from '../elf/index.js';
import {
  type ConnectOptions,
  connect as connectTo,
  type KnownRegisters,
  type RemoteAddress,
  type Session,
} from '../rsp/index.js';

/** Options of {@link connect}, without those that it sets itself. */
export type TargetOptions = Omit<ConnectOptions, 'architectures'>;

/** `connect` of `rsptrace/rsp`, with the registers of every known architecture. Throws the same errors. */
export function connect(address: string | RemoteAddress, options: TargetOptions = {}): Promise<Session> {
  return connectTo(address, { ...options, architectures: knownArchitectures() });
}

/** What `rsptrace/rsp` needs to know about every architecture. */
export function knownArchitectures(): readonly KnownRegisters[] {
  return architectures().map(({ name, gdbNames, pc, pointerBits, registerDefaults, linux }) => ({
    ...{ name, gdbNames, pc, pointerBits, signals: linux?.signals },
    layout: registerDefaults?.layout,
    aliases: registerDefaults?.aliases ?? [],
  }));
}

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
