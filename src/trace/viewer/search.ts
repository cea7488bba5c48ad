import type { Trace } from './trace.js';

/** What a search finds. */
export interface Matches {
  /** By the number of what slices are of: 1 for those that match, or of which some slice does. */
  readonly whats: Uint8Array;
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
  const found = new Uint8Array(whats.length);
  let count = 0;
  const slices = (slice: number): boolean =>
    (named[what[slice] as number] as boolean) || (detailed[detail[slice] as number] as boolean);
  for (let slice = 0; slice < what.length; slice++) {
    if (!slices(slice)) continue;
    count++;
    found[what[slice] as number] = 1;
  }
  return { whats: found, slices, count };
}
