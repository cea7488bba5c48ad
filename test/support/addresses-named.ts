import { type Addr, addr } from '../../src/base/addr.js';
import { type DebugInfo, rangesOf, staticAddress } from '../../src/dwarf/index.js';

/**
 * The addresses of everything with a name, in ascending order: ELF symbols spelled like this (mangled or not),
 * functions and static variables. A function that was inlined everywhere has no address.
 */
export function addressesNamed(debug: DebugInfo, name: string): Addr[] {
  const { elf } = debug;
  const found = new Set<bigint>(elf.symbols.named(name).map((symbol) => symbol.address));
  for (const die of debug.functionsNamed(name)) {
    const first = debug.attempt(die.unit, () => rangesOf(die)[0]);
    if (first !== undefined && elf.isLoaded(first.low)) found.add(elf.codes.fromCode(first.low));
  }
  for (const die of debug.variablesNamed(name)) {
    const at = debug.attempt(die.unit, () => staticAddress(die));
    if (at !== undefined && elf.isLoaded(elf.codes.toCode(at))) found.add(at);
  }
  return [...found].map(addr).sort((a, b) => (a < b ? -1 : 1));
}
