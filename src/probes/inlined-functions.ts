import type { Addr } from '../base/addr.js';
import { type DebugInfo, functionName, inlinedCopies, qualifiedName } from '../dwarf/index.js';
import type { FunctionRef } from '../trace/index.js';

/** A function with inlined copies. */
interface InlinedFunction {
  readonly name: string;
  /** What a glob may match. */
  readonly names: readonly string[];
  /** The functions with code of their own that hold a copy. */
  readonly into: readonly string[];
}

/** The most functions that are kept for an error message; a program has some ten thousand. */
const mostInto = 16;

/** Functions that are probed and have inlined copies, too, whose calls no probe of the function sees. */
export function inlinedToo(
  debug: DebugInfo | undefined,
  probed: Iterable<{ readonly ref: FunctionRef; readonly address: Addr }>,
): ExcludedFunction[] {
  const addresses = new Map<string, Addr>();
  for (const { ref, address } of probed) addresses.set(ref.name, address);
  if (debug === undefined || addresses.size === 0) return [];
  return inlinedFunctions(debug, (name) => addresses.has(name)).map(({ name, into }) => {
    const more = into.length > 3 ? ' and others' : '';
    const reason = `where it is inlined, in ${into.slice(0, 3).join(', ')}${more}`;
    return { name, address: addresses.get(name) as Addr, reason };
  });
}

/**
 * All functions that were inlined somewhere, with and without code of their own. One pass over all units.
 * `takes`: those of these names.
 */
export function inlinedFunctions(debug: DebugInfo, takes = (_name: string): boolean => true): InlinedFunction[] {
  const copies = new Map<number, Set<number>>();
  const { origin: origins, into: hosts } = inlinedCopies(debug);
  origins.forEach((origin, i) => {
    const into = copies.get(origin) ?? new Set();
    if (into.size < mostInto) into.add(hosts[i] as number);
    copies.set(origin, into);
  });
  const nameAt = (offset: number): { name: string; full: string } | undefined => {
    const die = debug.die(offset);
    return die && debug.attempt(die.unit, () => ({ name: functionName(die), full: qualifiedName(die) }));
  };
  const found = new Map<string, { names: Set<string>; into: Set<string> }>();
  for (const [origin, into] of copies) {
    const own = nameAt(origin);
    if (!own || !takes(own.name)) continue;
    const entry = found.get(own.name) ?? { names: new Set([own.name]), into: new Set() };
    entry.names.add(own.full);
    for (const offset of into) entry.into.add(nameAt(offset)?.name ?? '?');
    found.set(own.name, entry);
  }
  return [...found].map(([name, { names, into }]) => ({ name, names: [...names], into: [...into] }));
}

/** A function that matches and still is not probed. */
export interface ExcludedFunction {
  readonly name: string;
  readonly address: Addr;
  readonly reason: string;
}
