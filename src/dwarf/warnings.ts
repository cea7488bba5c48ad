import type { Logger } from '../base/logger.js';
import type { ElfFile } from '../elf/index.js';

/** The text of the first warning about what cannot be used. */
const PARTLY_USED =
  'a part of the debug info cannot be used, and what is in it is missing here: build the program again, or see the others with --log debug';
/** The most that are kept: a damaged file could fill memory with them. */
const MOST = 1000;

/** What could not be used of an ELF's debug info, one sentence each. */
export class Warnings {
  readonly list: string[] = [];
  readonly #known = new Set<string>();
  readonly #elf: ElfFile;
  readonly #log: Logger;

  constructor(elf: ElfFile, log: Logger) {
    this.#elf = elf;
    this.#log = log;
  }

  /** Notes a part that is not there, which is logged as it is. */
  lack(message: string, hint: string): void {
    const text = `${message}: what is in them is missing here; ${hint}`;
    this.list.push(text);
    this.#log.warn({}, text);
  }

  /** Notes something, once. The first is logged as a warning, because results lack its content. */
  add(message: string): void {
    this.#elf.budget.fault('debug info');
    if (this.#known.has(message)) return;
    const first = this.#known.size === 0;
    if (this.list.length < MOST) {
      this.list.push(message);
      this.#known.add(message);
    }
    if (!first) this.#log.debug({ elf: this.#elf.path }, message);
    else this.#log.warn({ elf: this.#elf.path, debug_info: message }, PARTLY_USED);
  }
}
