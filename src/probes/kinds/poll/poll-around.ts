import type { FutureSet, FutureType, InlinedPoll } from '../../../async/futures/index.js';
import { type Die, DW_TAG } from '../../../dwarf/index.js';

/** The poll whose own code an inlined poll lies in. */
export interface PollAround {
  readonly future: FutureType;
  /** Its copy, if it was inlined too; undefined: it is the function. */
  readonly copy: Die | undefined;
}

/** Finds which poll makes another one that was inlined into it. */
export class PollsAround {
  readonly #futures: FutureSet;
  /** Of each inlined call of a function, the one around it; undefined: the function itself. */
  readonly #parents = new Map<number, ReadonlyMap<number, Die | undefined>>();

  constructor(futures: FutureSet) {
    this.#futures = futures;
  }

  /** Undefined if a function that is no Future's poll lies between, or there is none around it. */
  directly(copy: Die, host: Die): PollAround | undefined {
    const parents = this.#parentsIn(host);
    if (!parents.has(copy.offset)) return undefined;
    const parent = parents.get(copy.offset);
    const future = parent
      ? this.#futures.ofCopy(parent)
      : this.#futures.byPollAddress(host.unit.codes.fromCode(host.lowPc));
    return future && { future, copy: parent };
  }

  /** Whether one copy lies inside another one. */
  isInside(inner: InlinedPoll, outer: InlinedPoll): boolean {
    return [...this.#outside(inner)].some(({ offset }) => offset === outer.die.offset);
  }

  /** Whether another poll lies around a copy: the function's own, or one that was inlined, too. */
  isWithinPoll(copy: Pick<InlinedPoll, 'die' | 'host'>): boolean {
    const { unit, lowPc } = copy.host;
    if (this.#futures.byPollAddress(unit.codes.fromCode(lowPc))) return true;
    return [...this.#outside(copy)].some((outer) => this.#futures.ofCopy(outer) !== undefined);
  }

  /** The inlined calls around a copy, the innermost first. */
  *#outside({ die, host }: Pick<InlinedPoll, 'die' | 'host'>): Generator<Die> {
    const parents = this.#parentsIn(host);
    for (let at = parents.get(die.offset); at; at = parents.get(at.offset)) yield at;
  }

  #parentsIn(host: Die): ReadonlyMap<number, Die | undefined> {
    const known = this.#parents.get(host.offset);
    if (known) return known;
    const found = new Map<number, Die | undefined>();
    const open: { readonly die: Die; readonly depth: number }[] = [];
    const cursor = host.subtree();
    while (cursor.next()) {
      while ((open.at(-1)?.depth ?? -1) >= cursor.depth) open.pop();
      if (cursor.tag !== DW_TAG.inlined_subroutine) continue;
      const die = cursor.die();
      found.set(die.offset, open.at(-1)?.die);
      open.push({ die, depth: cursor.depth });
    }
    this.#parents.set(host.offset, found);
    return found;
  }
}
