import type { Logger } from '../base/logger.js';
// Single files are imported: a command that answers at once loads no more than it needs.
import { ElfFile } from '../elf/index.js';
import { checkFiles, type FileArguments } from './files.js';
import { type DebugFileArguments, debugFilesOf } from './options/common.js';

/** The program of a command. No output may be its debug file. Throws as `ElfFile.open` and {@link checkFiles}. */
export async function openElf(
  args: FileArguments & DebugFileArguments & { readonly elf: string },
  logger: Logger,
): Promise<ElfFile> {
  const elf = await ElfFile.open(args.elf, { ...debugFilesOf(args), logger });
  checkFiles(args, elf.debugFiles);
  return elf;
}
