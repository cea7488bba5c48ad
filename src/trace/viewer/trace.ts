import { firstWhere } from '../../base/search.js';
import type { WholeHead } from '../formats/html/blocks.js';
import {
  type Block,
  type Column,
  columnNames,
  type LaneName,
  readBlock,
  type What,
  type WhatKind,
} from '../formats/html/columns.js';

/** Slices of one lane with as many around them, or marks of one lane, in the order of their time. */
export interface Row {
  readonly lane: number;
  /** -1: marks. */
  readonly depth: number;
  /** Numbers of slices. None overlaps the next. */
  ids: Uint32Array;
  /** Nanoseconds in the slices before each. */
  busy: Float64Array;
}

/** All blocks together. What slices name is as in their records, but lanes and wakes that are missing are -1. */
export interface Trace extends Readonly<Record<Exclude<Column, 'time'> | 'start', Float64Array>> {
  readonly info: WholeHead['info'];
  /** Undefined if the end of the file is missing. */
  readonly tables: WholeHead['tables'];
  readonly lanes: readonly LaneName[];
  readonly whats: readonly What[];
  readonly details: readonly string[];
  readonly rows: readonly Row[];
  readonly first: number;
  readonly last: number;
}

/** Whether it takes time. */
export const isSlice = (kind: WhatKind): boolean =>
  kind === 'call' || kind === 'poll' || kind === 'wait' || kind === 'gap' || kind === 'process';

export function traceOf(blocks: readonly Block[]): Trace {
  const heads: readonly WholeHead[] = blocks;
  let before = 0;
  for (const { columns, details } of blocks) {
    const { detail } = columns;
    for (let i = 0; i < detail.length; i++) if (detail[i] !== 0) detail[i] = (detail[i] as number) + before;
    before += details.length;
  }
  const joined = columnNames.map((name) => [name, concat(blocks.map(({ columns }) => columns[name]))] as const);
  const { time: start, ...others } = Object.fromEntries(joined) as Record<Column, Float64Array>;
  const { end } = others;
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (let i = 0; i < end.length; i++) {
    start[i] = (end[i] as number) - (start[i] as number);
    first = Math.min(first, start[i] as number);
    last = Math.max(last, end[i] as number);
  }
  const whats = blocks.flatMap((each) => each.whats);
  const columns = { start, ...others };
  const { names = {} } = heads.find((head) => head.names) ?? {};
  return {
    info: heads.find(({ info }) => info)?.info,
    tables: heads.find(({ tables }) => tables)?.tables,
    lanes: blocks.flatMap(({ lanes }) => lanes).map((lane, number) => ({ ...lane, name: names[number] ?? lane.name })),
    whats,
    details: ['', ...blocks.flatMap(({ details }) => details)],
    ...columns,
    rows: rowsOf(columns, whats),
    first: end.length === 0 ? 0 : first,
    last: end.length === 0 ? 1 : Math.max(last, first + 1),
  };
}

function concat(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

type Columns = Pick<Trace, 'start' | 'end' | 'what' | 'lane' | 'depth' | 'task' | 'taskDepth'>;

function rowsOf(columns: Columns, whats: readonly What[]): Row[] {
  const { what, lane, depth, task, taskDepth, start } = columns;
  const isMark = whats.map(({ kind }) => !isSlice(kind));
  /** By lane, then depth, -1 first. */
  const numbers: (number | undefined)[][] = [];
  const found: { readonly lane: number; readonly depth: number; count: number }[] = [];
  const rowOf = (of: number, at: number): number => {
    numbers[of] ??= [];
    const row = numbers[of][at + 1] ?? found.push({ lane: of, depth: at, count: 0 }) - 1;
    numbers[of][at + 1] = row;
    return row;
  };
  const [own, ofTask] = [new Int32Array(what.length), new Int32Array(what.length)];
  for (let i = 0; i < what.length; i++) {
    const mark = isMark[what[i] as number] as boolean;
    const [onLane, onTask] = [lane[i] as number, task[i] as number];
    const level = (taskDepth[i] as number) - 1;
    own[i] = onLane === 0 ? -1 : rowOf(onLane - 1, mark ? -1 : (depth[i] as number));
    ofTask[i] = onTask === 0 || (!mark && level < 0) ? -1 : rowOf(onTask - 1, mark ? -1 : level);
    for (const row of [own[i] as number, ofTask[i] as number]) if (row >= 0) (found[row] as { count: number }).count++;
  }
  const rows = found.map(({ count, ...about }) => ({
    ...about,
    ids: new Uint32Array(count),
    busy: new Float64Array(),
  }));
  const used = new Uint32Array(rows.length);
  for (let i = 0; i < what.length; i++)
    for (const row of [own[i] as number, ofTask[i] as number]) {
      if (row < 0) continue;
      const at = used[row] as number;
      (rows[row] as Row).ids[at] = i;
      used[row] = at + 1;
    }
  for (const row of rows) order(row, start, columns.end);
  return rows;
}

/** Records come in the order of their ends, which is that of their starts for nearly all. */
function order(row: Row, start: Float64Array, end: Float64Array): void {
  const { ids } = row;
  const startOf = (i: number): number => start[ids[i] as number] as number;
  for (let i = 1; i < ids.length; i++)
    if (startOf(i) < startOf(i - 1)) {
      ids.sort((a, b) => (start[a] as number) - (start[b] as number) || a - b);
      break;
    }
  row.busy = new Float64Array(ids.length + 1);
  for (let i = 0; i < ids.length; i++) {
    const time = (end[ids[i] as number] as number) - startOf(i);
    row.busy[i + 1] = (row.busy[i] as number) + time;
  }
}

/** In the row: the first slice that starts at a time or later. */
export function firstFrom(row: Row, start: Float64Array, time: number, from = 0): number {
  return firstWhere(row.ids.length, (i) => (start[row.ids[i] as number] as number) >= time, from);
}

/** Where in a row a slice is; -1 if it is not in it. */
export function indexIn(row: Row, start: Float64Array, slice: number): number {
  const time = start[slice] as number;
  const { ids } = row;
  let at = firstFrom(row, start, time);
  while (at < ids.length && (start[ids[at] as number] as number) === time) {
    if (ids[at] === slice) return at;
    at++;
  }
  return -1;
}

/** The blocks in a page, unpacked. One that was cut off is left out, with all behind it. */
export async function blocksIn(texts: readonly string[]): Promise<Block[]> {
  const blocks: Block[] = [];
  for (const text of texts) {
    try {
      blocks.push(readBlock(await unpacked(bytesOf(text))));
    } catch {
      break;
    }
  }
  return blocks;
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const coded = atob(text);
  const bytes = new Uint8Array(coded.length);
  for (let i = 0; i < coded.length; i++) bytes[i] = coded.charCodeAt(i);
  return bytes;
}

async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

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
