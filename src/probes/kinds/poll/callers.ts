import type { Architecture } from '../../../arch/index.js';
import type { Addr } from '../../../base/addr.js';
import { AddressMap } from '../../../base/address-map.js';
import type { EventOutput } from '../../../calls/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { ElfFile } from '../../../elf/index.js';
import type { SpaceNumbers } from '../../../target/index.js';
import { SourceFrames } from '../../../target/unwind/index.js';
import type { StackEntry } from '../../../trace/index.js';
import { actingFunction } from '../../acting-function.js';

/** What a tracer of instants is made from. */
export interface InstantContext {
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly debug: DebugInfo | undefined;
  readonly output: EventOutput;
  /** Names the address spaces of hits. */
  readonly spaces?: SpaceNumbers | undefined;
}

/** Who called: among the functions inlined at a return address, the innermost outside of Rust's library. */
export class Callers {
  readonly #sources: SourceFrames;
  readonly #known = new AddressMap<StackEntry>();

  constructor({ elf, debug }: Pick<InstantContext, 'elf' | 'debug'>) {
    this.#sources = new SourceFrames(elf, debug);
  }

  /** Without a return address nobody is named. */
  at(returnAddress: Addr | undefined): StackEntry {
    const known = returnAddress === undefined ? actingFunction([]) : this.#known.get(returnAddress);
    if (known || returnAddress === undefined) return known ?? actingFunction([]);
    const inlined = this.#sources.of({ pc: returnAddress, exact: false });
    const found = actingFunction(inlined.map(({ function: name, file, line }) => ({ function: name, file, line })));
    this.#known.set(returnAddress, found);
    return found;
  }
}
