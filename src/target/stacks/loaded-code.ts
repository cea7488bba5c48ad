import type { Architecture } from '../../arch/index.js';
import type { Logger } from '../../base/logger.js';
import type { DebugInfo } from '../../dwarf/index.js';
import type { ElfFile } from '../../elf/index.js';
import { isProcess, type Session } from '../../rsp/index.js';
import { type Libraries, librariesOfProcess, loadedLibraries, memoryOfProcess } from '../index.js';
import { Stacks } from '../unwind/index.js';
import type { OtherPrograms } from './other-programs.js';

export interface LoadedCodeOptions {
  /** Or a process of this machine that runs, by its number. */
  readonly session: Session | number;
  readonly elf: ElfFile;
  readonly arch: Architecture;
  readonly debug: DebugInfo | undefined;
  readonly debugDirs?: readonly string[];
  readonly logger: Logger;
  /** Further programs of a machine. */
  readonly others?: OtherPrograms | undefined;
}

/** The code that stacks are walked in. A process may load more of it while it is sampled. */
export class LoadedCode {
  readonly #options: LoadedCodeOptions;
  #libraries: Libraries = { loaded: [], missing: [] };
  #stacks: Stacks;
  /** Looks that led into unknown code since the libraries were listed, and how many are to lead to the next list. */
  #strayed = 0;
  #patience = 1;

  private constructor(options: LoadedCodeOptions) {
    this.#options = options;
    this.#stacks = this.#walker();
  }

  static async find(options: LoadedCodeOptions): Promise<LoadedCode> {
    const code = new LoadedCode(options);
    await code.#list();
    return code;
  }

  get stacks(): Stacks {
    return this.#stacks;
  }

  get others(): OtherPrograms | undefined {
    return this.#options.others;
  }

  get missing(): Libraries['missing'] {
    return this.#libraries.missing;
  }

  /** A stack has led into unknown code. Each list that brings nothing new doubles how many it takes for the next. */
  async strayed(): Promise<void> {
    const { session } = this.#options;
    const isMachine = typeof session === 'object' && !isProcess(session.features);
    if (isMachine || ++this.#strayed < this.#patience) return;
    const before = this.#libraries.loaded.length;
    await this.#list();
    this.#strayed = 0;
    this.#patience = this.#libraries.loaded.length === before ? 2 * this.#patience : 1;
  }

  async #list(): Promise<void> {
    const { session, elf, logger, debugDirs } = this.#options;
    const options = { logger, ...(debugDirs ? { debugDirs } : {}) };
    if (typeof session === 'object') this.#libraries = await loadedLibraries(session, elf, options);
    else {
      using memory = memoryOfProcess(session);
      const unread = memory ?? { read: async () => undefined };
      this.#libraries = await librariesOfProcess(session, elf, unread, options);
    }
    this.#stacks = this.#walker();
  }

  #walker(): Stacks {
    const { elf, arch, debug } = this.#options;
    return new Stacks(elf, arch, debug, this.#libraries.loaded);
  }
}
