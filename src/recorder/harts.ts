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

/** Numbers the words by which trampolines tell harts apart, in the order in which they come; a word too many is no hart's own. */
export function hartWords(harts: number): (word: bigint) => number {
  const known = new Map<bigint, number>();
  return (word) => {
    if (harts === 1) return 0;
    const number = known.get(word);
    if (number !== undefined) return number;
    if (known.size === harts) return 0;
    known.set(word, known.size);
    return known.size - 1;
  };
}
