import type { Architecture } from '../../../arch/index.js';
import {
  allHeld,
  type FutureSet,
  type FutureType,
  type InlinedPoll,
  type TaskPlaces,
} from '../../../async/futures/index.js';
import { madeOnce } from '../../../base/made-once.js';
import { reachedFrom } from '../../../base/search.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import { plural } from '../../../text/index.js';
import type { ProbeFact } from '../../../trace/index.js';
import { mostLevels } from '../../inlined-code.js';
import type { PatchWindow } from '../../read-plan.js';
import type { InlinedPolls } from '../kind.js';
import { type InlinedSite, InlinedSites, type NoSite } from './inlined-sites.js';
import { hostedTasks } from './self-place.js';

/** How a Future's polls are seen. */
export interface SeenFuture {
  readonly future: FutureType;
  /** `no-code`: the program polls it nowhere, so there is nothing to see. */
  readonly seen: 'exact' | 'lower-bound' | 'not' | 'no-code';
  /** In words for the user; undefined if it is seen exactly. */
  readonly reason: string | undefined;
  /** What would help. */
  readonly help: string | undefined;
  /** How it is seen if each poll of the function that it shares says whose it is. */
  readonly ifKnown?: SeenFuture;
}

/** What a recording has not got. */
interface Missed {
  readonly engines: readonly ProbeFact[];
  /** The guest ended with events that were not read. */
  readonly tailLost?: boolean;
  /** Records that were dropped. */
  readonly missing?: number;
}

/**
 * The same, by what was seen of poll functions that several Futures share. `unknown`: Futures of polls that may be
 * another's.
 */
export function reportedCoverage(seen: readonly SeenFuture[], unknown: ReadonlySet<string>): readonly SeenFuture[] {
  return seen.map((one) => (one.ifKnown && !unknown.has(one.future.instance) ? one.ifKnown : one));
}

/**
 * How they were seen by a recording. None is seen exactly of which something was left out, whatever the code allows.
 * Nor is one in whose row polls were derived, because stops at its places were spared at this target.
 */
export function recordedCoverage(
  all: readonly SeenFuture[],
  missed: Missed,
  rows: readonly { readonly instance: string; readonly derived: number }[] = [],
): readonly SeenFuture[] {
  const derived = new Set(rows.flatMap((row) => (row.derived > 0 ? [row.instance] : [])));
  const seen = all.map((one): SeenFuture => {
    if (one.seen !== 'exact' || !derived.has(one.future.instance)) return one;
    return { ...one, seen: 'lower-bound', reason: `inlined: ${spared}`, help: '--exact stops at each poll' };
  });
  const leftOut = missed.engines.filter(({ engine }) => engine === 'none');
  const lost = lossOf(missed);
  if (leftOut.length === 0 && lost === undefined) return seen;
  return seen.map((one) => {
    if (one.seen !== 'exact') return one;
    const { future, polls } = one.future;
    const fact = leftOut.find(
      ({ name, address }) => polls.some((poll) => poll.address === address) || name.startsWith(`${future} in `),
    );
    const why = fact ? { reason: fact.why, help: '--engine mixed stops there' } : lost;
    return why ? { ...one, seen: 'lower-bound', ...why } : one;
  });
}

function lossOf({ tailLost = false, missing = 0 }: Missed): Pick<SeenFuture, 'reason' | 'help'> | undefined {
  if (tailLost) return { reason: 'the guest ended with events that were not read', help: undefined };
  if (missing === 0) return undefined;
  return { reason: `${plural(missing, 'record')} ${missing === 1 ? 'is' : 'are'} missing`, help: undefined };
}

/** A copy of a poll that was inlined, whose begins and ends are known. */
interface Placed {
  readonly future: FutureType;
  readonly copy: InlinedPoll;
  readonly site: InlinedSite;
}

/** One that is seen at its place. */
export interface InlinedCopy extends Placed {
  /** How many such copies of the same function lie around it. */
  readonly level: number;
}

/** A copy that is not seen at its place, and why. */
interface Unused {
  readonly reason: string;
  /** `--exact` would help. */
  readonly isSpared: boolean;
}

const spared = 'the Future around it shows some of its polls, and stops there are spared';
const noStops = 'it needs stops, and none are wanted';

/**
 * Finds how the polls of Futures are seen: by a poll function, where it was inlined, or by what the Future around it
 * keeps.
 */
export class Coverage {
  readonly #sites: InlinedSites;
  readonly #futures: FutureSet;
  readonly #inlined: InlinedPolls;
  readonly #used: InlinedCopy[] = [];
  readonly #places = new Set<InlinedPoll>();
  readonly #unused = new Map<InlinedPoll, Unused>();
  /** What each probed Future awaits in its own bytes, at any depth. */
  readonly #awaited = new Map<FutureType, ReadonlySet<FutureType>>();
  readonly #polled: ReadonlySet<FutureType>;
  #folded: Map<FutureType, FutureType> | undefined;
  #held: ReadonlySet<FutureType> | undefined;

  /** `polled`: the Futures whose polls are probed. */
  constructor(
    sites: InlinedSites,
    futures: FutureSet,
    { polled, inlined }: { readonly polled: readonly FutureType[]; readonly inlined: InlinedPolls },
  ) {
    this.#sites = sites;
    this.#futures = futures;
    this.#inlined = inlined;
    this.#polled = new Set(polled);
    const copies = polled.flatMap((future) =>
      future.inlined.flatMap((copy) => (this.#isMerged(future, copy) ? [] : [{ future, copy }])),
    );
    // Of copies inside each other, the outer one's DIE comes first.
    copies.sort((a, b) => a.copy.die.offset - b.copy.die.offset);
    const placed = copies.flatMap((each) => this.#placed(each));
    sites.keep();
    const isPatchable = this.#patchable(placed);
    // What is seen at only some of its places would be counted twice, because all of them are derived.
    const partly = new Set(copies.map(({ future }) => future));
    for (const future of partly) {
      const own = placed.filter((each) => each.future === future);
      const all = copies.filter((each) => each.future === future);
      if (own.length === all.length && own.every(isPatchable)) partly.delete(future);
    }
    for (const each of placed) this.#decide(each, isPatchable(each), partly.has(each.future));
  }

  get copies(): readonly InlinedCopy[] {
    return this.#used;
  }

  /** What a patch may replace around each place of the copies, by address; or why it may not. */
  get windows(): ReadonlyMap<bigint, PatchWindow | string> {
    return this.#windowsOf(this.#used);
  }

  /** Some of its polls may be in other functions' code, without being seen there. */
  isInlined(future: FutureType): boolean {
    return future.isTypeOnly || future.inlined.some((copy) => !this.#isUsed(copy) && !this.#isMerged(future, copy));
  }

  of(futures: readonly FutureType[]): SeenFuture[] {
    const probed = new Set([...this.#polled].filter((future) => future.polls.length > 0));
    for (const { future } of this.#used) probed.add(future);
    const derived = new Set([...probed].flatMap((future) => [...this.#awaitedBy(future)]));
    return futures.map((future) => this.#seen(future, probed.has(future) || derived.has(future)));
  }

  /** Whether a copy is part of other copies in the same function. */
  #isMerged({ inlined }: FutureType, copy: InlinedPoll): boolean {
    if (!this.#sites.around.isMerged(copy)) return false;
    return inlined.some((other) => other.host.offset === copy.host.offset && !this.#sites.around.isMerged(other));
  }

  /** Where a copy begins and ends, if that is known and of use. */
  #placed({ future, copy }: { readonly future: FutureType; readonly copy: InlinedPoll }): Placed[] {
    if (this.#inlined === 'none') {
      this.#unused.set(copy, { reason: noStops, isSpared: true });
      return [];
    }
    const site = this.#sites.around.isMerged(copy)
      ? { reason: 'the compiler merged its code with that of other calls' }
      : this.#sites.find(future, copy);
    if (isSite(site)) return [{ future, copy, site }];
    this.#unused.set(copy, { reason: site.reason, isSpared: false });
    return [];
  }

  /** Whether patches can serve all places of a copy, if that matters. */
  #patchable(placed: readonly Placed[]): (one: Placed) => boolean {
    if (this.#inlined !== 'auto' && this.#inlined !== 'patched') return () => false;
    const windows = this.#windowsOf(placed);
    return ({ site }) =>
      [...site.begins, ...site.ends].every(({ address }) => typeof windows.get(address) === 'object');
  }

  #decide({ future, copy, site }: Placed, isPatchable: boolean, isPartly: boolean): void {
    const level = this.#used.filter((outer) => this.#sites.around.isInside(copy, outer.copy)).length;
    const refused = isPatchable && !isPartly ? undefined : this.#whyUnused(future, copy, isPatchable);
    if (refused !== undefined) this.#unused.set(copy, { reason: refused, isSpared: true });
    else if (level > mostLevels) this.#unused.set(copy, { reason: 'too many polls lie around it', isSpared: false });
    else {
      this.#used.push({ future, copy, site, level });
      this.#places.add(copy);
    }
  }

  #whyUnused(future: FutureType, copy: InlinedPoll, isPatchable: boolean): string | undefined {
    if (this.#inlined === 'all') return undefined;
    if (this.#inlined === 'patched' && !isPatchable) return noStops;
    return this.#isDerived(future, copy) ? spared : undefined;
  }

  #windowsOf(copies: readonly Placed[]): ReadonlyMap<bigint, PatchWindow | string> {
    return this.#sites.windows(copies.map(({ site }) => site));
  }

  /** Whether polls of a copy leave marks in a Future around it whose own polls are seen. */
  #isDerived(future: FutureType, copy: InlinedPoll): boolean {
    const { host } = copy;
    const around = this.#futures.byPollAddress(host.unit.codes.fromCode(host.lowPc));
    if (around && this.#polled.has(around) && this.#awaitedBy(around).has(future)) return true;
    return this.#used.some(
      (outer) => this.#awaitedBy(outer.future).has(future) && this.#sites.around.isInside(copy, outer.copy),
    );
  }

  #awaitedBy(future: FutureType): ReadonlySet<FutureType> {
    return madeOnce(this.#awaited, future, () => awaitedBy(future));
  }

  #isUsed(copy: InlinedPoll): boolean {
    return this.#places.has(copy);
  }

  #seen(future: FutureType, isPartly: boolean): SeenFuture {
    if (future.isTypeOnly && this.#heldByPolled().has(future)) {
      const reason = 'its poll was inlined, and nothing in the debug info says where';
      return { future, seen: isPartly ? 'lower-bound' : 'not', reason, help: helpFor(future) };
    }
    if (future.polls.length === 0 && future.inlined.length === 0) {
      return { future, seen: 'no-code', reason: 'no code polls it', help: undefined };
    }
    const other = this.#foldedWith(future);
    if (!other) return this.#unfolded(future, isPartly);
    const reason = `the compiler or the linker made one poll function of it and ${other.instance}: a poll of which nothing says whose it is counts as one of them`;
    const help = 'link with --icf=none, and compile with -Z merge-functions=disabled';
    return { future, seen: 'lower-bound', reason, help, ifKnown: this.#unfolded(future, isPartly) };
  }

  #unfolded(future: FutureType, isPartly: boolean): SeenFuture {
    const missing = future.inlined.flatMap((copy) => {
      const known = this.#unused.get(copy);
      return known ? [{ ...known, into: copy.into }] : [];
    });
    if (missing.length === 0) return { future, seen: 'exact', reason: undefined, help: undefined };
    const first = missing.find(({ isSpared }) => !isSpared) ?? missing[0];
    return {
      future,
      seen: isPartly ? 'lower-bound' : 'not',
      reason: `inlined into ${first?.into}: ${first?.reason}`,
      help: first?.isSpared ? this.#helpBySpared() : helpFor(future),
    };
  }

  #helpBySpared(): string {
    return this.#inlined === 'none' || this.#inlined === 'patched'
      ? '--engine auto may stop there'
      : '--exact stops at each poll';
  }

  /** What Futures hold that are polled somewhere. */
  #heldByPolled(): ReadonlySet<FutureType> {
    this.#held ??= heldByPolled(this.#futures);
    return this.#held;
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

function awaitedBy(future: FutureType): Set<FutureType> {
  const inPlace = ({ states }: FutureType): FutureType[] =>
    states.flatMap(({ awaitee }) => (awaitee?.future && !awaitee.box ? [awaitee.future] : []));
  return reachedFrom(inPlace(future), inPlace);
}

/** What Futures hold that are polled somewhere, also through others of which nothing says where they are polled. */
function heldByPolled({ all }: FutureSet): Set<FutureType> {
  const typeOnly = (holder: FutureType): FutureType[] =>
    allHeld(holder).flatMap(({ future }) => (future?.isTypeOnly ? [future] : []));
  const polled = all.filter(({ polls, inlined }) => polls.length > 0 || inlined.length > 0);
  return reachedFrom(polled.flatMap(typeOnly), typeOnly);
}

function helpFor({ kind }: FutureType): string {
  return kind === 'impl'
    ? 'put #[inline(never)] on its fn poll'
    : 'await it as a Box::pin(..) of dyn Future, whose poll function is kept, or build with opt-level = 0';
}

/** How polls of these Futures would be seen if all of them were probed. */
export function howSeen(
  debug: DebugInfo,
  futures: FutureSet,
  arch: Architecture,
  { selected, places }: { readonly selected: readonly FutureType[]; readonly places: TaskPlaces | undefined },
): SeenFuture[] {
  const sites = new InlinedSites(debug, futures, arch, hostedTasks(futures, places));
  return new Coverage(sites, futures, { polled: futures.all, inlined: 'auto' }).of(selected);
}
