import type { Logger } from '../base/logger.js';
// By file: a command that answers at once loads no more than it needs.
import { ElfFile } from '../elf/index.js';
import { checkFiles, type FileArguments } from './files.js';
import { type DebugFileArguments, debugFilesOf } from './options.js';

/** The program that a command is about; no output is its debug file. Throws as `ElfFile.open` and {@link checkFiles}. */
export async function openElf(
  args: FileArguments & DebugFileArguments & { readonly elf: string },
  logger: Logger,
): Promise<ElfFile> {
  const elf = await ElfFile.open(args.elf, { ...debugFilesOf(args), logger });
  checkFiles(args, elf.debugFiles);
  return elf;
}
