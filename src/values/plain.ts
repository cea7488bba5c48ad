import type { Value } from './value.js';

/**
 * A value of the target as plain data. Integers of up to 32 bits are numbers, wider ones bigints, by their type. A
 * struct or tuple is an object (a tuple's members are `0`, `1`), an enum is a {@link PlainEnum}. A reference is what it
 * points to, as far as that was read, else a bigint, its address. What could not be read is an {@link Unavailable}.
 */
export type PlainValue =
  | number
  | bigint
  | string
  | boolean
  | Uint8Array
  | Unavailable
  | PlainEnum
  | readonly PlainValue[]
  | { readonly [member: string]: PlainValue };

export interface PlainEnum {
  readonly variant: string;
  readonly fields: { readonly [member: string]: PlainValue };
}

/** A value that is not to be had, and why. */
export class Unavailable {
  readonly unavailable: string;

  constructor(why: string) {
    this.unavailable = why;
  }

  toString(): string {
    return `<${this.unavailable}>`;
  }
}

/** The value as plain data. */
export function plainValue(value: Value): PlainValue {
  switch (value.kind) {
    case 'integer':
      return isWide(value.type) ? value.value : Number(value.value);
    case 'float':
    case 'bool':
    case 'char':
      return value.value;
    case 'enumerator':
      return { variant: value.name, fields: {} };
    case 'struct': {
      const fields = Object.fromEntries(value.fields.map((field) => [field.name, plainValue(field.value)]));
      return value.variant === undefined ? fields : { variant: value.variant, fields };
    }
    case 'sequence': {
      const elements = value.elements.map(plainValue);
      const left = value.length - elements.length;
      return left > 0 ? [...elements, new Unavailable(`${left} more elements were not read`)] : elements;
    }
    case 'text':
      return value.text;
    case 'pointer':
      return value.target === undefined ? value.address : plainValue(value.target);
    case 'wrapper': {
      const facts = Object.fromEntries(value.facts.map(({ name, value: text }) => [name, text]));
      return {
        ...facts,
        value: value.value === undefined ? new Unavailable('its value was not read') : plainValue(value.value),
      };
    }
    case 'bytes':
      return value.bytes;
    case 'unreadable':
      return new Unavailable(`${value.size} bytes at 0x${value.address.toString(16)} cannot be read`);
    case 'optimized-out':
      return new Unavailable('it is not in registers here, or was optimized out');
    case 'invalid':
      return new Unavailable(`no ${value.type}: ${value.reason}`);
    case 'cut':
      return new Unavailable(value.reason === 'cycle' ? 'it holds itself' : `not read: a limit (${value.reason})`);
  }
}

/** By the type's name, Rust's or C's, since a value does not keep its size. */
function isWide(type: string): boolean {
  return !/^(?:[iu](?:8|16|32)|(?:un)?signed (?:int|short|char)|int|short(?: unsigned)?(?: int)?|char)$/.test(type);
}
