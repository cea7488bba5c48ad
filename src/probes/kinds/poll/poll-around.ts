import type { FutureSet, FutureType, InlinedPoll } from '../../../async/futures/index.js';
import { madeOnce } from '../../../base/made-once.js';
import { type Die, DW_AT, DW_TAG } from '../../../dwarf/index.js';

/** The poll whose own code an inlined poll lies in. */
export interface PollAround {
  readonly future: FutureType;
  /** Its copy, if it was inlined too; undefined: it is the function. */
  readonly copy: Die | undefined;
}

/** A call that was inlined into a function. */
interface InlinedCall {
  readonly die: Die;
  /** The one around it; undefined: the function itself. */
  readonly parent: InlinedCall | undefined;
  /** Code that the compiler merged out of several calls is described as one more call, from the line 0. */
  readonly isMerged: boolean;
}

/** What was inlined into functions, and which poll makes another one. */
export class PollsAround {
  readonly #futures: FutureSet;
  /** By function, then by the offset of the call's DIE. */
  readonly #calls = new Map<number, ReadonlyMap<number, InlinedCall>>();

  constructor(futures: FutureSet) {
    this.#futures = futures;
  }

  /** Undefined if a function that is no Future's poll lies between, or there is none around it. */
  directly(copy: Die, host: Die): PollAround | undefined {
    const call = this.#callsIn(host).get(copy.offset);
    if (!call) return undefined;
    const { die } = call.parent ?? {};
    const future = die ? this.#futures.ofCopy(die) : this.#futures.byPollAddress(host.unit.codes.fromCode(host.lowPc));
    return future && { future, copy: die };
  }

  /** Whether one copy lies inside another one. */
  isInside({ die, host }: InlinedPoll, outer: Pick<InlinedPoll, 'die'>): boolean {
    return [...this.#outside(die, host)].some(({ offset }) => offset === outer.die.offset);
  }

  /** Whether another poll lies around a copy: the function's own, or one that was inlined, too. */
  isWithinPoll(copy: Die, host: Die): boolean {
    if (this.#futures.byPollAddress(host.unit.codes.fromCode(host.lowPc))) return true;
    return [...this.#outside(copy, host)].some((outer) => this.#futures.ofCopy(outer) !== undefined);
  }

  /** Whether a copy is no call of its own, or was inlined into one that is none. */
  isMerged({ die, host }: Pick<InlinedPoll, 'die' | 'host'>): boolean {
    return this.#callsIn(host).get(die.offset)?.isMerged ?? false;
  }

  /** All such in a function. */
  merged(host: Die): Die[] {
    return [...this.#callsIn(host).values()].flatMap(({ die, isMerged }) => (isMerged ? [die] : []));
  }

  /** The inlined calls around one, the innermost first. */
  *#outside(copy: Die, host: Die): Generator<Die> {
    for (let at = this.#callsIn(host).get(copy.offset)?.parent; at; at = at.parent) yield at.die;
  }

  #callsIn(host: Die): ReadonlyMap<number, InlinedCall> {
    const read = (): ReadonlyMap<number, InlinedCall> => callsIn(host);
    return madeOnce(this.#calls, host.offset, () => host.unit.debug.attempt(host.unit, read) ?? new Map());
  }
}

function callsIn(host: Die): ReadonlyMap<number, InlinedCall> {
  const found = new Map<number, InlinedCall>();
  const open: { readonly call: InlinedCall; readonly depth: number }[] = [];
  const cursor = host.subtree();
  while (cursor.next()) {
    while ((open.at(-1)?.depth ?? -1) >= cursor.depth) open.pop();
    if (cursor.tag !== DW_TAG.inlined_subroutine) continue;
    const parent = open.at(-1)?.call;
    const isMerged = parent?.isMerged || (cursor.number(DW_AT.call_line) ?? 0) === 0;
    const call = { die: cursor.die(), parent, isMerged };
    found.set(cursor.offset, call);
    open.push({ call, depth: cursor.depth });
  }
  return found;
}
