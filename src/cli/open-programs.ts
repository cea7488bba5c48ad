// The further programs of a machine: --elf.
import { linesOf } from '../api/index.js';
import { architectureOf } from '../arch/index.js';
import { RsptraceError } from '../base/errors.js';
import type { Logger } from '../base/logger.js';
import { ElfFile, ET } from '../elf/index.js';
import { isProcess, type Session } from '../rsp/index.js';
import { type OtherProgram, Programs } from '../target/stacks/index.js';
import { checkFiles, type FileArguments, placedProgram } from './files.js';
import { usage } from './options/option.js';

interface ProgramArguments {
  readonly programs: readonly string[];
  readonly 'debug-dir': readonly string[];
}

/** Those of `--elf` with what debug info they have, for stacks. Throws as {@link openElfs}. */
export async function openPrograms(
  args: ProgramArguments & FileArguments,
  main: ElfFile,
  logger: Logger,
): Promise<OtherProgram[]> {
  const elfs = await openElfs(args, main, logger);
  checkFiles(
    args,
    elfs.flatMap((elf) => elf.debugFiles),
  );
  return elfs.map((elf) => ({ elf, debug: linesOf(elf, logger) }));
}

/**
 * Those of `--elf`, in their order; `main` is the ELF itself.
 * @throws RsptraceError `ARCH_MISMATCH`, `USAGE`, and what `ElfFile.open` throws
 */
export async function openElfs(args: ProgramArguments, main: ElfFile, logger: Logger): Promise<ElfFile[]> {
  const programs: ElfFile[] = [];
  const code = new Programs([]);
  for (const words of args.programs) {
    const elf = await opened(words, args, logger);
    if (elf.machine !== main.machine) throw ofOtherMachine(elf, main);
    const twin = [main, ...programs].find((other) => code.areSame(elf, other));
    if (twin !== undefined) throw sameCode(elf, twin);
    programs.push(elf);
  }
  return programs;
}

async function opened(words: string, args: ProgramArguments, logger: Logger): Promise<ElfFile> {
  const { path, bias } = placedProgram(words);
  const elf = await ElfFile.open(path, { debugDirs: args['debug-dir'], logger });
  if (bias === 0n) return elf;
  if (elf.type === ET.DYN) return elf.loadedAt(bias);
  throw usage(`${path} is linked to its addresses, so it is loaded nowhere else`, 'leave @0x... out');
}

/** @throws RsptraceError `USAGE` for further programs of a process, which has one */
export function verifyMachine(session: Session, { programs = [] }: Partial<Pick<FileArguments, 'programs'>>): void {
  if (programs.length === 0 || !isProcess(session.features)) return;
  throw usage('--elf names further programs of a machine, and this stub has a process', 'leave --elf out');
}

function ofOtherMachine(elf: ElfFile, main: ElfFile): RsptraceError {
  const [given, wanted] = [elf, main].map(({ machine }) => architectureOf(machine)?.name ?? 'another processor');
  return new RsptraceError('ARCH_MISMATCH', `${elf.path} is for ${given}, and ${main.path} for ${wanted}`, {
    hint: 'give the ELF that runs on the same machine',
  });
}

function sameCode(elf: ElfFile, twin: ElfFile): RsptraceError {
  const what =
    elf.path === twin.path ? `${elf.path} is given twice` : `${elf.path} and ${twin.path} have the same code`;
  return usage(`${what}: nothing would say which of them runs`, 'leave one of them out');
}
