import type { Architecture, HartSource } from '../arch/index.js';
import type { Refusal } from '../base/refusal.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { cpuInTask, isLinux } from './linux-kernel.js';

/**
 * How the harts of a machine can be told apart from inside during the whole life of the program; refused in words for
 * the user.
 */
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
