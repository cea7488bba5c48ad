// Messages of Protocol Buffers, each as one table of fields by which it is written and read.
import { type Fields, LEN, VARINT } from '../read/fields.js';
import type { ProtoBuffer } from './protobuf.js';

/** A field: its number, its wire type, and how its value is read. */
interface Field<T> {
  readonly number: number;
  readonly type: number;
  readonly read: (fields: Fields) => T;
  /** It may come several times. */
  readonly isList?: boolean;
  /** What `read` gives is where this message lies. */
  readonly of?: Message<never>;
}

type Range = readonly [from: number, to: number];
type Values<T> = { readonly [K in keyof T]?: T[K] | undefined };

const varint = <T>(read: (fields: Fields) => T) => {
  return (number: number): Field<T> => ({ number, type: VARINT, read });
};

/** An integer of up to 53 bits. */
export const uint = varint((fields) => fields.value());
/** The low 32 bits. */
export const uint32 = varint((fields) => fields.low);
/** All 64 bits. */
export const uint64 = varint((fields) => fields.wide());
/** All 64 bits, as a number if that holds them. */
export const uuid = varint((fields) => fields.key());
export const bool = varint((fields) => fields.low !== 0);

export function text(number: number): Field<string> {
  return { number, type: LEN, read: (fields) => fields.text() };
}

export function list<T>(field: Field<T>): Field<readonly T[]> {
  return { ...field, isList: true } as unknown as Field<readonly T[]>;
}

export function message<T>(number: number, of: Message<T>): Field<Values<T>> {
  const read = ({ from, to }: Fields): Range => [from, to];
  return { number, type: LEN, read, of } as unknown as Field<Values<T>>;
}

/** A kind of message. */
export class Message<T> {
  readonly #fields: { readonly [K in keyof T]: Field<T[K]> };
  readonly #byNumber = new Map<number, readonly [name: keyof T, field: Field<unknown>]>();

  constructor(fields: { readonly [K in keyof T]: Field<T[K]> }) {
    this.#fields = fields;
    for (const name in fields) this.#byNumber.set(fields[name].number, [name, fields[name]]);
  }

  /** Writes one as a field of another message: its values in the order in which they are given. */
  put(into: ProtoBuffer, number: number, values: Values<T>): void {
    const mark = into.open(number);
    for (const name in values) {
      const { number: own, of } = this.#fields[name];
      for (const value of [values[name]].flat() as readonly unknown[]) {
        if (typeof value === 'number') into.uint(own, value);
        else if (typeof value === 'bigint') into.uint64(own, value);
        else if (typeof value === 'boolean') into.bool(own, value);
        else if (typeof value === 'string') into.text(own, value);
        else if (value !== undefined) of?.put(into, own, value as Values<never>);
      }
    }
    into.close(mark);
  }

  /** Reads the one between two offsets. What it does not have is undefined; of other fields nothing is read. */
  read(cursor: Fields, from: number, to: number): Values<T> {
    const found: Partial<Record<keyof T, unknown>> = {};
    cursor.enter(from, to);
    while (cursor.next()) {
      const [name, field] = this.#byNumber.get(cursor.number) ?? [];
      if (name === undefined || field?.type !== cursor.type) continue;
      if (!field.isList) found[name] = field.read(cursor);
      else if (found[name] === undefined) found[name] = [field.read(cursor)];
      else (found[name] as unknown[]).push(field.read(cursor));
    }
    for (const [name, { of }] of this.#byNumber.values()) {
      if (of === undefined || found[name] === undefined) continue;
      const inner = ([begin, end]: Range): unknown => of.read(cursor, begin, end);
      const ranges = found[name] as Range | readonly Range[];
      found[name] = typeof ranges[0] === 'number' ? inner(ranges as Range) : (ranges as readonly Range[]).map(inner);
    }
    return found as Values<T>;
  }
}
