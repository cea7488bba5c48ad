/*
 * A core file, read as the target that it was written of. Its notes have the registers of threads or harts. Those of a
 * process of Linux also say where the program was loaded.
 */

import type { Architecture } from '../arch/index.js';
import { type MemoryImage, takeSnapshot, writableRegions } from '../async/tasks/index.js';
import { type Addr, addOffset, addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { silent } from '../base/logger.js';
import type { RegisterReader } from '../base/memory-reader.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import {
  coreThreads,
  type Libraries,
  type LinuxCore,
  mappedLibraries,
  readLinuxCore,
  shiftedByAuxv,
} from '../target/index.js';
import { FrameVariables, Stacks } from '../target/unwind/index.js';
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
import { type BacktraceOptions, type HartBacktrace, type LookedAt, linesOf, variablesOf } from './views.js';

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
  const elf = placedBy(core, linked);
  const tops = stackPointers(core.threads, arch);
  const { regions, heaps, stacks, dead } = processRegions(mappingsOf(image, elf, core), tops);
  const memory = await takeSnapshot(image, clipped([...writableRegions(elf), ...scan, ...regions], dead), {
    ...{ beyond: constantsOf(elf), pointerBits: arch.pointerBits },
  });
  const libraries = await mappedLibraries(core.files, core.auxv, { debugDirs, logger, memory: image, program: elf });
  logger.debug({ threads: core.threads.length, missing: libraries.missing }, 'a core of a process');
  const walk: TargetCopy['walk'] = (program) => walkAll(core.threads, memory, libraries, arch, program);
  return { elf, copy: { memory, heaps, stacks, dead, knowsHeaps: true, walk } };
}

function placedBy({ auxv }: LinuxCore, linked: ElfFile): ElfFile {
  const elf = shiftedByAuxv(linked, auxv);
  if (elf) return elf;
  throw new RsptraceError('MEMORY_MISSING', `the core is not of ${linked.path}: its entry lies elsewhere`);
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

/** The stacks in a core, and the program as it was loaded. */
export interface CoreStacks {
  readonly elf: ElfFile;
  readonly debug: DebugInfo | undefined;
  readonly isProcess: boolean;
  readonly harts: readonly HartBacktrace[];
  readonly libraries: Libraries;
}

/**
 * Every thread's stack in the core of a Linux process; every hart's in QEMU's dump of a machine.
 * @throws RsptraceError `MEMORY_MISSING` if the core is another program's, or has no registers
 */
export async function stacksInCore(
  image: MemoryImage,
  linked: ElfFile,
  { arch, debugDirs, logger = silent }: Pick<LookedAt, 'arch' | 'debugDirs' | 'logger'>,
  { locals = false, ...options }: BacktraceOptions = {},
): Promise<CoreStacks> {
  const names = arch.linux?.coreRegisters ?? [];
  const threads = coreThreads(image.notes, names);
  if (threads.length === 0) {
    const what = 'there are no registers of threads or harts, so no stack has a beginning';
    throw new RsptraceError('MEMORY_MISSING', what, {
      hint: "take an ELF core: Linux's of a process, or what QEMU's dump-guest-memory writes",
    });
  }
  const core = readLinuxCore(image.notes, names);
  const elf = core ? placedBy(core, linked) : linked;
  // Linux leaves out what the program's file has.
  const memory = constantsOf(elf, image);
  const libraries = core
    ? await mappedLibraries(core.files, core.auxv, { debugDirs, logger, memory, program: elf })
    : { loaded: [], missing: [] };
  const debug = linesOf(elf, logger);
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const reader = locals && debug ? new FrameVariables(debug, memory) : undefined;
  const harts: HartBacktrace[] = [];
  const lacksPc = core === undefined && arch.linux?.dumpsLackPc === true;
  for (const { id, registers } of threads) {
    const stack = await stacks.unwind(lacksPc ? atLastCall(registers, arch) : registers, memory, options);
    const variables = await variablesOf(stack, reader);
    harts.push({
      ...{ hart: { id }, stack, firmware: undefined, other: undefined, program: elf, variables },
      ...(lacksPc ? { beginsAt: 'last-call' } : {}),
    });
  }
  return { elf, debug, isProcess: core !== undefined, harts, libraries };
}

/** Registers that have the call before the return address as the pc: the innermost place that is known without one. */
function atLastCall(registers: RegisterReader, arch: Architecture): RegisterReader {
  const { returnAddress, pc, codeAlignment } = arch;
  return {
    register(name) {
      if (name !== pc || returnAddress.in !== 'register') return registers.register(name);
      const back = registers.register(returnAddress.name);
      return back === undefined ? undefined : addr(back - BigInt(codeAlignment));
    },
  };
}
