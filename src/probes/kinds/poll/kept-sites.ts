import { type Addr, addOffset } from '../../../base/addr.js';
import type { DebugInfo, Die } from '../../../dwarf/index.js';
import type { Kept } from '../../../elf/index.js';
import type { WindowsAround } from '../../inner-windows.js';
import type { InlinedSite, NoSite } from './inlined-sites.js';

/** What was found of a copy: its places, and the windows around each of them. */
export interface FoundSite {
  readonly site: InlinedSite | NoSite;
  readonly windows: readonly WindowsAround[];
}

/** What was found of copies, by the offsets of their DIEs: kept for the next start by the program's own addresses. */
export class KeptSites {
  readonly #kept: Kept | undefined;
  readonly #name: string;
  readonly #bias: bigint;
  readonly #found: Map<number, FoundSite>;
  #isNew = false;

  /** `by`: what they depend on next to the program. */
  constructor(debug: DebugInfo, by: number) {
    this.#kept = debug.kept;
    this.#name = `sites-${by.toString(16)}`;
    this.#bias = debug.elf.loadBias;
    const known = this.#kept?.readValue(this.#name);
    this.#found = known instanceof Map ? known : new Map();
  }

  /** `find`: undefined for what is not kept. */
  of(copy: Die, find: () => FoundSite | undefined): FoundSite | undefined {
    const known = this.#found.get(copy.offset);
    if (known) return moved(known, this.#bias);
    const found = find();
    if (found) this.#found.set(copy.offset, moved(found, -this.#bias));
    this.#isNew ||= found !== undefined;
    return found;
  }

  keep(): void {
    if (this.#isNew) this.#kept?.writeValue(this.#name, this.#found);
    this.#isNew = false;
  }
}

function moved({ site, windows }: FoundSite, by: bigint): FoundSite {
  const there = <T extends { readonly address: Addr }>(one: T): T => ({ ...one, address: addOffset(one.address, by) });
  if (by === 0n) return { site, windows };
  return {
    site: 'begins' in site ? { begins: site.begins.map(there), ends: site.ends.map(there) } : site,
    windows: windows.map((around) => {
      const { windows: found } = around;
      return { ...there(around), windows: typeof found === 'string' ? found : found.map(there) };
    }),
  };
}
