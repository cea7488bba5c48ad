// From a row of a table, or a text, to slices of the timeline.
import type { What } from '../formats/html/columns.js';
import type { Trace } from './trace.js';

/** What a row is about, as slices have it. */
export interface Place {
  readonly kinds: readonly What['kind'][];
  /** Undefined where the name does not matter. */
  readonly name?: string | undefined;
  readonly instance?: string | undefined;
  /** The task's number in its table. */
  readonly task?: number | undefined;
  /** How long it was; undefined: the longest. */
  readonly length?: number | undefined;
  /** When it ended, or was. */
  readonly at?: number | undefined;
}

/** The longest slice of it, or the one nearest to its length; -1 if the timeline has none. */
export function longestOf(trace: Trace, { kinds, name, instance, task, length, at }: Place): number {
  const { whats, what, start, end, lanes } = trace;
  const isOf = whats.map(
    (each) =>
      kinds.includes(each.kind) &&
      (name === undefined || each.name === name) &&
      (instance === undefined || (each.instance ?? each.name) === instance),
  );
  const lane = task ? lanes.findIndex((each) => each.kind === 'task' && each.name.startsWith(`${task}: `)) + 1 : 0;
  let best = -1;
  let most = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < what.length; id++) {
    if (!isOf[what[id] as number] || (lane > 0 && trace.task[id] !== lane)) continue;
    if (at !== undefined && end[id] !== at) continue;
    const took = (end[id] as number) - (start[id] as number);
    const fits = length === undefined ? took : -Math.abs(took - length);
    if (fits > most) [best, most] = [id, fits];
  }
  return best;
}

/** What a search finds. */
export interface Matches {
  readonly slices: (slice: number) => boolean;
  readonly count: number;
}

/** Slices whose name, instance, place or details have the text, whatever its case. */
export function matchesOf({ whats, what, details, detail }: Trace, text: string): Matches {
  const wanted = text.toLowerCase();
  const named = whats.map(
    ({ kind, name, instance = '', file = '', line = '' }) =>
      name.toLowerCase().includes(wanted) ||
      instance.toLowerCase().includes(wanted) ||
      `${file}:${line}`.toLowerCase().includes(wanted) ||
      kind === wanted,
  );
  const detailed = details.map((each) => each.toLowerCase().includes(wanted));
  let count = 0;
  const slices = (slice: number): boolean =>
    (named[what[slice] as number] as boolean) || (detailed[detail[slice] as number] as boolean);
  for (let slice = 0; slice < what.length; slice++) {
    if (slices(slice)) count++;
  }
  return { slices, count };
}
