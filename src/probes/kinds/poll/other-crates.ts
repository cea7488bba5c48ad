import type { FutureSet, FutureType } from '../../../async/futures/index.js';
import { plural, textLines } from '../../../text/index.js';
import { languageCrates } from '../../library-crates.js';

/** Crates that are named; the JSON has all. */
const mostNamed = 4;

/** A crate of the program, and how many of its Futures have a poll function that is not probed. */
interface CrateNotProbed {
  readonly crate: string;
  readonly futures: number;
}

/** Crates with Futures that no probe selects, those with the most first. The language's own are not among them. */
export function cratesNotProbed(
  { all }: Pick<FutureSet, 'all'>,
  allows: (future: FutureType) => boolean,
): CrateNotProbed[] {
  const counts = new Map<string, number>();
  for (const future of all) {
    if (allows(future) || future.polls.length === 0 || languageCrates.has(future.crate)) continue;
    counts.set(future.crate, (counts.get(future.crate) ?? 0) + 1);
  }
  const rows = [...counts].map(([crate, futures]) => ({ crate, futures }));
  return rows.sort((a, b) => b.futures - a.futures || (a.crate < b.crate ? -1 : 1));
}

/** For a recording without a poll: where else the program has Futures, and how they are probed. Empty if nowhere. */
export function cratesNotProbedText(crates: readonly CrateNotProbed[]): string {
  const [first] = crates;
  if (!first) return '';
  const named = crates.slice(0, mostNamed).map(({ crate, futures }) => `${crate} (${futures})`);
  const more = crates.length > mostNamed ? ` and ${plural(crates.length - mostNamed, 'more crate')}` : '';
  return textLines([
    `Futures of ${named.join(', ')}${more} are not probed: --probe 'poll:${first.crate}::**' takes those of ${first.crate}`,
  ]);
}
