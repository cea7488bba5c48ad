import type { Addr } from '../base/addr.js';
import { RsptraceError } from '../base/errors.js';
import { demangle } from '../dwarf/index.js';
import type { ElfFile } from '../elf/index.js';
import { compileGlob, entryPlan, type PlannedStop } from '../probes/index.js';

/**
 * The address of a function by its symbol, mangled or not, as the ELF counts.
 * @throws RsptraceError `UNTIL_NO_FUNCTION`
 */
export function functionNamed(elf: ElfFile, name: string): Addr {
  const matches = compileGlob(name);
  const exact = elf.symbols.named(name).find(({ type }) => type !== 'object');
  const found =
    exact ??
    [...elf.symbols].find((symbol) => symbol.type === 'function' && matches(demangle(symbol.name, elf.budget)));
  if (found) return found.address;
  throw new RsptraceError('UNTIL_NO_FUNCTION', `${elf.path} has no function ${name}`, {
    hint: 'give its symbol, or its path with * for what you do not know',
  });
}

/** Functions at which a recording ends. Rust's own functions that panic keep nothing in scratch registers. */
export function plannedEnds(elf: ElfFile, until: Addr | undefined, panics: readonly Addr[]): readonly PlannedStop[] {
  const planned = (place: Addr, scratchIsFree: boolean): PlannedStop => {
    const symbol = elf.symbols.allAt(place).find(({ type, address }) => type === 'function' && address === place);
    const { size: codeSize = 0, name = '' } = symbol ?? {};
    return { place, plans: [{ ...entryPlan({ address: place, codeSize, name }), scratchIsFree }] };
  };
  const all = panics.map((place) => planned(place, true));
  return until === undefined ? all : [planned(until, false), ...all];
}
