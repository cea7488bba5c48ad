import type { Architecture } from '../../arch/index.js';
import type { Addr } from '../../base/addr.js';
import type { MemoryReader } from '../../base/memory-reader.js';
import type { DebugInfo } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import { Stacks } from '../unwind/index.js';
import { Programs } from './programs.js';

/** A further program of a machine, such as a kernel's user program. */
export interface OtherProgram {
  readonly elf: ElfFile;
  readonly debug: DebugInfo | undefined;
}

/** The stacks of further programs in a machine. */
export class OtherPrograms {
  readonly #programs: Programs;
  readonly #stacks: ReadonlyMap<ElfFile, Stacks>;

  /** Those of a machine that runs a program; undefined without any. Throws as {@link Stacks}. */
  static of({
    arch,
    others,
  }: {
    readonly arch: Architecture;
    readonly others: readonly OtherProgram[];
  }): OtherPrograms | undefined {
    return others.length === 0 ? undefined : new OtherPrograms(others, arch);
  }

  private constructor(programs: readonly OtherProgram[], arch: Architecture) {
    this.#programs = new Programs(programs.map(({ elf }) => elf));
    this.#stacks = new Map(programs.map(({ elf, debug }) => [elf, new Stacks(elf, arch, debug)]));
  }

  /** Those of the program whose code is at an address: see {@link Programs.at}. `own` may be there as well. */
  async at(address: Addr, memory: MemoryReader, own: Stacks | undefined): Promise<readonly Stacks[]> {
    const found = await this.#programs.at(address, memory, own ? [own.elf] : []);
    return found.flatMap((elf) => (elf === own?.elf ? own : (this.#stacks.get(elf) ?? [])));
  }
}
