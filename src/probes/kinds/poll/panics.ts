import type { Addr } from '../../../base/addr.js';
import type { ElfFile } from '../../../elf/index.js';
import { entryPlan, type ReadPlan } from '../../read-plan.js';

/** A function that runs when a panic has been caught, and at no other time. */
export interface CatchProbe {
  readonly address: Addr;
  readonly size: number;
  readonly name: string;
}

/**
 * The functions that `std::panic::catch_unwind` calls when it has caught something, from its surrounding function.
 * All deeper calls on this stack have been unwound. The first one calls the second, or the second replaces it if it
 * is inlined. Names are those of symbols, legacy and v0, up to Rust 1.84 and from there on.
 */
const catches: readonly { readonly symbol: RegExp; readonly name: string }[] = [
  { symbol: /3std9panicking(3try|12catch_unwind)7cleanup/, name: 'std::panicking::catch_unwind::cleanup' },
  { symbol: /__rust_panic_cleanup$/, name: '__rust_panic_cleanup' },
];

/** Where polls that panic can be distinguished from lost polls; none in a program that does not unwind. */
export function catchProbes(elf: ElfFile): CatchProbe[] {
  const found = new Map<bigint, CatchProbe>();
  for (const { name: symbol, address, size } of elf.symbols) {
    const known = catches.find((each) => each.symbol.test(symbol));
    if (known && size > 0 && !found.has(address)) found.set(address, { address, size, name: known.name });
  }
  return [...found.values()];
}

/** Reads only the fact that it was called, and where the stack is. */
export function planCatch({ address, size, name }: CatchProbe): ReadPlan {
  return entryPlan({ address, codeSize: size, name });
}
