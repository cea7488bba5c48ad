import type { DebugInfo } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { CodeMap, executable, type FunctionCode } from '../target/unwind/index.js';

/** The functions around what a quick search of all code has found, each once. */
export function* functionsAround(
  elf: ElfFile,
  debug: DebugInfo | undefined,
  seek: (bytes: Uint8Array) => Iterable<number>,
): Generator<FunctionCode> {
  const code = CodeMap.of(elf, debug);
  const seen = new Set<number>();
  for (const { low, high } of executable(elf)) {
    const bytes = elf.bytesAt(elf.codes.fromCode(low), high - low);
    if (!bytes) continue;
    elf.budget.spend(bytes.length, 'the program text');
    for (const offset of seek(bytes)) {
      const host = code.functionAt(low + offset);
      if (!host || seen.has(host.low)) continue;
      seen.add(host.low);
      yield host;
    }
  }
}
