import type { Architecture } from '../../../arch/index.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { FutureSet, FutureType, InlinedPoll } from '../../../futures/index.js';
import { rangesOf } from '../../../dwarf/index.js';
import { type InlinedSite, InlinedSites, mostLevels, type NoSite } from './inlined-sites.js';

/** How a Future's polls are seen. */
export interface SeenFuture {
  readonly future: FutureType;
  /** `no-code`: the program polls it nowhere, so there is nothing to see. */
  readonly seen: 'exact' | 'lower-bound' | 'not' | 'no-code';
  /** In words for the user; undefined if it is seen exactly. */
  readonly reason: string | undefined;
  /** What would help. */
  readonly help: string | undefined;
}

/** One copy of a poll that was inlined, and where it is seen. */
export interface InlinedCopy {
  readonly future: FutureType;
  readonly site: InlinedSite;
  readonly into: string;
  readonly level: number;
}

/**
 * Finds how the polls of Futures can be seen: by a poll function, by the places where it was inlined, or by what the
 * Future around it keeps.
 */
export class Coverage {
  readonly #sites: InlinedSites;
  readonly #byCopy = new Map<InlinedPoll, InlinedSite | NoSite>();
  readonly #futures: FutureSet;
  #folded: Map<FutureType, FutureType> | undefined;

  constructor(debug: DebugInfo, futures: FutureSet, arch: Architecture) {
    this.#sites = new InlinedSites(debug, futures, arch);
    this.#futures = futures;
  }

  /** Some of its polls may be in other functions' code, without being seen there. */
  isInlined(future: FutureType): boolean {
    return future.inlined.length > 0 && !this.isExact(future);
  }

  isExact(future: FutureType): boolean {
    if (future.polls.length === 0 && future.inlined.length === 0) return false;
    return !this.#foldedWith(future) && future.inlined.every((copy) => isSite(this.#siteOf(future, copy)));
  }

  sitesOf(futures: readonly FutureType[]): InlinedCopy[] {
    const found = futures.flatMap((future) =>
      future.inlined.flatMap((copy) => {
        const site = this.#siteOf(future, copy);
        return isSite(site) ? [{ future, site, copy }] : [];
      }),
    );
    return found.flatMap(({ future, site, copy }) => {
      const around = found.filter((other) => other.copy !== copy && lies(copy, other.copy));
      const level = around.length;
      return level > mostLevels ? [] : [{ future, site, into: copy.into, level }];
    });
  }

  /** `probed`: the Futures with a place where a hit shows a poll. */
  of(futures: readonly FutureType[], probed: ReadonlySet<FutureType>): SeenFuture[] {
    const derived = derivedFrom(probed);
    return futures.map((future) => this.#seen(future, probed.has(future) || derived.has(future)));
  }

  #seen(future: FutureType, isPartly: boolean): SeenFuture {
    if (future.polls.length === 0 && future.inlined.length === 0) {
      return { future, seen: 'no-code', reason: 'no code polls it', help: undefined };
    }
    const other = this.#foldedWith(future);
    if (other) {
      const reason = `the linker made one poll function of it and ${other.instance}`;
      return { future, seen: 'not', reason, help: 'link without --icf' };
    }
    if (this.isExact(future)) return { future, seen: 'exact', reason: undefined, help: undefined };
    const [first] = future.inlined.flatMap((copy) => {
      const site = this.#siteOf(future, copy);
      return isSite(site) ? [] : [{ reason: site.reason, into: copy.into }];
    });
    const where = first ? `inlined into ${first.into}: ${first.reason}` : 'inlined';
    return { future, seen: isPartly ? 'lower-bound' : 'not', reason: where, help: helpFor(future) };
  }

  #siteOf(future: FutureType, copy: InlinedPoll): InlinedSite | NoSite {
    let site = this.#byCopy.get(copy);
    if (!site) {
      site = this.#sites.find(future, copy);
      this.#byCopy.set(copy, site);
    }
    return site;
  }

  /** Another Future with the same poll function. */
  #foldedWith(future: FutureType): FutureType | undefined {
    if (!this.#folded) {
      this.#folded = new Map();
      const byAddress = new Map<bigint, FutureType>();
      for (const each of this.#futures.all) {
        for (const { address } of each.polls) {
          const first = byAddress.get(address);
          if (!first) byAddress.set(address, each);
          else if (first !== each) this.#folded.set(each, first).set(first, this.#folded.get(first) ?? each);
        }
      }
    }
    return this.#folded.get(future);
  }
}

function isSite(site: InlinedSite | NoSite): site is InlinedSite {
  return 'begins' in site;
}

/** Whether a copy lies inside another one of the same function. */
function lies(inner: InlinedPoll, outer: InlinedPoll): boolean {
  if (inner.host.offset !== outer.host.offset || inner.die.offset < outer.die.offset) return false;
  const around = rangesOf(outer.die);
  return rangesOf(inner.die).every(({ low }) => around.some((range) => low >= range.low && low < range.high));
}

/** Futures whose polls leave marks in the bytes of one of these. */
function derivedFrom(probed: ReadonlySet<FutureType>): Set<FutureType> {
  const found = new Set<FutureType>();
  const open = [...probed];
  for (let future = open.pop(); future; future = open.pop()) {
    for (const { awaitee } of future.states) {
      if (!awaitee?.future || awaitee.box || found.has(awaitee.future)) continue;
      found.add(awaitee.future);
      open.push(awaitee.future);
    }
  }
  return found;
}

function helpFor({ kind }: FutureType): string {
  return kind === 'impl'
    ? 'put #[inline(never)] on its fn poll'
    : 'await it as a Box::pin(..) of dyn Future, whose poll function is kept, or build with opt-level = 0';
}
