import type { Architecture } from '../../../arch/index.js';
import {
  type FutureSet,
  type FutureType,
  noTaskPlaces,
  type PollFunction,
  type TaskPlaces,
} from '../../../async/futures/index.js';
import { RsptraceError } from '../../../base/errors.js';
import { madeOnce } from '../../../base/made-once.js';
import type { DebugInfo } from '../../../dwarf/index.js';
import type { FutureRef } from '../../../trace/index.js';
import { Shapes } from '../../../values/index.js';
import type { Conditions } from '../../expressions/comparison.js';
import { ProgramExpressions } from '../../expressions/program.js';
import { noMatch } from '../../glob.js';
import { ownFutures } from '../../own-futures.js';
import type { PatchWindow } from '../../read-plan.js';
import type { InlinedPolls } from '../kind.js';
import { type ProbeSpec, whiteList } from '../names.js';
import { PollConditions } from './conditions.js';
import { Coverage, type InlinedCopy, type SeenFuture } from './coverage.js';
import { InlinedSites } from './inlined-sites.js';
import { type PollEntry, pollEntry } from './poll-entry.js';
import { hostedTasks } from './self-place.js';
import { holdersOf, joinsAmong, taskWrappers, type Wrapped } from './task-wrappers.js';

/** A Future that a poll function belongs to, and how its polls are emitted. */
export interface PolledFuture {
  readonly future: FutureType;
  readonly ref: FutureRef;
  readonly isAround: boolean;
  readonly when?: Conditions | undefined;
  readonly wraps?: Wrapped | undefined;
}

/** One poll function to probe, and everything that a hit at its entry needs to know. */
export interface PollProbe extends PollEntry {
  readonly poll: PollFunction;
  readonly future: FutureType;
  readonly ref: FutureRef;
  /**
   * It was not asked for, so it emits no events. It shows to which task the polls inside it belong, and which were
   * inlined into it.
   */
  readonly isAround: boolean;
  /** Where it is a task, what the task is called, and where that lies; undefined: the Future itself. */
  readonly wraps?: Wrapped | undefined;
  /**
   * Which of its polls emit events; undefined: all. The others are as those of one that was not asked for. Where it has
   * several Futures: the conditions of all.
   */
  readonly when?: Conditions | undefined;
  /**
   * The Futures that it belongs to, if the compiler or the linker made one function of several. The probe's own
   * reference is then that of a poll of which nothing says which of them it is.
   */
  readonly among: readonly PolledFuture[];
}

/** One place where the poll of a Future was inlined, and that is seen exactly. */
export interface InlinedProbe extends InlinedCopy {
  readonly ref: FutureRef;
  /** See {@link PollProbe}. */
  readonly isAround: boolean;
}

export interface PollProbes {
  readonly probes: readonly PollProbe[];
  /** Places inside functions where polls were inlined. */
  readonly sites: readonly InlinedProbe[];
  /** What a patch may replace around each of their places, by address; or why it may not. */
  readonly windows: ReadonlyMap<bigint, PatchWindow | string>;
  /** Probes with a condition, or a part of one, that no Future has. */
  readonly inVain: readonly ProbeSpec[];
  /** How each of the selected Futures is seen. */
  readonly coverage: readonly SeenFuture[];
  /** All places are probed where a Future's poll was inlined, and there are some. */
  isSeenInlined(future: FutureType): boolean;
  /** Every Future by type, for naming what is found in memory. */
  ref(future: FutureType): FutureRef;
  /** They are selected, or hold what is selected. */
  readonly polled: ReadonlySet<FutureType>;
  /**
   * True if the probes select this Future without a condition, so that what its poll functions do not show is wanted
   * too. It need not have a poll of its own.
   */
  allows(future: FutureType): boolean;
}

interface PollResolution {
  readonly inlined?: InlinedPolls | undefined;
  /** Whether some drops of a Future leave no mark. */
  readonly hidesDrops?: (future: FutureType) => boolean;
  readonly places?: TaskPlaces | undefined;
}

/**
 * Resolves poll probes to addresses. Without a spec that includes, all polls of the program's own crates are taken.
 * With one, Futures that hold the selected ones have probes too, because they are the tasks.
 * @throws RsptraceError `PROBE_NO_MATCH`, with the nearest names; `PROBE_INLINED` if every match was inlined;
 *   `PROBE_CONDITION` if none has the members of its condition
 */
export function resolvePolls(
  debug: DebugInfo,
  futures: FutureSet,
  arch: Architecture,
  specs: readonly ProbeSpec[],
  { inlined = 'auto', hidesDrops = () => false, places }: PollResolution = {},
): PollProbes {
  const shapes = new Shapes(debug);
  const { allowed, polled, wrappers, polls } = selectPolls(debug, futures, specs, places);
  const joins = joinsAmong(wrappers);
  const inlinedSites = new InlinedSites(debug, futures, arch, hostedTasks(futures, places));
  const coverage = new Coverage(inlinedSites, futures, { polled: [...polled, ...joins], inlined });
  const ref = futureRefs(coverage, hidesDrops);
  const conditions = new PollConditions(new ProgramExpressions(debug), specs);
  // Asked for each derived poll, so it is worked out once.
  const whole = new Set([...allowed].filter((future) => !conditions.isConditional(future)));
  const allows = (future: FutureType): boolean => whole.has(future);
  const seenInlined = new Set([...whole].filter((future) => future.inlined.length > 0 && !coverage.isInlined(future)));
  const sites = coverage.copies.map((copy): InlinedProbe => {
    return { ...copy, ref: ref(copy.future), isAround: !allows(copy.future) && !joins.has(copy.future) };
  });
  const probes = polls.map(({ poll, futures: [future, ...others] }): PollProbe => {
    const entry = pollEntry(poll, arch, shapes);
    const about = (each: FutureType): PolledFuture => {
      const when = conditions.of(each, entry.selfRegister);
      const isAround = (!allowed.has(each) && !joins.has(each)) || when?.length === 0;
      return { future: each, ref: ref(each), isAround, when, wraps: wrappers?.get(each) };
    };
    if (others.length === 0) return { poll, ...entry, ...about(future), among: [] };
    const among = [future, ...others].map(about);
    const all = among.flatMap(({ when = [] }) => when);
    const when = all.length > 0 ? all : undefined;
    return { poll, ...entry, future, ref: ref.oneOf(among), isAround: among.every((one) => one.isAround), when, among };
  });
  const isSeen = [...allowed].some(allows) || probes.some(({ isAround }) => !isAround);
  const inVain = conditions.inVain(isSeen);
  const seen = coverage.of([...allowed]).map((one) => conditions.seen(one));
  if (probes.length + sites.length === 0 || (!isSeen && allowed.size > 0))
    throw nothingToProbe(futures, specs, allowed, seen);
  probes.sort((a, b) => (a.address < b.address ? -1 : 1));
  return {
    probes,
    sites,
    windows: coverage.windows,
    inVain,
    coverage: seen,
    isSeenInlined: (future) => seenInlined.has(future),
    ref,
    polled: new Set([...polled, ...(wrappers?.keys() ?? [])]),
    allows,
  };
}

interface SelectedPolls {
  /** The Futures that the probes select. */
  readonly allowed: ReadonlySet<FutureType>;
  /** These and what holds them. */
  readonly polled: readonly FutureType[];
  /** What wraps the Futures of tasks, with what it holds. */
  readonly wrappers: ReturnType<typeof taskWrappers> | undefined;
  /** The poll functions of all these, each address once. */
  readonly polls: readonly FoundPoll[];
}

function selectPolls(
  debug: DebugInfo,
  futures: FutureSet,
  specs: readonly ProbeSpec[],
  places: TaskPlaces | undefined,
): SelectedPolls {
  const list = whiteList(specs);
  const own = ownFutures(debug, futures);
  const allowed = new Set(
    futures.all.filter((future) => list.allows([future.future, future.instance], own.has(future))),
  );
  const around = list.hasIncludes ? holdersOf(futures, allowed) : new Set<FutureType>();
  const isKept = (future: FutureType): boolean => !list.hasExcluded([future.future, future.instance]);
  const polled = [...allowed, ...around].filter((future) => allowed.has(future) || isKept(future));
  const wrappers = list.hasIncludes ? undefined : taskWrappers(futures, places ?? noTaskPlaces, allowed);
  const byAddress = new Map<bigint, FoundPoll>();
  for (const future of [...polled, ...[...(wrappers?.keys() ?? [])].filter(isKept)]) {
    for (const poll of future.polls) {
      const known = byAddress.get(poll.address);
      if (known) known.futures.push(future);
      else byAddress.set(poll.address, { poll, futures: [future] });
    }
  }
  // Whose poll it is shows only among all that share the function.
  for (const future of futures.all) {
    for (const { address } of future.polls) {
      const known = byAddress.get(address)?.futures;
      if (known?.some((one) => allowed.has(one)) && !known.includes(future)) known.push(future);
    }
  }
  return { allowed, polled, wrappers, polls: [...byAddress.values()] };
}

/** Names Futures for events, each once. */
function futureRefs(coverage: Coverage, hidesDrops: (future: FutureType) => boolean): FutureRefs {
  const refs = new Map<FutureType, FutureRef>();
  const merged = new Map<string, FutureRef>();
  const oneOf = (among: readonly PolledFuture[]): FutureRef => {
    const { size, kind } = (among[0] as PolledFuture).future;
    const name = (key: 'future' | 'instance'): string =>
      `one of ${[...new Set(among.map(({ ref }) => ref[key]))].join(', ')} (the compiler merged them)`;
    const instance = name('instance');
    return madeOnce(merged, instance, () => {
      const of = among.map(({ ref }) => ref);
      const about = { future: name('future'), instance, kind, size, file: undefined, line: undefined };
      return { key: refs.size + merged.size + 1, ...about, inlined: false, hidesDrops: true, oneOf: of };
    });
  };
  const of = (future: FutureType): FutureRef =>
    madeOnce(refs, future, () => {
      const { future: name, instance, kind, file, line, size } = future;
      const inlined = coverage.isInlined(future);
      const about = { future: name, instance, kind, file, line, size };
      return { key: refs.size + merged.size + 1, ...about, inlined, hidesDrops: hidesDrops(future) };
    });
  return Object.assign(of, { oneOf });
}

/** Names each Future, and several of which nothing says which one it is. */
interface FutureRefs {
  (future: FutureType): FutureRef;
  oneOf(among: readonly PolledFuture[]): FutureRef;
}

interface FoundPoll {
  readonly poll: PollFunction;
  readonly futures: [FutureType, ...FutureType[]];
}

function nothingToProbe(
  futures: FutureSet,
  specs: readonly ProbeSpec[],
  allowed: ReadonlySet<FutureType>,
  coverage: readonly SeenFuture[],
): RsptraceError {
  const includes = specs.filter((spec) => !spec.excludes);
  if (futures.all.length === 0) {
    return new RsptraceError('FUTURES_NONE', 'the program has no Future that DWARF describes', {
      hint: "async Rust has to be built with debug = 2 (a dependency's debug info says nothing of it); a program without it has functions: -p 'fn:**'",
    });
  }
  if (allowed.size > 0) {
    const names = [...allowed].slice(0, 3).map((future) => future.future);
    const [first] = coverage;
    const why = first?.reason === undefined ? '' : `; ${first.future.future}: ${first.reason}`;
    return new RsptraceError('PROBE_INLINED', `no poll that matches can be seen (${names.join(', ')})${why}`, {
      ...(first?.help !== undefined && { hint: first.help }),
    });
  }
  if (includes.length === 0) {
    return new RsptraceError('PROBE_NO_MATCH', "none of the program's own crates has a poll function", {
      hint: "--probe 'poll:**' takes those of all crates",
    });
  }
  const names = futures.all.map((future) => future.future);
  return noMatch('Future', includes, names, "--probe 'poll:**' takes every Future");
}
