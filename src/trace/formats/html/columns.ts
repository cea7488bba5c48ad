/*
 * The data of an HTML report: blocks, each packed by deflate, that are read one after another. A block has
 *
 *   4 bytes   the length of its JSON (little endian, as below), then the JSON: {@link BlockHead}
 *   4 bytes   the number of its records
 *   for each of {@link columnNames}: 4 bytes with the length of the column, then a varint a record
 *
 * What lanes and records refer to by numbers stands in the block of the first record that does, or in one before.
 */

/**
 * A slice, or a mark, which takes no time. Numbers that may be missing are one more than what they name, and 0 if that
 * is missing.
 */
export interface SliceRecord {
  /** In the list of all blocks. */
  readonly what: number;
  /** One more than the lane of the hart or thread; and how many slices are around it there. */
  readonly lane: number;
  readonly depth: number;
  /** One more than the lane of the task. */
  readonly task: number;
  /** One more than how many polls of the task are around it; 0: it is not drawn on the task's lane. */
  readonly taskDepth: number;
  /** Nanoseconds of the trace. */
  readonly end: number;
  /** Nanoseconds. */
  readonly time: number;
  /** 1: its end was not seen, and `end` is when that showed. */
  readonly isOpen: number;
  /** One more than the number of its text in the block. */
  readonly detail: number;
  /**
   * Even: twice the number of the wake that caused it, or that it is, from 1. Odd: one less than twice the number of the
   * system call that it is, or that it serves.
   */
  readonly wake: number;
}

export const columnNames = [
  'what',
  'lane',
  'depth',
  'task',
  'taskDepth',
  'end',
  'time',
  'isOpen',
  'detail',
  'wake',
] as const;
export type Column = (typeof columnNames)[number];
/** Those that are written as the difference to the record before. */
const differences: ReadonlySet<Column> = new Set(['end', 'wake']);

export type LaneKind = 'machine' | 'hart' | 'thread' | 'task' | 'process';
export type WhatKind = 'call' | 'poll' | 'wait' | 'gap' | 'process' | 'wake' | 'console' | 'finding' | 'end' | 'mark';

export interface LaneName {
  readonly kind: LaneKind;
  readonly name: string;
  /** Of a program that a kernel runs: the number of its process. */
  readonly process?: number | undefined;
}

/** What a slice is of. */
export interface What {
  readonly kind: WhatKind;
  readonly name: string;
  readonly instance?: string | undefined;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
}

/** New in this block. */
export interface BlockHead {
  readonly lanes: readonly LaneName[];
  readonly whats: readonly What[];
  /** Lines of a name, a tab and a value. */
  readonly details: readonly string[];
}

export interface Block extends BlockHead {
  readonly columns: Readonly<Record<Column, Float64Array>>;
}

/** A list of varints that grows. */
class Varints {
  #bytes = new Uint8Array(1024);
  #length = 0;

  push(value: number): void {
    if (this.#length + 10 > this.#bytes.length) {
      const longer = new Uint8Array(2 * this.#bytes.length);
      longer.set(this.#bytes);
      this.#bytes = longer;
    }
    // Times of a damaged trace go back.
    let rest = Math.max(0, value);
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[this.#length++] = (rest % 128) + 128;
    this.#bytes[this.#length++] = rest;
  }

  take(): Uint8Array {
    const bytes = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return bytes;
  }
}

/** Records on their way into a block. */
export class BlockColumns {
  readonly #columns = columnNames.map((name) => ({ name, isDifference: differences.has(name), bytes: new Varints() }));
  readonly #before = { end: 0, wake: 0 };
  count = 0;

  add(slice: Omit<SliceRecord, 'what' | 'detail'>, what: number, detail: number): void {
    this.count++;
    for (const { name, isDifference, bytes } of this.#columns) {
      const value = name === 'what' ? what : name === 'detail' ? detail : slice[name];
      bytes.push(isDifference ? this.#difference(name as 'end' | 'wake', value) : value);
    }
  }

  /** The block of all records since the last one. */
  take(head: BlockHead): Uint8Array {
    const parts = [sized(new TextEncoder().encode(JSON.stringify(head))), numberBytes(this.count)];
    for (const { bytes } of this.#columns) parts.push(sized(bytes.take()));
    this.count = 0;
    this.#before.end = 0;
    this.#before.wake = 0;
    return Buffer.concat(parts);
  }

  /** Odd if it is less than before. A record without a wake has 0, and changes nothing. */
  #difference(name: 'end' | 'wake', value: number): number {
    if (name === 'wake' && value === 0) return 0;
    const change = value - this.#before[name];
    this.#before[name] = value;
    return (change < 0 ? -2 * change - 1 : 2 * change) + (name === 'wake' ? 1 : 0);
  }
}

function numberBytes(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function sized(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([numberBytes(bytes.length), bytes]);
}

/** A block as it was before it was packed. */
export function readBlock(bytes: Uint8Array): Block {
  let at = 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const number = (): number => {
    at += 4;
    return view.getUint32(at - 4, true);
  };
  const part = (): Uint8Array => {
    const length = number();
    at += length;
    return bytes.subarray(at - length, at);
  };
  const head = JSON.parse(new TextDecoder().decode(part())) as BlockHead;
  const count = number();
  const read = columnNames.map((name) => [name, column(part(), count, name)]);
  return { ...head, columns: Object.fromEntries(read) as Block['columns'] };
}

function column(bytes: Uint8Array, count: number, name: Column): Float64Array {
  const values = new Float64Array(count);
  const isDifference = differences.has(name);
  let before = 0;
  let at = 0;
  for (let i = 0; i < count; i++) {
    let value = 0;
    let scale = 1;
    let byte = bytes[at++] as number;
    for (; byte >= 128; byte = bytes[at++] as number) {
      value += (byte - 128) * scale;
      scale *= 128;
    }
    value += byte * scale;
    if (isDifference) {
      if (name === 'wake' && value === 0) continue;
      if (name === 'wake') value--;
      before += value % 2 === 1 ? -(value + 1) / 2 : value / 2;
      value = before;
    }
    values[i] = value;
  }
  return values;
}
