import type { FutureSet, FutureType } from '../../../async/futures/index.js';
import { addTo } from '../../../base/made-once.js';
import { plural, textLines } from '../../../text/index.js';
import { namesLeftOut, type ProbeFact, type SummaryRow, type TaskRow, type TaskSummary } from '../../../trace/index.js';
import { languageCrates } from '../../own-futures.js';
import type { SeenFuture } from './coverage.js';
import { holdersOf } from './task-wrappers.js';

/** Futures that are named for each reason; the JSON has all. */
const mostNamed = 3;
/** Reasons that are listed. */
const mostReasons = 6;

function counted(coverage: readonly SeenFuture[]): readonly [number, number, number, number] {
  const count = (wanted: SeenFuture['seen']): number => coverage.filter(({ seen }) => seen === wanted).length;
  return [count('exact'), count('lower-bound'), count('not'), count('no-code')];
}

/** `14 of 57 Futures seen exactly, 31 as lower bounds, 12 not`. Futures that no code polls are not among them. */
export function coverageSentence(coverage: readonly SeenFuture[]): string {
  const [exact, bounds, not, none] = counted(coverage);
  const all = exact + bounds + not;
  if (all === 0) return 'no code polls any of the selected Futures';
  const parts = [`${exact} of ${plural(all, 'Future')} seen exactly`];
  if (bounds > 0) parts.push(`${bounds} as ${bounds === 1 ? 'a lower bound' : 'lower bounds'}`);
  if (not > 0) parts.push(`${not} not`);
  return `${parts.join(', ')}${none > 0 ? `; no code polls ${none} more` : ''}`;
}

/** The sentence, and a line for each reason, with what would help. Ended by a newline. */
export function coverageText(coverage: readonly SeenFuture[]): string {
  const groups = new Map<string, SeenFuture[]>();
  for (const one of coverage) {
    if (one.seen !== 'not' && one.seen !== 'lower-bound') continue;
    const key = `${one.seen} ${one.reason} ${one.help}`;
    addTo(groups, key, one);
  }
  // Those that are not seen first, and the largest groups of each.
  const order = (group: readonly SeenFuture[]): number => (group[0]?.seen === 'not' ? 1e6 : 0) + group.length;
  const sorted = [...groups.values()].sort((a, b) => order(b) - order(a));
  const lines = sorted.slice(0, mostReasons).map((group) => {
    const [{ seen, reason, help } = { seen: 'not', reason: undefined, help: undefined }] = group;
    const names = [...new Set(group.map(({ future }) => future.future))];
    const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
    const how = seen === 'not' ? 'not seen' : 'at least';
    return `  ${how}: ${names.slice(0, mostNamed).join(', ')}${more}: ${reason}${help === undefined ? '' : ` (${help})`}`;
  });
  if (sorted.length > mostReasons) lines.push(`  ... and ${plural(sorted.length - mostReasons, 'other reason')}`);
  return textLines([coverageSentence(coverage), ...lines]);
}

/** For `--json`: the numbers, the sentence, and a row for each Future. */
export function coverageJson(coverage: readonly SeenFuture[]): object {
  const [exact, lower_bound, not, no_code] = counted(coverage);
  return {
    ...{ sentence: coverageSentence(coverage), exact, lower_bound, not, no_code },
    futures: coverage.map(({ future, seen, reason, help }) => ({
      future: future.future,
      instance: future.instance,
      seen,
      reason: reason ?? null,
      help: help ?? null,
    })),
  };
}

/** Crates that are named; the JSON has all. */
const mostCrates = 4;

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
  const named = crates.slice(0, mostCrates).map(({ crate, futures }) => `${crate} (${futures})`);
  const more = crates.length > mostCrates ? ` and ${plural(crates.length - mostCrates, 'more crate')}` : '';
  return textLines([
    `Futures of ${named.join(', ')}${more} are not probed: --probe 'poll:${first.crate}::**' takes those of ${first.crate}`,
  ]);
}

// A poll with no other around it is taken for one of a task, if the code that makes it is not that of a Future. If the
// probe of what is around it was left out, or switched off on the way, or if its polls cannot be seen, some parts of a
// task look like tasks, and others belong to no known task.

/** The Futures whose polls were not all seen for that reason, in the order of `rows`. */
export function notAllSeen(
  rows: readonly Pick<SummaryRow, 'future' | 'instance'>[],
  probes: readonly ProbeFact[],
): readonly string[] {
  const leftOut = namesLeftOut(probes);
  const unseen = rows.filter(({ future, instance }) => leftOut.has(future) || leftOut.has(instance));
  return [...new Set(unseen.map(({ future }) => future))];
}

/**
 * The Futures whose polls cannot all be seen, and that can hold what has a row as a task. A task that its runtime knows
 * is one for sure.
 */
export function unseenAround(
  futures: FutureSet,
  coverage: readonly SeenFuture[],
  tasks: readonly Pick<TaskRow, 'instance' | 'runtime'>[],
): readonly string[] {
  const unsure = new Set(tasks.flatMap(({ instance, runtime }) => (runtime === null ? [instance] : [])));
  const unseen = coverage.filter(({ seen }) => seen === 'not' || seen === 'lower-bound');
  if (unsure.size === 0 || unseen.length === 0) return [];
  const around = holdersOf(futures, new Set(futures.all.filter(({ instance }) => unsure.has(instance))));
  return unseen.flatMap(({ future }) => (around.has(future) ? [future.future] : []));
}

/** The line below a table of tasks for polls that are in none of its rows; empty if there are none. */
export function noTaskNote({ polls, futures }: TaskSummary['ofNoTask']): string {
  if (polls === 0) return '';
  const of = `${plural(polls, 'poll')} of ${plural(futures.length, 'Future')}`;
  return textLines([`${of} could not be given to a task: no polls of the Futures around them were seen`]);
}

/** The line below a table of tasks; empty if all was seen. */
export function partsNote([first, ...others]: readonly string[]): string {
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` and ${plural(others.length, 'other Future')}`;
  return textLines([`not all polls of ${first}${more} were seen: what it polls may stand here as a task of its own`]);
}
