import type { Addr } from '../base/addr.js';
import { littleEndian } from '../base/little-endian.js';
import type { Shape } from './shape.js';

/**
 * A value of the target that was read and interpreted: plain data, with no reference to the target. Unreadable memory
 * and implausible bytes are values too, at the place where they were found. `type` is the type's name as DWARF spells
 * it, with generic arguments.
 */
export type Value =
  | { readonly kind: 'integer'; readonly type: string; readonly value: bigint }
  /** `size` is 4 or 8 bytes. */
  | { readonly kind: 'float'; readonly type: string; readonly value: number; readonly size: number }
  | { readonly kind: 'bool'; readonly type: string; readonly value: boolean }
  | { readonly kind: 'char'; readonly type: string; readonly value: string }
  /** Of an enum without data. */
  | { readonly kind: 'enumerator'; readonly type: string; readonly name: string; readonly value: bigint }
  | StructValue
  | SequenceValue
  /**
   * `str`, `String`, and C's strings: UTF-8, with replacements for invalid bytes. `length` is in bytes; `cut`: there
   * are more than were read.
   */
  | {
      readonly kind: 'text';
      readonly type: string;
      readonly text: string;
      readonly length: number;
      readonly cut: boolean;
    }
  | PointerValue
  | WrapperValue
  /** Bytes of a type of which only the size is known. */
  | { readonly kind: 'bytes'; readonly type: string; readonly bytes: Uint8Array }
  | { readonly kind: 'unreadable'; readonly type: string; readonly address: Addr; readonly size: number }
  | { readonly kind: 'optimized-out'; readonly type: string }
  /** Bytes that are no value of the type: `bool 0x7`, an unknown discriminant. */
  | { readonly kind: 'invalid'; readonly type: string; readonly reason: string }
  /** Left out, because a limit was reached, or the value contains itself. */
  | { readonly kind: 'cut'; readonly type: string; readonly reason: 'depth' | 'size' | 'cycle' };

export interface FieldValue {
  /** `__0` of a tuple is `0`. */
  readonly name: string;
  readonly value: Value;
}

/** A struct, tuple, union (every member of it), or an enum in one of its variants. */
export interface StructValue {
  readonly kind: 'struct';
  readonly type: string;
  /** As Rust's Debug writes it: `Task`, `Some`, `level3::Suspend0`; empty for a tuple. */
  readonly name: string;
  /** Of an enum: its name alone. */
  readonly variant: string | undefined;
  readonly form: 'named' | 'tuple' | 'union';
  readonly fields: readonly FieldValue[];
}

/** `name` is `Vec`, `VecDeque`; empty for arrays and slices. `elements` may be fewer than `length`. */
export interface SequenceValue {
  readonly kind: 'sequence';
  readonly type: string;
  readonly name: string;
  readonly length: number;
  readonly elements: readonly Value[];
}

export interface PointerValue {
  readonly kind: 'pointer';
  readonly type: string;
  readonly style: PointerStyle;
  readonly address: Addr;
  /** The value that it points to, if the pointer was followed. */
  readonly target: Value | undefined;
  /** Of a pointer to `dyn Trait`. */
  readonly dyn: { readonly trait: string; readonly vtable: Addr; readonly concrete: string | undefined } | undefined;
  /** The symbol there, of a pointer to a function. */
  readonly symbol: string | undefined;
}

export type PointerStyle = 'ref' | 'mut' | 'raw' | 'box' | 'fn';

/** A library type around one value: `Rc`, `Arc`, `Weak`, `RefCell` while it is borrowed, a lock. */
export interface WrapperValue {
  readonly kind: 'wrapper';
  readonly type: string;
  readonly name: string;
  /** `strong=2`, `borrowed=mut`, `locked=true`; for a lock only what is true, and other numbers. */
  readonly facts: readonly { readonly name: string; readonly value: string }[];
  readonly value: Value | undefined;
}

/** Limits for one reading; what exceeds them is `cut`, shortened, or left out. */
export interface ValueLimits {
  /** How deep values may nest, including followed pointers. */
  readonly depth: number;
  /** Elements of one array, slice, `Vec`, `VecDeque`. */
  readonly elements: number;
  /** Bytes of one string. */
  readonly text: number;
  /** Values in all. */
  readonly values: number;
  /** Bytes read from memory in all. */
  readonly bytes: number;
  /** Bytes of one object in memory; a larger one is `cut`. */
  readonly object: number;
}

export const defaultLimits: ValueLimits = {
  depth: 32,
  elements: 64,
  text: 1024,
  values: 10_000,
  bytes: 1 << 20,
  object: Number.POSITIVE_INFINITY,
};

/** An integer's, float's, char's, bool's or C-like enum's value from its bytes. */
export function scalarValue(shape: Shape, bytes: Uint8Array): Value {
  const type = shape.name;
  const bits = littleEndian(bytes);
  switch (shape.kind) {
    case 'bool':
      if (bits > 1n) return { kind: 'invalid', type, reason: `0x${bits.toString(16)}` };
      return { kind: 'bool', type, value: bits === 1n };
    case 'char': {
      const code = Number(bits);
      if (code > 0x10_ffff || (code >= 0xd800 && code < 0xe000)) {
        return { kind: 'invalid', type, reason: `0x${bits.toString(16)}` };
      }
      return { kind: 'char', type, value: String.fromCodePoint(code) };
    }
    case 'float': {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      const value = bytes.length === 4 ? view.getFloat32(0, true) : view.getFloat64(0, true);
      return { kind: 'float', type, value, size: bytes.length };
    }
    case 'enumeration': {
      const name = shape.names.get(bits);
      const value = shape.signed ? BigInt.asIntN(bytes.length * 8, bits) : bits;
      if (name === undefined) return { kind: 'invalid', type, reason: `discriminant ${value}` };
      return { kind: 'enumerator', type, name, value };
    }
    case 'integer':
      return { kind: 'integer', type, value: shape.signed ? BigInt.asIntN(bytes.length * 8, bits) : bits };
    default:
      return { kind: 'bytes', type, bytes };
  }
}

// A byte order mark at the begin of a string is a character of it.
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** UTF-8, of which there may be more than these bytes: `length` in all. */
export function textValue(type: string, bytes: Uint8Array, length: number): Value {
  return { kind: 'text', type, text: utf8.decode(bytes), length, cut: bytes.length < length };
}
