import type { Architecture } from '../arch/index.js';
import type { MemoryImage } from '../async/tasks/index.js';
import { RsptraceError } from '../base/errors.js';
import { type Logger, silent } from '../base/logger.js';
import type { MemoryReader } from '../base/memory-reader.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { coreThreads, type Libraries, mappedLibraries, readLinuxCore, shiftedByAuxv } from '../target/index.js';
import { type Frame, type FrameVariable, FrameVariables, Stacks } from '../target/unwind/index.js';
import type { BacktraceOptions, HartBacktrace } from './views.js';

/** The stacks in a core, and the program as it was loaded. */
export interface CoreStacks {
  readonly elf: ElfFile;
  readonly debug: DebugInfo | undefined;
  readonly isProcess: boolean;
  readonly harts: readonly HartBacktrace[];
  readonly libraries: Libraries;
}

interface CoreOptions {
  readonly arch: Architecture;
  readonly debugOf: (elf: ElfFile) => DebugInfo | undefined;
  readonly debugDirs?: readonly string[] | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * Every thread's stack in the core of a Linux process; every hart's in QEMU's dump of a machine.
 * @throws RsptraceError `MEMORY_MISSING` if the core is another program's, or has no registers
 */
export async function stacksInCore(
  image: MemoryImage,
  linked: ElfFile,
  { arch, debugOf, debugDirs, logger = silent }: CoreOptions,
  { locals = false, ...options }: BacktraceOptions = {},
): Promise<CoreStacks> {
  const names = arch.linux?.coreRegisters ?? [];
  const threads = coreThreads(image.notes, names);
  if (threads.length === 0) {
    throw new RsptraceError(
      'MEMORY_MISSING',
      'there are no registers of threads or harts, so no stack has a beginning',
      {
        hint: "take an ELF core: Linux's of a process, or what QEMU's dump-guest-memory writes",
      },
    );
  }
  const core = readLinuxCore(image.notes, names);
  const elf = core ? shiftedByAuxv(linked, core.auxv) : linked;
  if (!elf) throw new RsptraceError('MEMORY_MISSING', `the core is not of ${linked.path}: its entry lies elsewhere`);
  // Linux leaves out what the program's file has.
  const memory: MemoryReader = {
    read: async (address, length) => (await image.read(address, length)) ?? elf.bytesAt(address, length),
  };
  const found = { ...(debugDirs ? { debugDirs } : {}), logger, memory, program: elf };
  const libraries = core ? await mappedLibraries(core.files, core.auxv, found) : { loaded: [], missing: [] };
  const debug = debugOf(elf);
  const stacks = new Stacks(elf, arch, debug, libraries.loaded);
  const reader = locals && debug ? new FrameVariables(debug, memory) : undefined;
  const harts: HartBacktrace[] = [];
  for (const { id, registers } of threads) {
    const stack = await stacks.unwind(registers, memory, options);
    const variables = new Map<Frame, readonly FrameVariable[]>();
    if (reader) for (const frame of stack.frames) variables.set(frame, await reader.of(frame));
    harts.push({ hart: { id }, stack, firmware: undefined, other: undefined, variables });
  }
  return { elf, debug, isProcess: core !== undefined, harts, libraries };
}
