import { firstFrom, type Row, type Trace } from './trace.js';

/** A slice in one of the rows that it is on. */
export interface Spot {
  readonly slice: number;
  readonly row: Row;
}

type Times = Pick<Trace, 'start' | 'end'>;

/**
 * What is inside a slice (`step` 1) or around it (-1) in its lane. Where nothing is, what is at that time in the next
 * lane, or else what is nearest there. `rows`: of all lanes, from the top.
 */
export function deeper(rows: readonly Row[], times: Times, { slice, row: own }: Spot, step: 1 | -1): Spot | undefined {
  const at = rows.indexOf(own);
  const ahead = step > 0 ? rows.slice(at + 1) : rows.slice(0, at).reverse();
  const other = ahead.find(({ lane }) => lane !== own.lane);
  const lanes = [own.lane, other?.lane];
  for (const row of ahead.filter(({ lane }) => lanes.includes(lane))) {
    const found = during(row, times, slice);
    if (found !== undefined) return { slice: found, row };
  }
  if (other === undefined) return undefined;
  const near = Math.min(firstFrom(other, times.start, times.start[slice] as number), other.ids.length - 1);
  return { slice: other.ids[near] as number, row: other };
}

/** In a row: what has begun before a slice and goes on in it, or else the first that begins in it. */
function during(row: Row, { start, end }: Times, slice: number): number | undefined {
  const [from, to] = [start[slice] as number, end[slice] as number];
  const behind = firstFrom(row, start, from);
  const [before, next] = [row.ids[behind - 1], row.ids[behind]];
  if (before !== undefined && (end[before] as number) > from) return before;
  const begins = next === undefined ? Number.POSITIVE_INFINITY : (start[next] as number);
  return begins === from || begins < to ? next : undefined;
}
