import { type Addr, addr } from '../base/addr.js';

/** Address spaces of programs that a kernel runs, numbered from 1 as they are met. 0: the kernel's, or the only one. */
export class SpaceNumbers {
  readonly #numbers = new Map<bigint, number>();
  readonly #roots: Addr[] = [];

  /** Of the one with its page tables' root at a physical address. */
  of(root: bigint): number {
    let number = this.#numbers.get(root);
    if (number === undefined) {
      number = this.#roots.push(addr(root));
      this.#numbers.set(root, number);
    }
    return number;
  }

  root(number: number): Addr | undefined {
    return number > 0 ? this.#roots[number - 1] : undefined;
  }
}
