import { type Addr, addr } from '../base/addr.js';
import type { Parts } from './parts.js';

/** Stops at the places of probes in other code, for example in another address space. They are not recorded. */
export interface ForeignHits {
  readonly hits: number;
  /** The place of which there were most. */
  readonly most: {
    readonly hits: number;
    readonly address: Addr;
    /** The probes there; none where a call was to return. */
    readonly probes: readonly string[];
  };
}

/** Undefined without any. `earlier`: those that do not count, by place. */
export function foreignHits(
  { connection, engines, target }: Pick<Parts, 'connection' | 'engines' | 'target'>,
  earlier: ReadonlyMap<bigint, number> = new Map(),
): ForeignHits | undefined {
  let total = 0;
  let [most, place] = [0, 0n];
  for (const [at, all] of connection.foreignHits) {
    const hits = all - (earlier.get(at) ?? 0);
    total += hits;
    if (hits > most) [most, place] = [hits, at];
  }
  if (total === 0) return undefined;
  const probes = [...engines.choices, ...target.choicesOfOthers].filter(({ address }) => address === place);
  return { hits: total, most: { hits: most, address: addr(place), probes: probes.map(({ name }) => name) } };
}
