import type { Die } from '../dwarf/index.js';
import type { PointerStyle } from './value.js';

/**
 * What a reader must know about a type. It is computed once from the type's DIE (program-shapes.ts) and used for
 * every value. Types refer to each other by functions, because they may contain pointers to themselves.
 */
export type Shape = {
  /** As DWARF spells it, with namespaces and generic arguments. */
  readonly name: string;
  /** Bytes; undefined if the size is not known (a declaration, an open array). */
  readonly size: number | undefined;
  /** Undefined for a type that a cast in an expression made. */
  readonly die: Die | undefined;
} & ShapeKind;

export type ShapeKind =
  | { readonly kind: 'integer'; readonly signed: boolean; readonly character: boolean }
  | { readonly kind: 'float' }
  | { readonly kind: 'bool' }
  | { readonly kind: 'char' }
  | { readonly kind: 'unit' }
  | { readonly kind: 'enumeration'; readonly names: ReadonlyMap<bigint, string>; readonly signed: boolean }
  | { readonly kind: 'pointer'; readonly style: PointerStyle; readonly target: () => Shape | undefined }
  | SliceShape
  | DynShape
  | StructShape
  | EnumShape
  | { readonly kind: 'array'; readonly element: () => Shape; readonly count: number | undefined }
  | { readonly kind: 'opaque' };

export interface FieldShape {
  /** As DWARF has it: `__0` of a tuple. */
  readonly name: string;
  readonly offset: number;
  readonly bits: { readonly offset: number; readonly size: number } | undefined;
  readonly type: () => Shape;
}

/** `&[T]`, `&str`, `*const [T]`, `Box<str>`: two words. */
export interface SliceShape {
  readonly kind: 'slice';
  readonly style: PointerStyle;
  readonly fields: readonly FieldShape[];
  readonly pointer: number;
  readonly length: number;
  readonly text: boolean;
  readonly element: () => Shape;
}

/** `&dyn Trait`, `Box<dyn Trait>`: two words. */
export interface DynShape {
  readonly kind: 'dyn';
  readonly style: PointerStyle;
  readonly fields: readonly FieldShape[];
  readonly pointer: number;
  readonly vtable: number;
  readonly trait: string;
}

export interface StructShape {
  readonly kind: 'struct' | 'union';
  readonly short: string;
  readonly fields: readonly FieldShape[];
  /** How a library type is read, if it has the expected fields. */
  readonly view: () => View | undefined;
}

export interface EnumShape {
  readonly kind: 'enum';
  /** For a coroutine its name, the prefix of its states' names; else empty. */
  readonly short: string;
  readonly discriminant: { readonly offset: number; readonly size: number } | undefined;
  /** Members that all variants share. */
  readonly fields: readonly FieldShape[];
  readonly variants: readonly VariantShape[];
}

export interface VariantShape {
  readonly name: string;
  /** Undefined for the variant of all other values. */
  readonly values: readonly { readonly low: bigint; readonly high: bigint }[] | undefined;
  readonly fields: () => readonly FieldShape[];
}

/** The members have no names. */
export function isTuple(fields: readonly FieldShape[]): boolean {
  return fields.length > 0 && fields.every((field) => isNumbered(field.name));
}

/** `__0` of a tuple is `0`, as Rust writes it. */
export function fieldName(name: string): string {
  return isNumbered(name) ? name.slice(2) : name;
}

function isNumbered(name: string): boolean {
  return name.startsWith('__') && /^__\d+$/.test(name);
}

/** A library type, its shape verified. Offsets count from the start of the type. */
export type View =
  /** Only a wrapper: `Cell`, an atomic, `NonNull`, `Pin`. */
  | { readonly kind: 'through'; readonly offset: number; readonly type: () => Shape }
  | {
      readonly kind: 'vec';
      readonly pointer: number;
      readonly length: number;
      readonly element: () => Shape;
      readonly text: boolean;
    }
  | {
      readonly kind: 'deque';
      readonly pointer: number;
      readonly length: number;
      readonly head: number;
      readonly capacity: number;
      readonly element: () => Shape;
    }
  | SharedView
  | {
      readonly kind: 'guarded';
      readonly name: string;
      readonly offset: number;
      readonly type: () => Shape;
      readonly facts: readonly { readonly name: string; readonly offset: number; readonly size: number }[];
    };

/** `Rc`, `Arc` and their `Weak`s: a pointer to two counts and a value, which may be unsized. */
export interface SharedView {
  readonly kind: 'shared';
  readonly name: 'Rc' | 'Arc' | 'Weak';
  readonly pointer: number;
  /** Offsets from the address that it points to. */
  readonly strong: number;
  readonly weak: number;
  readonly target:
    | { readonly kind: 'sized'; readonly offset: number; readonly type: () => Shape }
    | {
        readonly kind: 'slice';
        /** From the start of the pointer itself. */
        readonly length: number;
        readonly text: boolean;
        readonly offset: number;
        readonly element: () => Shape;
      }
    /** `vtable`: from the start of the pointer itself. */
    | { readonly kind: 'dyn'; readonly vtable: number; readonly trait: string };
}

/**
 * The traits of a trait object, by what follows the `&` or the `Box<` of a pointer's name: rustc writes several in
 * parentheses, `(dyn Trait + core::marker::Send), alloc::alloc::Global>`. Undefined for another type.
 */
export function traitsOf(pointee: string): string | undefined {
  const whole = pointee.startsWith('(dyn ') ? pointee.slice(1) : pointee;
  if (!whole.startsWith('dyn ')) return undefined;
  let depth = 0;
  for (let i = 0; i < whole.length; i++) {
    const c = whole[i];
    if (c === '<' || c === '(' || c === '[') depth++;
    else if (c === ')' || c === ']' || (c === '>' && whole[i - 1] !== '-')) depth--;
    if ((depth === 0 && c === ',') || depth < 0) return whole.slice('dyn '.length, i);
  }
  return whole.slice('dyn '.length);
}
