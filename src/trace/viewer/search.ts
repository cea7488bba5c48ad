import type { Trace } from './trace.js';

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
