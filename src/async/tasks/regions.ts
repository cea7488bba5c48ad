// Stretches of memory as sets. What `merged` gives is in order and does not overlap, and the others want it so.
import { type Addr, addOffset, addr } from '../../base/addr.js';
import type { Region } from './memory-image.js';

/** In order, what overlaps or adjoins joined. */
export function merged(regions: readonly Region[]): Region[] {
  const found: { start: Addr; length: number }[] = [];
  for (const { start, length } of regions.toSorted((a, b) => (a.start < b.start ? -1 : 1))) {
    if (length <= 0) continue;
    const last = found.at(-1);
    const gap = last === undefined ? 1n : start - (last.start + BigInt(last.length));
    if (last !== undefined && gap <= 0n) last.length = Math.max(last.length, Number(start - last.start) + length);
    else found.push({ start: addr(start), length });
  }
  return found;
}

/** Of each region the parts that lie in others. */
function* partsIn(regions: readonly Region[], others: readonly Region[]): Generator<[Region, Region[]]> {
  let next = 0;
  for (const region of regions) {
    const end = endOf(region);
    const parts: Region[] = [];
    while (next < others.length && endOf(others[next] as Region) <= region.start) next++;
    for (let at = next; at < others.length; at++) {
      const { start, length } = others[at] as Region;
      if (start >= end) break;
      const from = start > region.start ? start : region.start;
      const to = addOffset(start, length);
      parts.push({ start: from, length: Number((to < end ? to : end) - from) });
    }
    yield [region, parts];
  }
}

/** The parts of some regions that lie in others. */
export function within(regions: readonly Region[], others: readonly Region[]): Region[] {
  return [...partsIn(regions, others)].flatMap(([, parts]) => parts);
}

/** The parts of some regions that lie in none of the others. */
export function without(regions: readonly Region[], others: readonly Region[]): Region[] {
  const left: Region[] = [];
  for (const [region, parts] of partsIn(regions, others)) {
    let from = region.start;
    for (const { start, length } of [...parts, { start: endOf(region), length: 0 }]) {
      if (start > from) left.push({ start: from, length: Number(start - from) });
      from = addOffset(start, length);
    }
  }
  return left;
}

function endOf({ start, length }: Region): Addr {
  return addOffset(start, length);
}
