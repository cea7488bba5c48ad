import { type Addr, addr } from '../base/addr.js';

/**
 * Numbers the address spaces of programs that a kernel runs, from 1 in the order of their first hits. 0: the
 * kernel's, or the only one.
 */
export class SpaceNumbers {
  readonly #numbers = new Map<bigint, number>();
  readonly #roots: Addr[] = [];

  /** The number of the space whose page tables have their root at this physical address. */
  of(root: bigint): number {
    let number = this.#numbers.get(root);
    if (number === undefined) {
      number = this.#roots.push(addr(root));
      this.#numbers.set(root, number);
    }
    return number;
  }

  root(number = 0): Addr | undefined {
    return number > 0 ? this.#roots[number - 1] : undefined;
  }
}
