/*
 * A core file of a Linux process, looked at as the process itself would be. Its notes have the registers of threads,
 * and the place where the program was loaded.
 */

import { type MemoryImage, takeSnapshot, writableRegions } from '../async/tasks/index.js';
import { type Addr, addOffset } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { silent } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';
import { type LinuxCore, mappedLibraries, readLinuxCore, shiftedByAuxv } from '../target/index.js';
import {
  type CopyOptions,
  clipped,
  constantsOf,
  HEAP,
  processRegions,
  stackPointers,
  type TargetCopy,
  walkAll,
} from './task-copy.js';

/** What a process was when its core was written, and the program as it was loaded. */
interface CoreCopy {
  readonly copy: TargetCopy;
  readonly elf: ElfFile;
}

/**
 * Undefined for a dump of a machine, and where the cores of an architecture are not known.
 * @throws RsptraceError `MEMORY_MISSING` if it is another program's
 */
export async function copyCore(
  image: MemoryImage,
  linked: ElfFile,
  { arch, scan = [], debugDirs, logger = silent }: CopyOptions,
): Promise<CoreCopy | undefined> {
  const registers = arch.linux?.coreRegisters;
  const core = registers && readLinuxCore(image.notes, registers);
  if (!core) return undefined;
  const elf = shiftedByAuxv(linked, core.auxv);
  if (!elf) throw new RsptraceError('MEMORY_MISSING', `the core is not of ${linked.path}: its entry lies elsewhere`);
  const tops = stackPointers(core.threads, arch);
  const { regions, heaps, stacks, dead } = processRegions(mappingsOf(image, elf, core), tops, logger);
  const memory = await takeSnapshot(image, clipped([...writableRegions(elf), ...scan, ...regions], dead), {
    beyond: constantsOf(elf),
  });
  const options = { ...(debugDirs ? { debugDirs } : {}), logger, memory: image, program: elf };
  const libraries = await mappedLibraries(core.files, core.auxv, options);
  logger.debug({ threads: core.threads.length, missing: libraries.missing }, 'a core of a process');
  return {
    elf,
    copy: {
      ...{ memory, heaps, stacks, dead, knowsHeaps: true },
      walk: (program) => walkAll(core.threads, memory, libraries, arch, program),
    },
  };
}

/** A core does not name the heap: it is the first writable memory of no file behind the program. */
function mappingsOf(
  { regions }: MemoryImage,
  elf: ElfFile,
  { files }: LinuxCore,
): { readonly start: Addr; readonly end: Addr; readonly path: string }[] {
  const own = writableRegions(elf).map(({ start, length }) => addOffset(start, length));
  const behind = own.reduce((last, end) => (end > last ? end : last), elf.entry);
  let hasHeap = false;
  return regions.flatMap(({ start, length, isWritable }) => {
    if (!isWritable) return [];
    const isFile = files.some((file) => start >= file.start && start < file.end);
    const isHeap = !hasHeap && !isFile && start >= behind;
    hasHeap ||= isHeap;
    return [{ start, end: addOffset(start, length), path: isHeap ? HEAP : '' }];
  });
}
