import type { Architecture, FieldSource } from '../arch/index.js';
import type { Refusal } from '../base/refusal.js';
import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { cpuInTask, isLinux } from './linux-kernel.js';

/** How a trampoline knows which hart it runs on. */
export type HartSource = FieldSource & { readonly kind: 'hart' };

/** What an APIC's number has room for in the `cpuid` leaf that tells it. */
const mostProcessors = 256;

/** How the harts of a machine can be told apart from inside, all through the program's life; refused in words for a person. */
export function hartSource(
  { name }: Architecture,
  elf: ElfFile,
  debug: DebugInfo | undefined,
  harts: number,
): HartSource | Refusal {
  if (name === 'x86_64') {
    if (harts <= mostProcessors) return { kind: 'hart', how: 'apic' };
    return { refused: `trampolines tell ${mostProcessors} processors apart, the machine has ${harts}` };
  }
  if (!isLinux(elf)) return { kind: 'hart', how: 'tp' };
  const offset = cpuInTask(elf, debug);
  if (offset !== undefined) return { kind: 'hart', how: 'at-tp', offset };
  return { refused: 'neither BTF nor DWARF tells where a task of this Linux has the number of its CPU' };
}
