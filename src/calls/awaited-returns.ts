import { AddressMap } from '../base/address-map.js';
import type { OpenCall } from './open-call.js';

/** How many open calls wait for a stop at an address. */
export class AwaitedReturns {
  readonly #awaited = new AddressMap<number>(64);
  /** The sum of these numbers. */
  #awaiting = 0;

  has(returnAddress: bigint): boolean {
    return (this.#awaited.get(returnAddress) ?? 0) > 0;
  }

  get hasAny(): boolean {
    return this.#awaiting > 0;
  }

  add(returnAddress: bigint): void {
    this.#awaiting++;
    this.#awaited.set(returnAddress, (this.#awaited.get(returnAddress) ?? 0) + 1);
  }

  /** For a call that is neither open nor set aside any more. Until then its return may come and identify its stack. */
  remove({ stops, returnAddress }: Pick<OpenCall<unknown>, 'stops' | 'returnAddress'>): void {
    if (!stops) return;
    this.#awaiting--;
    const others = (this.#awaited.get(returnAddress) ?? 0) - 1;
    if (others > 0) this.#awaited.set(returnAddress, others);
    else this.#awaited.delete(returnAddress);
  }

  clear(): void {
    this.#awaited.clear();
    this.#awaiting = 0;
  }
}
