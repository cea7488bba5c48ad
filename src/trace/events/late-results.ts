import { AddressMap, inSpace } from '../../base/address-map.js';
import type { FutureRef, PollBegin, PollEnd, StateRef } from './events.js';

/**
 * Results of polls whose own end does not show them: of a poll that was inlined, memory may look the same before and
 * after. It was pending in two cases:
 *
 * - The next poll of the Future finds it at an await.
 * - A Future around it is pending and awaits it.
 */
export class LateResults {
  readonly #onPending: (future: FutureRef) => void;
  /** By the Future's key: the addresses where the last poll ended without a result. */
  readonly #open: (AddressMap<true> | undefined)[] = [];

  /** `onPending` is called for each poll that was pending. */
  constructor(onPending: (future: FutureRef) => void) {
    this.#onPending = onPending;
  }

  began({ future, address, root, state }: PollBegin): void {
    const open = this.#open[future.key];
    const place = inSpace(address, root.space);
    if (!open?.get(place)) return;
    open.delete(place);
    if (isSuspended(state)) this.#onPending(future);
  }

  ended({ future, address, root: { space }, result, state, chain }: PollEnd): void {
    const place = inSpace(address, space);
    if (result === 'unknown') {
      let open = this.#open[future.key];
      if (open === undefined) {
        open = new AddressMap(64);
        this.#open[future.key] = open;
      }
      open.set(place, true);
      return;
    }
    this.#open[future.key]?.delete(place);
    if (result !== 'pending') return;
    let around = state;
    for (const link of chain) {
      const open = link.future && this.#open[link.future.key];
      // One written by hand has no state, but what stands at its await has polled it, and it was pending.
      const isPending = isSuspended(link.state ?? around);
      around = link.state;
      if (!link.future || link.address === undefined || !isPending) continue;
      const place = inSpace(link.address, space);
      if (!open?.get(place)) continue;
      open.delete(place);
      this.#onPending(link.future);
    }
  }

  /** Events are missing. */
  clear(): void {
    this.#open.length = 0;
  }
}

/** Whether a Future that was made by the compiler stands at an await. */
export function isSuspended(state: Pick<StateRef, 'name'> | undefined): boolean {
  return state?.name.startsWith('Suspend') ?? false;
}
