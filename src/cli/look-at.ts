// What commands that look at a target have in common: the program is read, the target connected to, the program found.
import type { Architecture } from '../arch/index.js';
import type { Logger } from '../base/logger.js';
// Single files are imported: a command that answers at once loads no more than it needs.
import { ElfFile } from '../elf/index.js';
import type { Session } from '../rsp/index.js';
import { architectureFor, loadedElf, placeInProcess, verifyArchitecture } from '../target/index.js';
import { type AtTarget, atStub } from './at-target.js';
import { checkFiles, type FileArguments } from './files.js';
import { executableOf, processNamed, underGdbserver } from './local-process.js';
import { createLogger } from './logging.js';
import { verifyMachine } from './open-programs.js';
import { type CommonArguments, type DebugFileArguments, debugFilesOf } from './options/common.js';

/** What a command looks at for a moment: a stub, or a process of this machine. */
interface LookedAt {
  readonly remote?: string | undefined;
  readonly pid?: string | undefined;
}

type LookArguments = CommonArguments & FileArguments & LookedAt & { readonly elf: string };

/** A program that was read, before its target is touched. */
export interface ReadProgram<A extends LookArguments = LookArguments> {
  readonly args: A;
  readonly logger: Logger;
  /** Of a process that is not stopped yet at its addresses there, so that all of it is read before. */
  readonly linked: ElfFile;
  readonly arch: Architecture;
  readonly path: string;
}

/** The program that is looked at: the one that is named, or the process's. */
export function programOf(args: LookedAt & { readonly elf: string | undefined }): string {
  return args.elf ?? executableOf(processNamed(args.pid as string));
}

/** The ELF of a command. No output may be its debug file. Throws as `ElfFile.open` and {@link checkFiles}. */
export async function openElf(
  args: FileArguments & DebugFileArguments & { readonly elf: string },
  logger: Logger,
): Promise<ElfFile> {
  const elf = await ElfFile.open(args.elf, { ...debugFilesOf(args), logger });
  checkFiles(args, elf.debugFiles);
  return elf;
}

/** Reads the program of a command. Throws as {@link openElf}, and `ARCH_*`. */
export async function readProgram<A extends LookArguments>(args: A): Promise<ReadProgram<A>> {
  const logger = createLogger(args.log);
  const elf = await openElf(args, logger);
  const bias = args.pid === undefined ? 0n : placeInProcess(processNamed(args.pid), elf);
  const linked = bias === 0n ? elf : elf.loadedAt(bias);
  const arch = architectureFor(linked);
  await arch.prepare();
  return { args, logger, linked, arch, path: linked.path };
}

/** Connects to what is looked at, runs `body`, and leaves it as it was. */
export async function lookAt<T>(program: ReadProgram, body: (target: AtTarget) => Promise<T>): Promise<T> {
  const { remote, pid } = program.args;
  if (pid === undefined) return await atStub(remote as string, program, body);
  return (await underGdbserver({ pid: processNamed(pid) }, program, body)).result;
}

/** The program as the target has loaded it. Throws `ARCH_MISMATCH`, `USAGE`, and what `loadedElf` throws. */
export async function loadedThere(session: Session, { args, linked, arch }: ReadProgram): Promise<ElfFile> {
  verifyArchitecture(session, arch);
  verifyMachine(session, args);
  return await loadedElf(session, linked);
}
