import type { Architecture } from '../arch/index.js';
import type { Session } from '../rsp/index.js';
import type { HartInfo } from '../trace/index.js';

/** Numbers harts in the order in which the stub lists them; later ones as they come. */
export class HartNumbers {
  readonly #numbers = new Map<string, number>();
  readonly #infos: HartInfo[] = [];
  onNew: (hart: HartInfo) => void = () => {};

  constructor(known: readonly { readonly id: string; readonly name: string }[]) {
    for (const { id, name } of known) this.#add(id, name);
  }

  all(): readonly HartInfo[] {
    return [...this.#infos];
  }

  number(id: string | undefined): number {
    if (id === undefined) return 0;
    const known = this.#numbers.get(id);
    if (known !== undefined) return known;
    const added = this.#add(id, `hart ${id}`);
    this.onNew(added);
    return added.number;
  }

  #add(id: string, name: string): HartInfo {
    const hart = { number: this.#infos.length, name };
    this.#numbers.set(id, hart.number);
    this.#infos.push(hart);
    return hart;
  }
}

/** What the stub calls a hart, without what it is doing just now: QEMU says `CPU#0 [running]`. */
export function hartName(id: string, name: string | undefined): string {
  return name?.replace(/\s*\[.*\]$/, '') || `hart ${id}`;
}

/**
 * Numbers the words by which trampolines tell harts apart: as the stub lists the harts, where their registers tell which word is whose, else
 * in the order in which the words come. A word too many is no hart's own.
 */
export class HartWords {
  readonly #harts: number;
  readonly #known = new Map<bigint, number>();
  readonly #hints = new Map<bigint, number>();

  constructor(harts: number) {
    this.#harts = harts;
  }

  /** Reads the words of all harts where a register holds them. A hart that is not up yet may have another one later. */
  async learn(session: Session, arch: Architecture, number: (id: string) => number): Promise<void> {
    if (this.#harts === 1 || arch.name !== 'riscv64') return;
    this.#hints.clear();
    const several = new Set<bigint>();
    for (const { id } of await session.harts()) {
      const batch = session.batch(id);
      const word = batch.readRegister('tp');
      await batch.send();
      if (word.value === undefined) continue;
      if (this.#hints.has(word.value)) several.add(word.value);
      this.#hints.set(word.value, number(id));
    }
    for (const word of several) this.#hints.delete(word);
  }

  number(word: bigint): number {
    if (this.#harts === 1) return 0;
    const known = this.#known.get(word);
    if (known !== undefined) return known;
    if (this.#known.size === this.#harts) return 0;
    const taken = new Set(this.#known.values());
    let number = this.#hints.get(word);
    if (number === undefined || taken.has(number)) for (number = 0; taken.has(number); ) number++;
    this.#known.set(word, number);
    return number;
  }
}
