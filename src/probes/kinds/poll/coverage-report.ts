import { plural, textLines } from '../../../text/index.js';
import type { SeenFuture } from './coverage.js';

/** Futures that are named for each reason; the JSON has all. */
const mostNamed = 3;
/** Reasons that are listed. */
const mostReasons = 6;

/** `14 of 57 Futures seen exactly, 31 as lower bounds, 12 not`. Futures that no code polls are not among them. */
export function coverageSentence(coverage: readonly SeenFuture[]): string {
  const count = (wanted: SeenFuture['seen']): number => coverage.filter(({ seen }) => seen === wanted).length;
  const [exact, bounds, not, none] = [count('exact'), count('lower-bound'), count('not'), count('no-code')];
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
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
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
  const count = (wanted: SeenFuture['seen']): number => coverage.filter(({ seen }) => seen === wanted).length;
  return {
    sentence: coverageSentence(coverage),
    exact: count('exact'),
    lower_bound: count('lower-bound'),
    not: count('not'),
    no_code: count('no-code'),
    futures: coverage.map(({ future, seen, reason, help }) => ({
      future: future.future,
      instance: future.instance,
      seen,
      reason: reason ?? null,
      help: help ?? null,
    })),
  };
}
