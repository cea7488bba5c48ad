import type { Architecture, HartSource } from '../arch/index.js';
import type { Refusal } from '../base/refusal.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { cpuInTask, isLinux } from './linux-kernel.js';

/** How the harts of a machine can be told apart from inside, all through the program's life; refused in words for a person. */
export function hartSource(
  { name, probeCode }: Architecture,
  elf: ElfFile,
  debug: DebugInfo | undefined,
  harts: number,
): HartSource | Refusal {
  if (!probeCode) return { refused: `trampolines for ${name} are not known` };
  return probeCode.hartSource({
    count: harts,
    cpuInTask: isLinux(elf) ? () => cpuInTask(elf, debug) : undefined,
  });
}
